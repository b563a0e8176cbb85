"""Clouds: a region's id becomes the region as it is stored and the provider that does the work in it.

**Who sees a region.** One without organizations is everybody's. Any other is seen by whoever may read regions
everywhere, and by those who have to do with one of its organizations. What is not seen is not there: NotFound. So is a
region that the configuration has withdrawn (`seeding`), for everybody but those who work on what is in it already.

**Calls.** All calls to one provider go through one `Calls`, whichever room or controller makes them. What is asked all
the time, and changes seldom, is kept for a moment (`recent`).

What a provider said a moment ago, so that a slow provider does not make every request slow.

An answer is fresh for `fresh_s` and is given out without asking. After that the provider is asked again, once for all
who wait (single flight). Whoever finds an older answer waits at most `patience_s` from the moment the provider was
asked, and then takes the older one, up to `stale_s` old; whoever finds none waits for the provider, and is told what it
says. If the provider cannot say, the older answer counts as fresh once more, so that not every request asks it again.

Whoever has changed something at the provider calls `forget`: nobody is given an answer as fresh that was asked for
before.

A provider's no, in the words of a client that wanted something of a server: 400, and what to wait for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

from remuda.access.principal import Principal
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Malformed, NotFound, Unavailable
from remuda.kernel.randomness import Randomness
from remuda.providers.absence import AbsenceTracker
from remuda.providers.calls import CallRejected, Calls
from remuda.providers.circuit_breaker import CallSettings
from remuda.providers.contract.catalogue import CloudExternalNetwork, CloudFlavor, CloudImage
from remuda.providers.contract.common import WrongState
from remuda.providers.contract.provider import Provider
from remuda.providers.metrics import CallMetrics
from remuda.providers.proxy import proxied, verbs_of
from remuda.region.catalogue.seed import is_withdrawn
from remuda.region.kinds.regions import Region
from remuda.region.names import permission
from remuda.region.ports import ProviderSource
from remuda.store.contract import Store

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True, kw_only=True)
class TtlSettings:
    """How old an answer may be."""

    fresh_s: float = 10.0
    """No older one is given out while the provider answers."""
    wait_s: float = 1.0
    """Who has an older one waits so long for the provider."""
    stale_s: float = 3600.0
    """No older one is given out at all."""


@dataclass(frozen=True, slots=True)
class _Said(Generic[AnswerT]):
    answer: AnswerT
    at: float


class TtlCache(Generic[AnswerT]):
    """One question to a provider, and what it said last."""

    def __init__(self, ask: Callable[[], Awaitable[AnswerT]], *, clock: Clock, ttl: TtlSettings | None = None) -> None:
        self._ask, self._clock = ask, clock
        self._freshness = ttl or TtlSettings()
        self._said: _Said[AnswerT] | None = None
        self._ask_after = 0.0
        self._asking: asyncio.Task[AnswerT] | None = None
        self._asked_at = 0.0

    async def read(self) -> AnswerT:
        """Return what the provider says, or said, or raise what it raises."""
        now = self._clock.monotonic()
        said = self._said
        if said is not None and now < self._ask_after:
            return said.answer
        asking = self._begin(now)
        if said is None or now - said.at > self._freshness.stale_s:
            return await asyncio.shield(asking)
        await asyncio.wait((asking,), timeout=max(0.0, self._asked_at + self._freshness.wait_s - now))
        return _outcome(asking, said.answer)

    def invalidate(self) -> None:
        """Ask the provider next time: what it said, and what it is saying, may no longer be so."""
        self._ask_after = 0.0
        self._asking = None

    def _begin(self, now: float) -> asyncio.Task[AnswerT]:
        if self._asking is None:
            self._asked_at = now
            self._asking = asyncio.create_task(self._renew(), name="asking a provider again")
            self._asking.add_done_callback(self._end)
        return self._asking

    async def _renew(self) -> AnswerT:
        try:
            answer = await self._ask()
            if self._is_awaited():
                self._said = _Said(answer, self._clock.monotonic())
            return answer
        finally:
            if self._is_awaited():
                self._ask_after = self._clock.monotonic() + self._freshness.fresh_s

    def _is_awaited(self) -> bool:
        """Tell whether the present task asks for what counts, rather than for what was forgotten meanwhile."""
        return self._asking is asyncio.current_task()

    def _end(self, asking: asyncio.Task[AnswerT]) -> None:
        if self._asking is asking:
            self._asking = None
        if not asking.cancelled():
            asking.exception()  # whoever waited has been told


def _outcome(asking: asyncio.Task[AnswerT], otherwise: AnswerT) -> AnswerT:
    if not asking.done():
        return otherwise
    try:
        return asking.result()
    except Unavailable:
        return otherwise


CapabilityT = TypeVar("CapabilityT")


_TOLD_S = 30.0  # in case an event was lost
_OF_IMAGES = TtlSettings(fresh_s=2.0)  # they change while somebody waits for them


def need(capability: CapabilityT | None) -> CapabilityT:
    """Return what a request needs of a provider (`need(cloud.provider.networks)`), or refuse the request."""
    if capability is None:
        raise Malformed("region is not valid for this endpoint")
    return capability


def is_visible(region: Region, principal: Principal) -> bool:
    """Tell whether a caller may know of a region."""
    organizations, access = region.spec.organizations, principal.access
    return (
        not organizations
        or permission("regions", "read") in access.everywhere
        or not organizations.isdisjoint(access.organizations)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProviderState:
    """What is kept of a provider for as long as it is the one of its region."""

    origin: Provider
    provider: Provider
    calls: Calls
    absences: AbsenceTracker
    wait_s: float
    flavors: TtlCache[Sequence[CloudFlavor]]
    external_networks: TtlCache[Sequence[CloudExternalNetwork]] | None
    images: TtlCache[Sequence[CloudImage]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionProvider:
    """A region at work."""

    region: Region
    state: _ProviderState

    @property
    def provider(self) -> Provider:
        """What does the work; every call goes through `calls`."""
        return self.state.provider

    @property
    def calls(self) -> Calls:
        """All calls to the provider: they tell of what nobody knows what became."""
        return self.state.calls

    @property
    def absences(self) -> AbsenceTracker:
        """Since when things are not where they should be."""
        return self.state.absences

    @property
    def wait_s(self) -> float:
        """When to look again at what is under way: seldom, if the provider tells by itself how it goes on."""
        return self.state.wait_s

    async def flavors(self) -> Sequence[CloudFlavor]:
        """Return the flavors on offer, as they were a moment ago."""
        return await self.state.flavors.read()

    async def uncached_flavors(self) -> Sequence[CloudFlavor]:
        """Return the flavors on offer, and how many of each are free, as the provider says now."""
        return await self.provider.catalogue.flavors()

    async def external_networks(self) -> Sequence[CloudExternalNetwork]:
        """Return the ways out, as they were a moment ago; a cloud without any refuses the request."""
        return await need(self.state.external_networks).read()

    async def images(self) -> Sequence[CloudImage]:
        """Return all images, as they were a moment ago; a cloud without any refuses the request."""
        return await need(self.state.images).read()

    def invalidate_images(self) -> None:
        """Have the cloud asked again for its images: one of them was changed."""
        need(self.state.images).invalidate()


class ProviderRegistry:
    """All regions."""

    def __init__(
        self,
        store: Store,
        providers: ProviderSource,
        *,
        clock: Clock,
        randomness: Randomness,
        settings: CallSettings | None = None,
        absence_delay: timedelta = timedelta(seconds=5),
        poll_busy: timedelta = timedelta(seconds=2),
        ttl: TtlSettings | None = None,
        metrics: CallMetrics | None = None,
    ) -> None:
        self._store, self._providers = store, providers
        self._clock, self._randomness = clock, randomness
        self._settings, self._metrics = settings, metrics
        self._look_again, self._poll_busy, self._freshness = absence_delay, poll_busy, ttl
        self._work: dict[str, _ProviderState] = {}

    async def get(self, region: str) -> RegionProvider:
        """Return a region at work, for those who look after what is in it: nobody's rights are asked."""
        return self.of_region(await self._store.get(Region, region))

    async def get_visible(self, principal: Principal, region: str) -> RegionProvider:
        """Return a region at work, or raise NotFound if the caller may not know of it."""
        return self.of_region(await self.visible_region(principal, region))

    async def visible_region(self, principal: Principal, region: str) -> Region:
        """Return a region, or raise NotFound if the caller may not know of it."""
        found = await self._store.get(Region, region)
        if is_withdrawn(found) or not is_visible(found, principal):
            raise NotFound(Region.__name__, region)
        return found

    async def visible_regions(self, principal: Principal) -> Sequence[Region]:
        """Return the regions that the caller may know of."""
        regions = (await self._store.list(Region)).items
        return [region for region in regions if not is_withdrawn(region) and is_visible(region, principal)]

    def of_region(self, region: Region) -> RegionProvider:
        """Return a region with its provider, or raise Unavailable if this process was given none for it."""
        origin = self._providers.find(region.name)
        if origin is None:
            raise Unavailable(f"Nothing is set up for the region {region.name} here: have its provider configured.")
        work = self._work.get(region.name)
        if work is None or work.origin is not origin:
            work = self._work[region.name] = self._begin(region.name, origin)
        return RegionProvider(region=region, state=work)

    def capabilities(self, region: Region) -> tuple[str, ...]:
        """Return the names of what a region's provider has; nothing, where none is set up."""
        found = self._providers.find(region.name)
        return () if found is None else found.capabilities

    async def close(self, grace_s: float = 10.0) -> None:
        """Take no new calls, and wait for those under way."""
        for work in self._work.values():
            await work.calls.close(grace_s)

    def _begin(self, region: str, origin: Provider) -> _ProviderState:
        calls = Calls(
            region,
            verbs_of(origin),
            clock=self._clock,
            randomness=self._randomness,
            settings=self._settings,
            metrics=self._metrics,
        )
        provider = proxied(origin, calls)
        ways_out, images = provider.external_networks, provider.images
        return _ProviderState(
            origin=origin,
            provider=provider,
            calls=calls,
            absences=AbsenceTracker(self._clock, delay_s=max(self._look_again.total_seconds(), origin.lag_s)),
            wait_s=self._poll_busy.total_seconds() if origin.events is None else _TOLD_S,
            flavors=self._recent(provider.catalogue.flavors),
            external_networks=None if ways_out is None else self._recent(ways_out.external_networks),
            images=None if images is None else self._recent(images.images, _OF_IMAGES),
        )

    def _recent(self, ask: Callable[[], Awaitable[AnswerT]], freshness: TtlSettings | None = None) -> TtlCache[AnswerT]:
        return TtlCache(ask, clock=self._clock, ttl=self._freshness or freshness)


async def map_server_errors(call: Awaitable[AnswerT], wrong_state: str) -> AnswerT:
    """Return what the provider answers; that the server cannot do it now is said as `otherwise`.

    A server that its provider does not have is one that is to come: it is being made, or replaced, or waits for room.
    """
    try:
        return await call
    except WrongState:
        raise Malformed(wrong_state) from None
    except NotFound:
        raise Malformed("server is not at its provider at the moment: wait until it is provisioned") from None
    except CallRejected as refusal:
        if refusal.outcome != "busy":
            raise
        raise Malformed("server is being worked on at its provider: try again in a moment") from None
