"""VLANs of a region's physical network, each given to one network at a time, before any provider hears of it.

A region has them if its configuration names a physical network: those of its segments, or all there are. One object for
each region has what is taken, and every change is made over the version that was read, so that none is given twice. A
network keeps its own for life, also through failures, and gives it back when the provider has let go of it.

When none is left, it is looked for those that nobody has any more: their network is neither in our store nor at the
provider. (Whoever abandons a network leaves its VLAN to whatever may still be there.)

Addresses of a network, each given to one holder at a time, in our own store before any provider hears of it.

To try is cheap and to list is not, so an address is tried for where few others look; only where that fails again and
again is it worked out which are free. An address goes with its network, and before that when its holder gives it back:
after the provider has let go of it, so that nobody else can have it too soon. It is held under the uid that the names
at the provider carry, so that whatever is found there, by whomever, tells whose address it has.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from ipaddress import IPv4Address
from itertools import islice

from msgspec.structs import replace

from remuda.kernel.errors import AlreadyExists, Conflict, NotFound, OwnerRejected
from remuda.reconcile.sources import names
from remuda.region.catalogue.provider_registry import RegionProvider, need
from remuda.region.kinds.networks import (
    NETWORK,
    Address,
    AddressSpec,
    Network,
    TakenVlan,
    VLANAllocation,
    VLANAllocationSpec,
    address_name,
    vlans_name,
)
from remuda.region.kinds.regions import Region
from remuda.region.kinds.servers import cloud_uid_of
from remuda.region.networks.address_plan import free_address, mac_of, probe_order
from remuda.region.networks.rules import plan_of
from remuda.resources import conventions as regional
from remuda.resources.conventions import ORGANIZATION, PROJECT
from remuda.resources.crud import find, retry_on_conflict
from remuda.store.contract import Store
from remuda.store.objects import Metadata, ResourceT

_TRIES = 8


async def find_address(store: Store, holder: ResourceT) -> Address | None:
    """Return the address that a server or load balancer has; what another of its name had is none of its own."""
    return await find_held(store, holder.name, cloud_uid_of(holder))


async def find_held(store: Store, holder: str, uid: str) -> Address | None:
    """Return the address that is held for a holder, by its name and its uid at the cloud, even if that is gone."""
    found = (await store.list(Address, index=("holder", holder))).items
    return next((each for each in found if each.spec.holder_uid == uid), None)


async def take_address(store: Store, network: Network, holder: ResourceT) -> Address | None:
    """Give a holder that has none an address of a network, or return None if all are taken."""
    pool = plan_of(network).dhcp_pool
    for ip in islice(probe_order(pool, holder.uid), _TRIES):
        taken = await take_this_address(store, network, holder, ip)
        if taken is not None:
            return taken
    while (free := free_address(pool, holder.uid, await _used(store, network))) is not None:
        taken = await take_this_address(store, network, holder, free)
        if taken is not None:
            return taken
    return None


async def take_this_address(store: Store, network: Network, holder: ResourceT, ip: IPv4Address) -> Address | None:
    """Give a holder this address of a network, or return None if another has it."""
    where = {label: network.metadata.labels[label] for label in (ORGANIZATION, PROJECT, regional.REGION)}
    metadata = Metadata(
        name=address_name(network.name, ip),
        labels=where | {regional.NETWORK: network.name},
        owner_references=(NETWORK.owner(network),),
    )
    uid = cloud_uid_of(holder)
    spec = AddressSpec(ip=str(ip), mac=mac_of(network.name, ip), holder=holder.name, holder_uid=uid)
    try:
        return await store.create(Address(metadata=metadata, spec=spec))
    except OwnerRejected:
        raise Conflict(Network.__name__, network.name) from None  # it is to go since it was read, and its holder too
    except AlreadyExists:
        found = await find(store, Address, metadata.name)
        return found if found is not None and found.spec.holder_uid == uid else None


async def give_address_back(store: Store, holder: ResourceT) -> None:
    """Let others have the address of a holder that has no more use for it."""
    await give_held_back(store, holder.name, cloud_uid_of(holder))


async def give_held_back(store: Store, holder: str, uid: str) -> None:
    """Let others have the address that is held for a holder, by its name and its uid at the cloud."""
    found = await find_held(store, holder, uid)
    if found is not None:
        with suppress(NotFound):  # it went with its network meanwhile
            await store.delete(Address, found.name, uid=found.uid)


async def _used(store: Store, network: Network) -> set[IPv4Address]:
    """Return which addresses are taken, by the names of the objects that stand for them."""
    return {
        IPv4Address(name.rpartition(".")[2].replace("-", "."))
        async for name in names(store, Address, labels={regional.NETWORK: network.name})
    }


_ALL = (range(1, 4095),)


def segments_of(region: Region) -> Sequence[range]:
    """Return the VLANs that are a region's to give: none, where networks are not VLANs of a physical network."""
    openstack = region.spec.openstack
    provider = None if openstack is None or openstack.network is None else openstack.network.provider_networks
    if provider is None or not provider.physical_network:
        return ()
    chosen = () if provider.vlan is None else provider.vlan.segments
    return tuple(range(each.start_id, each.end_id + 1) for each in chosen) or _ALL


