"""Registry of providers by region id.

A region without organizations is visible to every caller, any other one to callers with the permission to read regions
globally and to those of its organizations. A region that is not visible, or that the configuration has withdrawn, is
NotFound. All calls to a provider go through one `Calls`. Frequent reads are cached for some seconds (`TtlCache`), so
that a slow provider does not slow down every request.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Generic, TypeVar

from remuda.access.principal import Principal
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Forbidden, Malformed, NotFound, Unavailable
from remuda.kernel.randomness import Randomness
from remuda.providers.absence import AbsenceTracker
from remuda.providers.calls import CallRejected, Calls
from remuda.providers.circuit_breaker import CallSettings
from remuda.providers.contract.catalogue import CloudExternalNetwork, CloudFlavor, CloudImage
from remuda.providers.contract.common import Handle, WrongState
from remuda.providers.contract.provider import Provider
from remuda.providers.metrics import CallMetrics
from remuda.providers.proxy import methods_of, proxied
from remuda.reconcile.results import RECHECK_S, Requeue, Result
from remuda.region.catalogue.seed import is_withdrawn
from remuda.region.kinds.regions import Region
from remuda.region.names import permission
from remuda.region.ports import ProviderChanges, ProviderSource
from remuda.resources.conventions import NAME
from remuda.store.contract import Store

ValueT = TypeVar("ValueT")
NameT = TypeVar("NameT", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class TtlSettings:
    """Ages of cached values."""

    fresh_s: float = 10.0
    """Age up to which a value is returned without reading."""
    wait_s: float = 1.0
    """Time that a reader waits for the provider before it takes a stale value."""
    stale_s: float = 3600.0
    """Age up to which a stale value is returned."""


@dataclass(frozen=True, slots=True)
class _Cached(Generic[ValueT]):
    value: ValueT
    at: float


class TtlCache(Generic[ValueT]):
    """Cache of one read of a provider.

    A stale value is read again, once for all who wait (single flight). Readers wait `wait_s` for that and then take the
    stale value; if there is none, or it is older than `stale_s`, they wait for the provider. After a failed read the
    stale value counts as fresh again, so that not every request repeats it. After `invalidate`, no value that was read
    before is returned as fresh.
    """

    def __init__(self, load: Callable[[], Awaitable[ValueT]], *, clock: Clock, ttl: TtlSettings | None = None) -> None:
        self._load, self._clock = load, clock
        self._ttl = ttl or TtlSettings()
        self._cached: _Cached[ValueT] | None = None
        self._fresh_until = 0.0
        self._loading: asyncio.Task[ValueT] | None = None
        self._load_started = 0.0

    async def read(self) -> ValueT:
        """Return the value, fresh or stale, or raise what the read raised."""
        now = self._clock.monotonic()
        cached = self._cached
        if cached is not None and now < self._fresh_until:
            return cached.value
        loading = self._start_load(now)
        if cached is None or now - cached.at > self._ttl.stale_s:
            return await asyncio.shield(loading)
        await asyncio.wait((loading,), timeout=max(0.0, self._load_started + self._ttl.wait_s - now))
        return _result_or(loading, cached.value)

    def invalidate(self) -> None:
        """Read again next time. The result of a running read is not used as fresh."""
        self._fresh_until = 0.0
        self._loading = None

    def _start_load(self, now: float) -> asyncio.Task[ValueT]:
        if self._loading is None or self._loading.done():  # its callback may not have run yet
            self._load_started = now
            self._loading = asyncio.create_task(self._refresh(), name="refresh of a TTL cache")
            self._loading.add_done_callback(self._end_load)
        return self._loading

    async def _refresh(self) -> ValueT:
        try:
            value = await self._load()
            if self._is_current():
                self._cached = _Cached(value, self._clock.monotonic())
            return value
        finally:
            if self._is_current():
                self._fresh_until = self._clock.monotonic() + self._ttl.fresh_s

    def _is_current(self) -> bool:
        """Return whether the present task is the load that counts, and was not invalidated."""
        return self._loading is asyncio.current_task()

    def _end_load(self, loading: asyncio.Task[ValueT]) -> None:
        if self._loading is loading:
            self._loading = None
        if not loading.cancelled():
            loading.exception()  # readers that waited have raised it


def _result_or(loading: asyncio.Task[ValueT], stale: ValueT) -> ValueT:
    if not loading.done():
        return stale
    try:
        return loading.result()
    except Unavailable:
        return stale


CapabilityT = TypeVar("CapabilityT")


_RECHECK_WITH_EVENTS_S = 30.0  # in case an event was lost
_IMAGE_TTL = TtlSettings(fresh_s=2.0)  # clients poll for the state of images


def require(capability: CapabilityT | None) -> CapabilityT:
    """Return a capability of a provider (`require(cloud.provider.networks)`), or raise Malformed if it has none."""
    if capability is None:
        raise Malformed("region is not valid for this endpoint")
    return capability


def require_enabled(region: Region) -> None:
    """Raise Forbidden if nothing new can be created in a region."""
    if region.spec.disabled:
        name = region.metadata.labels.get(NAME, region.name)
        raise Forbidden(f"The region {name} is disabled, so nothing new can be created in it: choose another region.")


def is_visible(region: Region, principal: Principal) -> bool:
    organizations, access = region.spec.organizations, principal.access
    return (
        not organizations
        or permission("regions", "read") in access.everywhere
        or not organizations.isdisjoint(access.organizations)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionProvider:
    """A region with its provider. Everything but `region` is kept as long as the region has the same provider."""

    region: Region
    origin: Provider
    provider: Provider
    """Provider whose calls all go through `calls`."""
    calls: Calls
    """Calls to the provider; they know the keys whose outcome is unknown."""
    absence: AbsenceTracker
    wait_s: float
    """Requeue delay for a resource that the provider is changing; long if the provider sends events."""
    cached_flavors: TtlCache[Sequence[CloudFlavor]]
    cached_external_networks: TtlCache[Sequence[CloudExternalNetwork]] | None
    cached_images: TtlCache[Sequence[CloudImage]] | None

    async def flavors(self) -> Sequence[CloudFlavor]:
        return await self.cached_flavors.read()

    async def uncached_flavors(self) -> Sequence[CloudFlavor]:
        """Return the flavors with their present free capacity."""
        return await self.provider.catalogue.flavors()

    async def external_networks(self) -> Sequence[CloudExternalNetwork]:
        """Return the external networks; raises Malformed if the provider does not support them."""
        return await require(self.cached_external_networks).read()

    async def images(self) -> Sequence[CloudImage]:
        """Return all images; raises Malformed if the provider does not support them."""
        return await require(self.cached_images).read()

    def invalidate_images(self) -> None:
        require(self.cached_images).invalidate()

    async def delete(
        self,
        name: NameT,
        find: Callable[[NameT], Awaitable[object | None]],
        remove: Callable[[NameT], Awaitable[None]],
        *,
        key: str | None = None,
        forget: bool = True,
    ) -> Result | None:
        """Delete a resource at the provider; return what to wait for, or None when its absence is confirmed.

        `key` is the key of its calls, if that is not its name. Without `forget`, the absence stays recorded.
        """
        absence = self.absence
        if await find(name) is not None:
            absence.clear(name)
            await remove(name)
            return Requeue(0 if absence.delay_s == 0 else RECHECK_S, "Deprovisioning", "being deleted at the provider")
        # A create whose outcome is unknown may still take effect.
        if self.calls.is_unknown(key or _key(name)) or not absence.record_missing(name):
            message = "confirming that it was deleted at the provider"
            return Requeue(absence.delay_s or RECHECK_S, "Deprovisioning", message)
        if forget:
            absence.clear(name)
        return None


def _key(name: Hashable) -> str:
    return name.name if isinstance(name, Handle) else str(name)


class ProviderRegistry:
    """Regions with their providers."""

    def __init__(
        self,
        store: Store,
        source: ProviderSource,
        *,
        clock: Clock,
        randomness: Randomness,
        settings: CallSettings | None = None,
        absence_delay: timedelta = timedelta(seconds=5),
        poll_busy: timedelta = timedelta(seconds=2),
        ttl: TtlSettings | None = None,
        metrics: CallMetrics | None = None,
        on_known: Callable[[str], None] | None = None,
    ) -> None:
        """Call `on_known` with the key of each provider call whose unknown outcome becomes known."""
        self._store, self._source = store, source
        self._clock, self._randomness = clock, randomness
        self._settings, self._metrics, self._on_known = settings, metrics, on_known
        self._absence_delay, self._poll_busy, self._ttl = absence_delay, poll_busy, ttl
        self._known: dict[str, RegionProvider] = {}

    async def get(self, region: str) -> RegionProvider:
        """Return a region with its provider, without checking permissions: for controllers and objects that exist."""
        return self.of_region(await self._store.get(Region, region))

    async def get_visible(self, principal: Principal, region: str) -> RegionProvider:
        """Return a region with its provider, or raise NotFound if the region is not visible to the caller."""
        return self.of_region(await self.visible_region(principal, region))

    async def visible_region(self, principal: Principal, region: str) -> Region:
        """Return a region, or raise NotFound if it is not visible to the caller."""
        found = await self._store.get(Region, region)
        if found.is_deleting or is_withdrawn(found) or not is_visible(found, principal):
            raise NotFound(Region.__name__, region)
        return found

    async def visible_regions(self, principal: Principal) -> Sequence[Region]:
        regions = (await self._store.list(Region)).items
        usable = (region for region in regions if not (region.is_deleting or is_withdrawn(region)))
        return [region for region in usable if is_visible(region, principal)]

    def of_region(self, region: Region) -> RegionProvider:
        """Return a region with its provider, or raise Unavailable if none is configured in this process."""
        origin = self._source.find(region.name)
        if origin is None:
            problem = f"The region {region.name} has no provider in this process"
            raise Unavailable(f"{problem}: try again in a moment, or add the region to the configuration.")
        known = self._known.get(region.name)
        if known is None or known.origin is not origin:
            known = self._known[region.name] = self._new(region, origin, known)
        elif known.region is not region:
            known = self._known[region.name] = replace(known, region=region)
        return known

    def capabilities(self, region: Region) -> tuple[str, ...]:
        """Return the capabilities of a region's provider; none, if it is not configured in this process."""
        found = self._source.find(region.name)
        return () if found is None else found.capabilities

    async def close(self, grace_s: float = 10.0) -> None:
        """Reject new calls, and wait for running ones."""
        for known in self._known.values():
            await known.calls.close(grace_s)

    def changes(self) -> ProviderChanges:
        """Return the regions whose providers change from now on."""
        return self._source.changes()

    def _new(self, region: Region, origin: Provider, previous: RegionProvider | None) -> RegionProvider:
        """Return a region with a provider of its own, or one that was opened again.

        The same cloud stays behind it, so calls in flight and reads of an absence stay known.
        """
        methods = frozenset(methods_of(origin))
        if previous is not None and previous.calls.methods == methods:
            calls, absence = previous.calls, previous.absence
        else:
            calls = self._new_calls(region.name, methods)
            absence = AbsenceTracker(self._clock, delay_s=self._confirmation_delay_s(origin))
        provider = proxied(origin, calls)
        networks, images = provider.external_networks, provider.images
        return RegionProvider(
            region=region,
            origin=origin,
            provider=provider,
            calls=calls,
            absence=absence,
            wait_s=self._poll_busy.total_seconds() if origin.events is None else _RECHECK_WITH_EVENTS_S,
            cached_flavors=self._cache(provider.catalogue.flavors),
            cached_external_networks=None if networks is None else self._cache(networks.external_networks),
            cached_images=None if images is None else self._cache(images.images, _IMAGE_TTL),
        )

    def _new_calls(self, region: str, methods: frozenset[str]) -> Calls:
        calls = Calls(
            region,
            methods,
            clock=self._clock,
            randomness=self._randomness,
            settings=self._settings,
            metrics=self._metrics,
        )
        if self._on_known is not None:
            calls.on_known(self._on_known)
        return calls

    def _confirmation_delay_s(self, provider: Provider) -> float:
        """Return the delay between two reads that confirm an absence; where reads are never stale, one is enough."""
        return max(self._absence_delay.total_seconds(), provider.lag_s) if provider.lag_s else 0.0

    def _cache(self, load: Callable[[], Awaitable[ValueT]], ttl: TtlSettings | None = None) -> TtlCache[ValueT]:
        return TtlCache(load, clock=self._clock, ttl=self._ttl or ttl)


async def map_server_errors(call: Awaitable[ValueT], wrong_state: str) -> ValueT:
    """Return the result of a provider call on a server; raise Malformed if the server does not permit the call now.

    A server that its provider does not have is being created or replaced, or waits for capacity.
    """
    try:
        return await call
    except WrongState:
        raise Malformed(wrong_state) from None
    except NotFound:
        raise Malformed("server is not at its provider at the moment: wait until it is provisioned") from None
    except CallRejected as rejected:
        if rejected.outcome != "busy":
            raise
        raise Malformed("server is busy at its provider: try again in a moment") from None
