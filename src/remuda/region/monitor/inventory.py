"""What a provider can have of ours, one sort after the other, all in the same few words.

What stands on something else comes before it: whoever removes in this order is never in the way of himself.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from remuda.providers.contract.common import Handle
from remuda.providers.contract.networks import Tenancies
from remuda.providers.contract.provider import Provider, Subject
from remuda.region.kinds.filestorage import FileStorage
from remuda.region.kinds.identities import Identity
from remuda.region.kinds.loadbalancers import LoadBalancer
from remuda.region.kinds.networks import Network
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.kinds.servers import Server
from remuda.region.monitor.ports import is_as_wanted
from remuda.store.objects import Resource

SUBJECTS: tuple[Subject, ...] = ("server", "port", "balancer", "storage", "group", "network", "tenancy")
"""The sorts that are looked at."""

ThingT = TypeVar("ThingT")


def _always(_thing: object, _owner: Resource) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """One sort of thing."""

    subject: Subject
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


def find_holding(provider: Provider, subject: Subject) -> Holding | None:
    """Return one sort of thing, or None if the provider has no such."""
    return next((each for each in holdings_of(provider) if each.subject == subject), None)


def _tenancies(tenancies: Tenancies) -> Holding:
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