async def take_vlan(store: Store, cloud: RegionProvider, network: str) -> int | None:
    """Return the VLAN of a network, which it is given if it has none; None if there is none left."""

    async def take() -> int | None:
        held = await _held(store, cloud.region)
        own = next((each.id for each in held.spec.allocations if each.physical_network_id == network), None)
        if own is not None:
            return own
        taken: Sequence[TakenVlan] = held.spec.allocations
        free = _first_free(segments_of(cloud.region), taken)
        if free is None:
            taken = await _still_had(store, cloud, taken)
            free = _first_free(segments_of(cloud.region), taken)
        if free is not None:
            await _write(store, held, (*taken, TakenVlan(id=free, physical_network_id=network)))
        return free

    return await retry_on_conflict(take)


async def give_vlan_back(store: Store, region: Region, network: str) -> None:
    """Let others have the VLAN of a network that the provider has no more; one without any is fine."""

    async def give() -> None:
        held = await _held(store, region)
        kept = [each for each in held.spec.allocations if each.physical_network_id != network]
        if len(kept) != len(held.spec.allocations):
            await _write(store, held, kept)

    await retry_on_conflict(give)


async def _held(store: Store, region: Region) -> VLANAllocation:
    """Return what is taken in a region; nothing yet, if that was never written."""
    name = vlans_name(region.spec.provider, region.name)
    return await find(store, VLANAllocation, name) or VLANAllocation(metadata=Metadata(name=name))


async def _write(store: Store, held: VLANAllocation, taken: Iterable[TakenVlan]) -> None:
    spec = VLANAllocationSpec(allocations=tuple(sorted(taken, key=lambda each: each.id)))
    changed = replace(held, spec=spec)
    if held.version:
        await store.update(changed)
        return
    try:
        await store.create(changed)
    except AlreadyExists:
        raise Conflict(VLANAllocation.__name__, held.name) from None  # another was the first


def _first_free(segments: Sequence[range], taken: Iterable[TakenVlan]) -> int | None:
    used = {each.id for each in taken}
    return next((vlan for segment in segments for vlan in segment if vlan not in used), None)


async def _still_had(store: Store, cloud: RegionProvider, taken: Iterable[TakenVlan]) -> Sequence[TakenVlan]:
    """Return what is taken by networks that there are."""
    lost = [each for each in taken if await find(store, Network, each.physical_network_id) is None]
    if not lost:
        return tuple(taken)
    at_cloud = {each.spec.vlan async for part in need(cloud.provider.networks).networks() for each in part}
    unused = {each.id for each in lost} - at_cloud
    return [each for each in taken if each.id not in unused]
