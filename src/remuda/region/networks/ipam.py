"""VLANs of a region's physical network, each given to one network at a time, before any provider hears of it.

A region has them if its configuration names a physical network: those of its segments, or all there are. One object for
each region has what is taken, and every change is made over the version that was read, so that none is given twice. A
network keeps its own for life, also through failures, and gives it back when the provider has let go of it.

When none is left, it is looked for those that nobody has any more: their network is neither in our store nor at the
provider. (Whoever abandons a network leaves its VLAN to whatever may still be there.)
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from remuda.kernel.errors import AlreadyExists, Conflict
from remuda.region.catalogue.provider_registry import Cloud, need
from remuda.region.kinds.networks import Network
from remuda.region.kinds.regions import Region
from remuda.region.kinds.vlans import TakenVlan, VLANAllocation, VLANAllocationSpec, vlans_name
from remuda.resources.crud import find, until_written
from remuda.store.contract import Store
from remuda.store.objects import Metadata

_ALL = (range(1, 4095),)


def segments_of(region: Region) -> Sequence[range]:
    """Return the VLANs that are a region's to give: none, where networks are not VLANs of a physical network."""
    openstack = region.spec.openstack
    provider = None if openstack is None or openstack.network is None else openstack.network.provider_networks
    if provider is None or not provider.physical_network:
        return ()
    chosen = () if provider.vlan is None else provider.vlan.segments
    return tuple(range(each.start_id, each.end_id + 1) for each in chosen) or _ALL


async def take_vlan(store: Store, cloud: Cloud, network: str) -> int | None:
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

    return await until_written(take)


async def give_vlan_back(store: Store, region: Region, network: str) -> None:
    """Let others have the VLAN of a network that the provider has no more; one without any is fine."""

    async def give() -> None:
        held = await _held(store, region)
        kept = [each for each in held.spec.allocations if each.physical_network_id != network]
        if len(kept) != len(held.spec.allocations):
            await _write(store, held, kept)

    await until_written(give)


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


async def _still_had(store: Store, cloud: Cloud, taken: Iterable[TakenVlan]) -> Sequence[TakenVlan]:
    """Return what is taken by networks that there are."""
    lost = [each for each in taken if await find(store, Network, each.physical_network_id) is None]
    if not lost:
        return tuple(taken)
    at_cloud = {each.spec.vlan async for part in need(cloud.provider.networks).networks() for each in part}
    unused = {each.id for each in lost} - at_cloud
    return [each for each in taken if each.id not in unused]
