"""Which VLANs of a region are taken. One object for each region has all of them, so that none is given twice."""

import msgspec

from remuda.region.kinds.api_groups import SHARED, VERSION
from remuda.region.kinds.lifecycle import ProviderType
from remuda.store.kinds import Kind
from remuda.store.objects import Resource, StoredStruct


def vlans_name(provider: ProviderType, region: str) -> str:
    """Return the name of the object that has a region's VLANs."""
    return f"{provider}.{region}"


class TakenVlan(StoredStruct, frozen=True):
    """A VLAN, and the network that has it."""

    id: int
    physical_network_id: str = msgspec.field(name="physicalNetworkID")


class VLANAllocationSpec(StoredStruct, frozen=True):
    """What is taken."""

    allocations: tuple[TakenVlan, ...] = ()


class VLANAllocation(Resource, frozen=True):
    """The VLANs of one region."""

    spec: VLANAllocationSpec = VLANAllocationSpec()


def region_of_vlans(held: VLANAllocation) -> str:
    """Return the region whose VLANs they are."""
    return held.name.partition(".")[2]


VLAN_ALLOCATION = Kind(type=VLANAllocation, group=SHARED, version=VERSION, plural="vlanallocations")
"""Taken VLANs, named by `vlans_name`."""
