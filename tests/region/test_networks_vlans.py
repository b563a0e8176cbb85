"""VLANs of networks where a region has a physical network: each has its own, and gives it back at its end."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import pytest
from msgspec.structs import replace

from remuda.kernel.errors import Conflict
from remuda.region.kinds.networks import Network, TakenVlan, VLANAllocation, VLANAllocationSpec, vlans_name
from remuda.region.kinds.regions import Networks, ProviderNetworks, Region, RegionOpenstack, Vlan, VlanSegment
from remuda.region.networks.ipam import give_vlan_back, segments_of, take_vlan
from remuda.region.networks.routes import NETWORKS
from tests.region.networks_asking import all_is_gone
from tests.region.networks_ground import TENANT, Ground, on_ground
from tests.region.room import REGION, clouds_over
from tests.region.test_networks_controllers import ILLS

SEGMENTS = ((100, 101), (200, 200))
WOKEN_S = 15.0
"""Time enough to look twice that something is gone; nothing is looked at again by itself so soon."""
T = TypeVar("T")


async def wire(ground: Ground, segments: Sequence[tuple[int, int]] = SEGMENTS) -> Region:
    """Give the region a physical network, with these VLANs."""
    chosen = Vlan(segments=tuple(VlanSegment(start_id=first, end_id=last) for first, last in segments))
    provider = ProviderNetworks(physical_network="physnet", vlan=chosen)
    openstack = RegionOpenstack(endpoint="", network=Networks(provider_networks=provider))
    found = await ground.store.get(Region, REGION)
    return await ground.store.update(replace(found, spec=replace(found.spec, openstack=openstack)))


async def taken(ground: Ground) -> dict[str, int]:
    """Return who has which VLAN."""
    found = (await ground.store.list(VLANAllocation)).items
    return {each.physical_network_id: each.id for held in found for each in held.spec.allocations}


async def at_cloud(ground: Ground) -> list[int | None]:
    assert ground.provider.networks is not None
    found = [each.spec.vlan async for part in ground.provider.networks.networks() for each in part]
    return sorted(found, key=lambda vlan: vlan or 0)


async def delete(ground: Ground, network: str) -> None:
    assert (await ground.networks.ask(TENANT).delete(f"{NETWORKS}/{network}")).status == 202


async def vlan_of(ground: Ground, network: str) -> int | None:
    seen = (await ground.store.get(Network, network)).status.openstack
    assert seen is not None
    return seen.vlan_id


@pytest.mark.parametrize(
    ("chosen", "wanted"),
    [
        (None, []),
        (ProviderNetworks(), []),
        (ProviderNetworks(physical_network="physnet"), [range(1, 4095)]),
        (ProviderNetworks(physical_network="physnet", vlan=Vlan()), [range(1, 4095)]),
        (
            ProviderNetworks(physical_network="physnet", vlan=Vlan(segments=(VlanSegment(start_id=7, end_id=7),))),
            [range(7, 8)],
        ),
    ],
)
def test_a_region_has_vlans_to_give_if_it_has_a_physical_network(
    chosen: ProviderNetworks | None, wanted: Sequence[range]
) -> None:
    async def scenario(ground: Ground) -> None:
        found = await ground.store.get(Region, REGION)
        openstack = RegionOpenstack(endpoint="", network=Networks(provider_networks=chosen))
        assert list(segments_of(replace(found, spec=replace(found.spec, openstack=openstack)))) == wanted
        assert not segments_of(found)

    on_ground(scenario)


def test_each_network_is_made_as_a_vlan_of_its_own_and_gives_it_back_at_its_end() -> None:
    async def scenario(ground: Ground) -> None:
        await wire(ground)
        one, other = await ground.make_network(), await ground.make_network()
        await ground.rest()
        assert sorted((await taken(ground)).values()) == await at_cloud(ground) == [100, 101]
        assert await vlan_of(ground, one) == (await taken(ground))[one]
        await ground.look_again()

        await delete(ground, one)
        await ground.rest()
        assert await taken(ground) == {other: await vlan_of(ground, other)}
        await delete(ground, other)
        await ground.rest()
        assert await taken(ground) == {}
        await all_is_gone(ground)

    on_ground(scenario, at_work=True, seeds=3)


def test_a_region_without_a_physical_network_gives_none() -> None:
    async def scenario(ground: Ground) -> None:
        name = await ground.make_network()
        await ground.rest()
        assert await vlan_of(ground, name) is None
        assert (await ground.store.list(VLANAllocation)).items == []

        await wire(ground)  # what is there stays as it was made
        await ground.look_again()
        assert await at_cloud(ground) == [None]
        await delete(ground, name)
        await ground.rest()
        await all_is_gone(ground)

    on_ground(scenario, at_work=True)


def test_a_network_keeps_its_vlan_when_the_region_has_others_to_give() -> None:
    async def scenario(ground: Ground) -> None:
        await wire(ground)
        name = await ground.make_network()
        await ground.rest()
        await wire(ground, [(300, 310)])
        body = {"metadata": {"name": "net"}, "spec": {"dnsNameservers": ["9.9.9.9"]}}
        assert (await ground.networks.ask(TENANT).put(f"{NETWORKS}/{name}", body)).status == 202
        await ground.rest()
        assert (await ground.available(Network, name)).reason == "Provisioned"
        assert await at_cloud(ground) == [100]

    on_ground(scenario, at_work=True)


def test_where_none_is_left_a_network_says_so_and_has_the_next_that_is_given_back() -> None:
    async def scenario(ground: Ground) -> None:
        await wire(ground)
        first = [await ground.make_network() for _ in range(3)]
        await ground.rest()
        late = await ground.make_network()
        await ground.rest()
        said = await ground.available(Network, late)
        assert (said.status, said.reason) == ("False", "VLANsExhausted")
        assert said.message == "its region has no free VLAN: remove a network"
        assert len(await at_cloud(ground)) == 3
        given_back = (await taken(ground))[first[1]]
        await delete(ground, first[1])
        await ground.world.clock.sleep(WOKEN_S)
        assert await vlan_of(ground, late) == given_back

    on_ground(scenario, at_work=True)


def test_a_network_that_never_got_one_can_go() -> None:
    async def scenario(ground: Ground) -> None:
        await wire(ground, [(7, 7)])
        await ground.make_network()
        await ground.rest()
        late = await ground.make_network()
        await ground.rest()
        await delete(ground, late)
        await ground.rest()
        assert [each.name for each in (await ground.store.list(Network)).items] == list(await taken(ground))

    on_ground(scenario, at_work=True)


def test_a_network_keeps_its_vlan_while_the_cloud_fails_it() -> None:
    async def scenario(ground: Ground) -> None:
        await wire(ground)
        names = [await ground.make_network() for _ in range(3)]
        await ground.world.clock.sleep(1_800)
        ground.world.faults.stop()
        await ground.world.clock.sleep(1_800)
        assert sorted(await taken(ground)) == sorted(names)
        assert await at_cloud(ground) == [100, 101, 200]

    on_ground(scenario, at_work=True, seeds=10, rates=ILLS)


def test_a_vlan_that_something_else_has_at_the_provider_is_told() -> None:
    async def scenario(ground: Ground) -> None:
        await wire(ground, [(7, 7)])
        name = await ground.make_network()
        await ground.rest()
        held = (await ground.store.list(VLANAllocation)).items[0]
        await ground.store.update(replace(held, spec=VLANAllocationSpec()))  # as after a restore from a backup
        late = await ground.make_network()
        await ground.rest()
        said = await ground.available(Network, late)
        assert (said.reason, said.message) == ("VLANTaken", "something else at the provider has its VLAN 7")
        assert (await ground.available(Network, name)).reason == "Provisioned"

    on_ground(scenario, at_work=True)


def test_what_nobody_has_any_more_is_found_when_none_is_left() -> None:
    async def scenario(ground: Ground) -> None:
        region = await wire(ground, [(1, 3)])
        one = await ground.make_network()
        await ground.rest()
        held = (await ground.store.list(VLANAllocation)).items[0]
        lost = [TakenVlan(id=each, physical_network_id=f"gone-{each}") for each in (2, 3)]
        await ground.store.update(replace(held, spec=VLANAllocationSpec(allocations=(*held.spec.allocations, *lost))))
        late = await ground.make_network()
        await ground.rest()
        assert await taken(ground) == {one: 1, late: 2}
        assert vlans_name(region.spec.provider, REGION) == held.name

    on_ground(scenario, at_work=True)


def test_none_is_given_twice_however_many_ask_at_once() -> None:
    async def scenario(ground: Ground) -> None:
        await wire(ground, [(1, 40)])
        cloud = await clouds_over(ground.world, ground.store, ground.providers).get(REGION)

        async def take(number: int) -> int | None:
            return await _until_written(lambda: take_vlan(ground.store, cloud, f"network-{number}"))

        async def give(number: int) -> None:
            await _until_written(lambda: give_vlan_back(ground.store, cloud.region, f"network-{number}"))

        given = await asyncio.gather(*[take(number % 40) for number in range(80)])
        assert given[:40] == given[40:], "who has one is given no other"
        assert sorted(each for each in given[:40] if each is not None) == list(range(1, 41))
        await asyncio.gather(*[give(number) for number in range(40)])
        assert await taken(ground) == {}

    on_ground(scenario, seeds=5)


async def _until_written(write: Callable[[], Awaitable[T]]) -> T:
    """Try until nobody else writes at the same time, as controllers do."""
    while True:
        with suppress(Conflict):
            return await write()
