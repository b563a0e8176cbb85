"""What a provider can have of ours, one sort after the other, all in the same few words.

What stands on something else comes before it: whoever removes in this order is never in the way of himself.

Whether a port is as its server wants it, as far as the two alone tell: a call that came late may have put it back.

No poll tells of that, for a port has no version. The search for orphans reads all ports and whose they are anyway, so
it is noticed there.

Whose something at a provider is: its name tells for which object, and which incarnation of it, it was made.

If that object is not there, our own timeline tells what became of it, as far back as it goes. What it does not know of
is not taken for deleted: the store may be another one, or may have lost something.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from remuda.providers.contract.common import Handle, id_in, uid_in
from remuda.providers.contract.networks import CloudTenancies
from remuda.providers.contract.provider import EventSubject, Provider
from remuda.providers.contract.servers import CloudPort
from remuda.region.kinds.common import ABANDONMENT, is_abandoned
from remuda.region.kinds.filestorage import FileStorage
from remuda.region.kinds.loadbalancers import LoadBalancer
from remuda.region.kinds.networks import Identity, Network
from remuda.region.kinds.orphans import Why
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.kinds.servers import Server, cloud_uid_of
from remuda.region.servers.provider_spec import number_in, numbers_of
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.logs import Entry, Log, subject_of
from remuda.store.objects import Resource


def is_as_wanted(port: CloudPort, server: Server) -> bool:
    """Tell whether a port has the groups, the sources and the sort of address that its server is to have."""
    spec, there = server.spec, port.spec
    sources = {pair.cidr for each in spec.networks for pair in each.allowed_address_pairs}
    return (
        there.is_public == spec.wants_public_ip
        and {*map(id_in, there.groups)} == {group.id for group in spec.security_groups}
        and {*there.sources} == sources
    )


SUBJECTS: tuple[EventSubject, ...] = ("server", "port", "balancer", "storage", "group", "network", "tenancy")
"""The sorts that are looked at."""

ThingT = TypeVar("ThingT")


def _always(_thing: object, _owner: Resource) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """One sort of thing."""

    subject: EventSubject
    kind: type[Resource]
    """The kind of the objects that such things are made for."""
    parts: Callable[[], AsyncGenerator[Sequence[tuple[Handle, Any]], None]]
    """Returns all of them, in parts."""
    find: Callable[[Handle], Awaitable[object | None]]
    remove: Callable[[Handle], Awaitable[None]]
    is_as_wanted: Callable[[Any, Any], bool] = _always
    """Tells whether one is as its object wants it, where nobody else would notice."""


def holdings_of(provider: Provider) -> Iterator[Holding]:
    """Yield what a provider can have, as far as it has it."""
    if (servers := provider.servers) is not None:
        yield Holding(
            subject="server",
            kind=Server,
            parts=lambda: _with_handles(servers.sightings(), lambda each: each.handle),
            find=servers.find_server,
            remove=servers.remove_server,
        )
    if (ports := provider.ports) is not None:
        yield Holding(
            subject="port",
            kind=Server,
            parts=lambda: _with_handles(ports.ports(), lambda each: each.spec.handle),
            find=ports.find_port,
            remove=ports.remove_port,
            is_as_wanted=is_as_wanted,
        )
    if (balancers := provider.load_balancers) is not None:
        yield Holding(
            subject="balancer",
            kind=LoadBalancer,
            parts=lambda: _with_handles(balancers.balancers(), lambda each: each.spec.handle),
            find=balancers.find_balancer,
            remove=balancers.remove_balancer,
        )
    if (storages := provider.file_storages) is not None:
        yield Holding(
            subject="storage",
            kind=FileStorage,
            parts=lambda: _with_handles(storages.storages(), lambda each: each.spec.handle),
            find=storages.find_storage,
            remove=storages.remove_storage,
        )
    yield from _places(provider)


def _places(provider: Provider) -> Iterator[Holding]:
    """Yield what other things stand on."""
    if (groups := provider.security_groups) is not None:
        yield Holding(
            subject="group",
            kind=SecurityGroup,
            parts=lambda: _with_handles(groups.groups(), lambda each: each.handle),
            find=groups.find_group,
            remove=groups.remove_group,
        )
    if (networks := provider.networks) is not None:
        yield Holding(
            subject="network",
            kind=Network,
            parts=lambda: _with_handles(networks.networks(), lambda each: each.spec.handle),
            find=networks.find_network,
            remove=networks.remove_network,
        )
    if provider.tenancies is not None:
        yield _tenancies(provider.tenancies)


def find_holding(provider: Provider, subject: EventSubject) -> Holding | None:
    """Return one sort of thing, or None if the provider has no such."""
    return next((each for each in holdings_of(provider) if each.subject == subject), None)


def _tenancies(tenancies: CloudTenancies) -> Holding:
    return Holding(
        subject="tenancy",
        kind=Identity,
        parts=lambda: _with_handles(tenancies.tenancies(), lambda each: Handle("", each.name)),
        find=lambda handle: tenancies.find_tenancy(handle.name),
        remove=lambda handle: tenancies.remove_tenancy(handle.name),
    )


async def _with_handles(
    parts: AsyncIterator[Sequence[ThingT]], handle_of: Callable[[ThingT], Handle]
) -> AsyncGenerator[Sequence[tuple[Handle, ThingT]], None]:
    try:
        async for part in parts:
            yield [(handle_of(thing), thing) for thing in part]
    finally:
        if isinstance(parts, AsyncGenerator):
            await parts.aclose()


_PAGE = 100
_MOST_PAGES = 20
_LET_GO = "FinalizerRemoved"


class _Said(msgspec.Struct, frozen=True):
    """What of a timeline's entry matters here."""

    event: str = ""
    uid: str = ""


_said = msgspec.json.Decoder(_Said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """Knows whose things are."""

    store: Store
    log: Log

    async def why_orphaned(self, holding: Holding, handle: Handle) -> Why | None:
        """Return why something is nobody's, or None if an object stands for it."""
        found = await self.owner_of(holding, handle)
        return None if isinstance(found, Resource) else found

    async def owner_of(self, holding: Holding, handle: Handle) -> Resource | Why:
        """Return the object that something stands for, or why there is none."""
        name, uid = id_in(handle.name), uid_in(handle.name)
        owner = await find(self.store, holding.kind, name) if name else None
        if owner is None or cloud_uid_of(owner) != uid or is_abandoned(owner):
            return await self._history(holding, name, uid)
        if holding.subject == "server" and isinstance(owner, Server):
            return owner if number_in(handle.name) in numbers_of(owner) else "Superseded"
        return owner

    async def _history(self, holding: Holding, name: str, uid: str) -> Why:
        if not uid:
            return "ObjectUnknown"
        subject = subject_of(self.store.registry.of(holding.kind).qualified, name)
        was_let_go, before = False, None
        for _ in range(_MOST_PAGES):
            page = await self.log.read_back("timeline", subject, before=before, limit=_PAGE)
            events = _events_of(page.entries, uid)
            if ABANDONMENT in events:
                return "ObjectAbandoned"
            was_let_go, before = was_let_go or _LET_GO in events, page.next
            if before is None:
                break
        return "ObjectLetGo" if was_let_go else "ObjectUnknown"


def _events_of(entries: Sequence[Entry], uid: str) -> set[str]:
    said = [_said.decode(entry.data) for entry in entries]
    return {each.event for each in said if each.uid == uid}
