"""VLANs of networks where a region has a physical network: each has its own, and releases it at its end."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import pytest
from msgspec.structs import replace

from remuda.kernel.errors import Conflict
from remuda.region.kinds.networks import Network, TakenVlan, VLANAllocation, VLANAllocationSpec, vlans_name
from remuda.region.kinds.regions import (
    NetworksConfig,
    ProviderNetworksConfig,
    Region,
    RegionOpenstack,
    VlanConfig,
    VlanSegment,
)
from remuda.region.networks.ipam import allocate_vlan, release_vlan, vlan_segments
from remuda.region.networks.routes import NETWORKS
from tests.kit.environment import options
from tests.kit.region.network_requests import all_is_gone
from tests.kit.region.networks import TENANT, NetworksEnvironment
from tests.kit.region.provider_faults import ILLS
from tests.kit.region.resource_api import REGION, clouds_over

SEGMENTS = ((100, 101), (200, 200))
WOKEN_S = 15.0
"""Time enough to look twice that something is gone; nothing is looked at again by itself so soon."""
T = TypeVar("T")


async def wire(region_networks: NetworksEnvironment, segments: Sequence[tuple[int, int]] = SEGMENTS) -> Region:
    """Give the region a physical network, with these VLANs."""
    chosen = VlanConfig(segments=tuple(VlanSegment(start_id=first, end_id=last) for first, last in segments))
    provider = ProviderNetworksConfig(physical_network="physnet", vlan=chosen)
    openstack = RegionOpenstack(endpoint="", network=NetworksConfig(provider_networks=provider))
    found = await region_networks.store.get(Region, REGION)
    return await region_networks.store.update(replace(found, spec=replace(found.spec, openstack=openstack)))


async def taken(region_networks: NetworksEnvironment) -> dict[str, int]:
    """Return who has which VLAN."""
    found = (await region_networks.store.list(VLANAllocation)).items
    return {each.physical_network_id: each.id for held in found for each in held.spec.allocations}


async def at_cloud(region_networks: NetworksEnvironment) -> list[int | None]:
    assert region_networks.provider.networks is not None
    found = [each.spec.vlan async for part in region_networks.provider.networks.networks() for each in part]
    return sorted(found, key=lambda vlan: vlan or 0)


async def delete(region_networks: NetworksEnvironment, network: str) -> None:
    assert (await region_networks.networks.ask(TENANT).delete(f"{NETWORKS}/{network}")).status == 202


async def vlan_of(region_networks: NetworksEnvironment, network: str) -> int | None:
    seen = (await region_networks.store.get(Network, network)).status.openstack
    assert seen is not None
    return seen.vlan_id


@pytest.mark.parametrize(
    ("chosen", "wanted"),
    [
        (None, []),
        (ProviderNetworksConfig(), []),
        (ProviderNetworksConfig(physical_network="physnet"), [range(1, 4095)]),
        (ProviderNetworksConfig(physical_network="physnet", vlan=VlanConfig()), [range(1, 4095)]),
        (
            ProviderNetworksConfig(
                physical_network="physnet", vlan=VlanConfig(segments=(VlanSegment(start_id=7, end_id=7),))
            ),
            [range(7, 8)],
        ),
    ],
)
async def test_a_region_has_vlans_to_give_if_it_has_a_physical_network(
    region_networks: NetworksEnvironment, chosen: ProviderNetworksConfig | None, wanted: Sequence[range]
) -> None:
    found = await region_networks.store.get(Region, REGION)
    openstack = RegionOpenstack(endpoint="", network=NetworksConfig(provider_networks=chosen))
    assert list(vlan_segments(replace(found, spec=replace(found.spec, openstack=openstack)))) == wanted
    assert not vlan_segments(found)


@options(at_work=True, seeds=3)
async def test_each_network_is_made_as_a_vlan_of_its_own_and_releases_it_at_its_end(
    region_networks: NetworksEnvironment,
) -> None:
    await wire(region_networks)
    one, other = await region_networks.make_network(), await region_networks.make_network()
    await region_networks.rest()
    assert sorted((await taken(region_networks)).values()) == await at_cloud(region_networks) == [100, 101]
    assert await vlan_of(region_networks, one) == (await taken(region_networks))[one]
    await region_networks.confirm_absence()

    await delete(region_networks, one)
    await region_networks.rest()
    assert await taken(region_networks) == {other: await vlan_of(region_networks, other)}
    await delete(region_networks, other)
    await region_networks.rest()
    assert await taken(region_networks) == {}
    await all_is_gone(region_networks)


@options(at_work=True)
async def test_a_region_without_a_physical_network_gives_none(region_networks: NetworksEnvironment) -> None:
    name = await region_networks.make_network()
    await region_networks.rest()
    assert await vlan_of(region_networks, name) is None
    assert (await region_networks.store.list(VLANAllocation)).items == []

    await wire(region_networks)  # what is there stays as it was made
    await region_networks.confirm_absence()
    assert await at_cloud(region_networks) == [None]
    await delete(region_networks, name)
    await region_networks.rest()
    await all_is_gone(region_networks)


@options(at_work=True)
async def test_a_network_keeps_its_vlan_when_the_region_has_others_to_give(
    region_networks: NetworksEnvironment,
) -> None:
    await wire(region_networks)
    name = await region_networks.make_network()
    await region_networks.rest()
    await wire(region_networks, [(300, 310)])
    body = {"metadata": {"name": "net"}, "spec": {"dnsNameservers": ["9.9.9.9"]}}
    assert (await region_networks.networks.ask(TENANT).put(f"{NETWORKS}/{name}", body)).status == 202
    await region_networks.rest()
    assert (await region_networks.available(Network, name)).reason == "Provisioned"
    assert await at_cloud(region_networks) == [100]


@options(at_work=True)
async def test_where_none_is_left_a_network_says_so_and_has_the_next_that_is_released(
    region_networks: NetworksEnvironment,
) -> None:
    await wire(region_networks)
    first = [await region_networks.make_network() for _ in range(3)]
    await region_networks.rest()
    late = await region_networks.make_network()
    await region_networks.rest()
    said = await region_networks.available(Network, late)
    assert (said.status, said.reason) == ("False", "VLANsExhausted")
    assert said.message == "its region has no free VLAN: delete a network"
    assert len(await at_cloud(region_networks)) == 3
    released = (await taken(region_networks))[first[1]]
    await delete(region_networks, first[1])
    await region_networks.world.clock.sleep(WOKEN_S)
    assert await vlan_of(region_networks, late) == released


@options(at_work=True)
async def test_a_network_that_never_got_one_can_go(region_networks: NetworksEnvironment) -> None:
    await wire(region_networks, [(7, 7)])
    await region_networks.make_network()
    await region_networks.rest()
    late = await region_networks.make_network()
    await region_networks.rest()
    await delete(region_networks, late)
    await region_networks.rest()
    assert [each.name for each in (await region_networks.store.list(Network)).items] == list(
        await taken(region_networks)
    )


@options(at_work=True, seeds=10, rates=ILLS)
async def test_a_network_keeps_its_vlan_while_the_cloud_fails_it(region_networks: NetworksEnvironment) -> None:
    await wire(region_networks)
    names = [await region_networks.make_network() for _ in range(3)]
    await region_networks.world.clock.sleep(1_800)
    region_networks.world.faults.stop()
    await region_networks.world.clock.sleep(1_800)
    assert sorted(await taken(region_networks)) == sorted(names)
    assert await at_cloud(region_networks) == [100, 101, 200]


@options(at_work=True)
async def test_a_vlan_that_something_else_has_at_the_provider_is_told(region_networks: NetworksEnvironment) -> None:
    await wire(region_networks, [(7, 7)])
    name = await region_networks.make_network()
    await region_networks.rest()
    held = (await region_networks.store.list(VLANAllocation)).items[0]
    await region_networks.store.update(replace(held, spec=VLANAllocationSpec()))  # as after a restore from a backup
    late = await region_networks.make_network()
    await region_networks.rest()
    said = await region_networks.available(Network, late)
    assert (said.reason, said.message) == ("VLANTaken", "another network at the provider has its VLAN 7")
    assert (await region_networks.available(Network, name)).reason == "Provisioned"


@options(at_work=True)
async def test_what_nobody_has_any_more_is_found_when_none_is_left(region_networks: NetworksEnvironment) -> None:
    region = await wire(region_networks, [(1, 3)])
    one = await region_networks.make_network()
    await region_networks.rest()
    held = (await region_networks.store.list(VLANAllocation)).items[0]
    lost = [TakenVlan(id=each, physical_network_id=f"gone-{each}") for each in (2, 3)]
    await region_networks.store.update(
        replace(held, spec=VLANAllocationSpec(allocations=(*held.spec.allocations, *lost)))
    )
    late = await region_networks.make_network()
    await region_networks.rest()
    assert await taken(region_networks) == {one: 1, late: 2}
    assert vlans_name(region.spec.provider, REGION) == held.name


@options(seeds=5)
async def test_none_is_given_twice_however_many_ask_at_once(region_networks: NetworksEnvironment) -> None:
    await wire(region_networks, [(1, 40)])
    cloud = await clouds_over(region_networks.world, region_networks.store, region_networks.providers).get(REGION)

    async def take(number: int) -> int | None:
        return await _until_written(lambda: allocate_vlan(region_networks.store, cloud, f"network-{number}"))

    async def give(number: int) -> None:
        await _until_written(lambda: release_vlan(region_networks.store, cloud.region, f"network-{number}"))

    given = await asyncio.gather(*[take(number % 40) for number in range(80)])
    assert given[:40] == given[40:], "who has one is given no other"
    assert sorted(each for each in given[:40] if each is not None) == list(range(1, 41))
    await asyncio.gather(*[give(number) for number in range(40)])
    assert await taken(region_networks) == {}


async def _until_written(write: Callable[[], Awaitable[T]]) -> T:
    """Try until nobody else writes at the same time, as controllers do."""
    while True:
        with suppress(Conflict):
            return await write()
