"""IPAM: addresses of networks and VLANs of regions, allocated in the store before a provider uses them.

An address is an object per network and address: creating it is the allocation. It is released after the provider no
longer uses it, or with its network. It is stored under the uid that names at the provider contain, so that its holder
is found from there, too.

A region has VLANs if its configuration names a physical network: the configured segments, or all. One object per region
has all of them, and each write compares versions. A network keeps its VLAN until the provider has removed it. If none
is left, those are reclaimed whose network exists neither in the store nor at the provider.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from ipaddress import IPv4Address
from itertools import islice

from msgspec.structs import replace

from remuda.kernel.errors import AlreadyExists, Conflict, NotFound, OwnerRejected
from remuda.reconcile.sources import names
from remuda.region.catalogue.provider_registry import RegionProvider, require
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
from remuda.resources.conventions import NETWORK as NETWORK_LABEL
from remuda.resources.conventions import ORGANIZATION, PROJECT, REGION
from remuda.resources.crud import find, retry_on_conflict
from remuda.store.contract import Store
from remuda.store.objects import Metadata, ResourceT

_TRIES = 8


async def find_address(store: Store, holder: ResourceT) -> Address | None:
    """Return the address of a server or load balancer, but not that of an earlier incarnation."""
    return await find_address_of(store, holder.name, cloud_uid_of(holder))


async def find_address_of(store: Store, holder: str, uid: str) -> Address | None:
    """Return the address of a holder by its name and its uid at the provider, even if the holder was deleted."""
    found = (await store.list(Address, index=("holder", holder))).items
    return next((each for each in found if each.spec.holder_uid == uid), None)


async def allocate_address(store: Store, network: Network, holder: ResourceT) -> Address | None:
    """Allocate an address of a network to a holder that has none, or return None if none is free."""
    pool = plan_of(network).dhcp_pool
    for ip in islice(probe_order(pool, holder.uid), _TRIES):
        taken = await allocate_specific_address(store, network, holder, ip)
        if taken is not None:
            return taken
    while (free := free_address(pool, holder.uid, await _used(store, network))) is not None:
        taken = await allocate_specific_address(store, network, holder, free)
        if taken is not None:
            return taken
    return None


async def allocate_specific_address(
    store: Store, network: Network, holder: ResourceT, ip: IPv4Address
) -> Address | None:
    """Allocate this address of a network to a holder, or return None if another one has it."""
    scope = {label: network.metadata.labels[label] for label in (ORGANIZATION, PROJECT, REGION)}
    metadata = Metadata(
        name=address_name(network.name, ip),
        labels=scope | {NETWORK_LABEL: network.name},
        owner_references=(NETWORK.owner(network),),
    )
    uid = cloud_uid_of(holder)
    spec = AddressSpec(ip=str(ip), mac=mac_of(network.name, ip), holder=holder.name, holder_uid=uid)
    try:
        return await store.create(Address(metadata=metadata, spec=spec))
    except OwnerRejected:
        raise Conflict(Network.__name__, network.name) from None  # both it and the holder are being deleted
    except AlreadyExists:
        found = await find(store, Address, metadata.name)
        return found if found is not None and found.spec.holder_uid == uid else None


async def release_address(store: Store, holder: ResourceT) -> None:
    await release_address_of(store, holder.name, cloud_uid_of(holder))


async def release_address_of(store: Store, holder: str, uid: str) -> None:
    """Release the address of a holder, by its name and its uid at the provider."""
    found = await find_address_of(store, holder, uid)
    if found is not None:
        with suppress(NotFound):  # it was deleted with its network meanwhile
            await store.delete(Address, found.name, uid=found.uid)


async def _used(store: Store, network: Network) -> set[IPv4Address]:
    """Return the allocated addresses, read from the names of their objects."""
    return {
        IPv4Address(name.rpartition(".")[2].replace("-", "."))
        async for name in names(store, Address, labels={NETWORK_LABEL: network.name})
    }


_ALL_VLANS = (range(1, 4095),)


def vlan_segments(region: Region) -> Sequence[range]:
    """Return the VLANs of a region: none, if its networks are not VLANs of a physical network."""
    openstack = region.spec.openstack
    provider = None if openstack is None or openstack.network is None else openstack.network.provider_networks
    if provider is None or not provider.physical_network:
        return ()
    chosen = () if provider.vlan is None else provider.vlan.segments
    return tuple(range(each.start_id, each.end_id + 1) for each in chosen) or _ALL_VLANS


async def allocate_vlan(store: Store, cloud: RegionProvider, network: str) -> int | None:
    """Return the VLAN of a network, and allocate one if it has none; None if none is left."""

    async def allocate() -> int | None:
        allocation = await _allocation(store, cloud.region)
        own = next((each.id for each in allocation.spec.allocations if each.physical_network_id == network), None)
        if own is not None:
            return own
        taken: Sequence[TakenVlan] = allocation.spec.allocations
        free = _first_free(vlan_segments(cloud.region), taken)
        if free is None:
            taken = await _still_used(store, cloud, taken)
            free = _first_free(vlan_segments(cloud.region), taken)
        if free is not None:
            await _write(store, allocation, (*taken, TakenVlan(id=free, physical_network_id=network)))
        return free

    return await retry_on_conflict(allocate)


async def release_vlan(store: Store, region: Region, network: str) -> None:
    async def release() -> None:
        allocation = await _allocation(store, region)
        kept = [each for each in allocation.spec.allocations if each.physical_network_id != network]
        if len(kept) != len(allocation.spec.allocations):
            await _write(store, allocation, kept)

    await retry_on_conflict(release)


async def _allocation(store: Store, region: Region) -> VLANAllocation:
    """Return the allocated VLANs of a region; a new object, if none was ever allocated."""
    name = vlans_name(region.spec.provider, region.name)
    return await find(store, VLANAllocation, name) or VLANAllocation(metadata=Metadata(name=name))


async def _write(store: Store, allocation: VLANAllocation, taken: Iterable[TakenVlan]) -> None:
    spec = VLANAllocationSpec(allocations=tuple(sorted(taken, key=lambda each: each.id)))
    changed = replace(allocation, spec=spec)
    if allocation.version:
        await store.update(changed)
        return
    try:
        await store.create(changed)
    except AlreadyExists:
        raise Conflict(VLANAllocation.__name__, allocation.name) from None  # another process created it


def _first_free(segments: Sequence[range], taken: Iterable[TakenVlan]) -> int | None:
    used = {each.id for each in taken}
    return next((vlan for segment in segments for vlan in segment if vlan not in used), None)


async def _still_used(store: Store, cloud: RegionProvider, taken: Iterable[TakenVlan]) -> Sequence[TakenVlan]:
    """Return the VLANs of networks that still exist, in the store or at the provider."""
    orphaned = [each for each in taken if await find(store, Network, each.physical_network_id) is None]
    if not orphaned:
        return tuple(taken)
    at_cloud = {each.spec.vlan async for part in require(cloud.provider.networks).networks() for each in part}
    unused = {each.id for each in orphaned} - at_cloud
    return [each for each in taken if each.id not in unused]
