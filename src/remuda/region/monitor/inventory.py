"""Inventory of a provider: the resources that it has for us, by type, and the objects that they belong to.

Types are in deletion order: a type comes before those that its resources use.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from remuda.providers.contract.common import Handle, id_in, uid_in
from remuda.providers.contract.provider import EventSubject, Provider
from remuda.providers.contract.servers import CloudPort
from remuda.region.kinds.common import ABANDONED_EVENT, is_abandoned
from remuda.region.kinds.filestorage import FileStorage
from remuda.region.kinds.loadbalancers import LoadBalancer
from remuda.region.kinds.networks import Identity, Network
from remuda.region.kinds.orphans import OrphanCause
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.kinds.servers import Server, cloud_uid_of
from remuda.region.servers.provider_spec import replacement_number, replacement_numbers
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.logs import TIMELINE, Entry, Log, subject_of
from remuda.store.objects import Resource


def is_as_desired(port: CloudPort, server: Server) -> bool:
    """Return whether a port has the security groups, sources and public address that its server requests.

    A late call may have reverted it, and no poll finds that, since a port has no version.
    """
    spec, actual = server.spec, port.spec
    sources = {pair.cidr for each in spec.networks for pair in each.allowed_address_pairs}
    return (
        actual.is_public == spec.has_public_ip
        and {*map(id_in, actual.groups)} == {group.id for group in spec.security_groups}
        and {*actual.sources} == sources
    )


SUBJECTS: tuple[EventSubject, ...] = ("server", "port", "balancer", "storage", "group", "network", "tenancy")
"""Types of resources that are scanned."""


def _always(_found: object, _owner: Resource) -> bool:
    return True


def _handle(found: Any) -> Handle:
    handle: Handle = found.handle
    return handle


def _handle_of_spec(found: Any) -> Handle:
    handle: Handle = found.spec.handle
    return handle


@dataclass(frozen=True, slots=True)
class Inventory:
    """Resources of one type at a provider."""

    subject: EventSubject
    kind: type[Resource]
    list_all: Callable[[], AsyncIterator[Sequence[Any]]]
    find: Callable[[Handle], Awaitable[object | None]]
    remove: Callable[[Handle], Awaitable[None]]
    handle_of: Callable[[Any], Handle] = _handle_of_spec
    is_as_desired: Callable[[Any, Any], bool] = _always
    """Returns whether one is as its object requests, for a type that is compared nowhere else."""

    async def pages(self) -> AsyncGenerator[Sequence[tuple[Handle, Any]], None]:
        pages = self.list_all()
        try:
            async for page in pages:
                yield [(self.handle_of(found), found) for found in page]
        finally:
            if isinstance(pages, AsyncGenerator):
                await pages.aclose()


def inventories_of(provider: Provider) -> Iterator[Inventory]:
    if (servers := provider.servers) is not None:
        yield Inventory("server", Server, servers.server_versions, servers.find_server, servers.remove_server, _handle)
    if (ports := provider.ports) is not None:
        yield Inventory("port", Server, ports.ports, ports.find_port, ports.remove_port, is_as_desired=is_as_desired)
    if (balancers := provider.load_balancers) is not None:
        yield Inventory(
            "balancer",
            LoadBalancer,
            balancers.balancers,
            balancers.find_balancer,
            balancers.remove_balancer,
            lambda handle: handle,
        )
    if (storages := provider.file_storages) is not None:
        yield Inventory("storage", FileStorage, storages.storages, storages.find_storage, storages.remove_storage)
    if (groups := provider.security_groups) is not None:
        yield Inventory("group", SecurityGroup, groups.groups, groups.find_group, groups.remove_group, _handle)
    if (networks := provider.networks) is not None:
        yield Inventory("network", Network, networks.networks, networks.find_network, networks.remove_network)
    if (tenancies := provider.tenancies) is not None:
        yield Inventory(
            "tenancy",
            Identity,
            tenancies.tenancies,
            lambda handle: tenancies.find_tenancy(handle.name),
            lambda handle: tenancies.remove_tenancy(handle.name),
            lambda found: Handle("", found.name),
        )


def find_inventory(provider: Provider, subject: EventSubject) -> Inventory | None:
    """Return the inventory of a type, or None if the provider does not support the type."""
    return next((each for each in inventories_of(provider) if each.subject == subject), None)


_PAGE = 100
_MAX_PAGES = 20
_FINALIZER_REMOVED = "FinalizerRemoved"


class _TimelineEvent(msgspec.Struct, frozen=True):
    """Fields of a timeline event that tell what became of an object."""

    event: str = ""
    uid: str = ""


_decoder = msgspec.json.Decoder(_TimelineEvent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """Objects that resources at providers belong to.

    The name of a resource has the id and the uid of its object. If that object does not exist, the timeline tells why,
    as far back as it goes. An object that it does not have is not taken for deleted: the store may have lost it.
    """

    store: Store
    log: Log

    async def orphan_cause(self, inventory: Inventory, handle: Handle) -> OrphanCause | None:
        """Return why a resource belongs to no object, or None if it belongs to one."""
        found = await self.owner_of(inventory, handle)
        return None if isinstance(found, Resource) else found

    async def owner_of(self, inventory: Inventory, handle: Handle) -> Resource | OrphanCause:
        """Return the object of a resource, or why there is none."""
        name, uid = id_in(handle.name), uid_in(handle.name)
        owner = await find(self.store, inventory.kind, name) if name else None
        if owner is None or cloud_uid_of(owner) != uid or is_abandoned(owner):
            return await self._history(inventory, name, uid)
        if inventory.subject == "server" and isinstance(owner, Server):
            return owner if replacement_number(handle.name) in replacement_numbers(owner) else "Superseded"
        return owner

    async def _history(self, inventory: Inventory, name: str, uid: str) -> OrphanCause:
        if not uid:
            return "ObjectUnknown"
        subject = subject_of(self.store.registry.of(inventory.kind).qualified, name)
        was_deleted, before = False, None
        for _ in range(_MAX_PAGES):
            page = await self.log.read_back(TIMELINE, subject, before=before, limit=_PAGE)
            events = _events_of(page.entries, uid)
            if ABANDONED_EVENT in events:
                return "ObjectAbandoned"
            was_deleted, before = was_deleted or _FINALIZER_REMOVED in events, page.next
            if before is None:
                break
        return "ObjectDeleted" if was_deleted else "ObjectUnknown"


def _events_of(entries: Sequence[Entry], uid: str) -> set[str]:
    events = [_decoder.decode(entry.data) for entry in entries]
    return {each.event for each in events if each.uid == uid}
