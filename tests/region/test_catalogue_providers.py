"""Regions at work: one provider's calls together, whoever makes them, and nothing for those who may not know."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from remuda.kernel.errors import Malformed, NotFound, Unavailable
from remuda.providers.circuit_breaker import CallSettings, CircuitBreakerSettings
from remuda.providers.contract.provider import Provider
from remuda.region.catalogue.provider_registry import ProviderRegistry, require
from remuda.region.catalogue.seed import region_id, seed_regions
from remuda.region.kinds.regions import RegionSimulated, RegionSpec
from remuda.region.settings import ConfiguredRegion
from remuda.store.sqlite.store import SqliteStore
from tests.kit.environment import provided_by
from tests.kit.region.flavor_provider import FlavorProvider
from tests.kit.region.resource_api import (
    ORG,
    OTHER_ORG,
    OTHER_REGION,
    REGION,
    Setup,
    clouds_over,
    everywhere,
    make_region,
    member,
    registry,
)
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated

ANN = member("ann@example.com", ORG)
BOB = member("bob@example.com", OTHER_ORG)


def in_store(act: Callable[[World, SqliteStore], Coroutine[Any, Any, None]]) -> None:
    async def scenario(world: World) -> None:
        store = open_simulated(world, registry())
        try:
            await act(world, store)
        finally:
            await store.close()

    simulate(scenario, 1)


world = provided_by(in_store)
store = provided_by(in_store, position=1)


@pytest.mark.parametrize(("lag_s", "delay_s"), [(0.0, 0.0), (0.1, 5.0), (7.0, 7.0)])
async def test_an_absence_is_confirmed_by_one_read_where_reads_are_never_stale(
    world: World, store: SqliteStore, lag_s: float, delay_s: float
) -> None:
    await make_region(store)
    provider = replace(FlavorProvider(world.clock).provider, lag_s=lag_s)
    clouds = clouds_over(world, store, {REGION: provider})
    absence = (await clouds.get(REGION)).absence
    assert absence.delay_s == delay_s
    assert absence.record_missing("one") is (delay_s == 0)


async def test_a_region_comes_with_its_provider_and_without_a_provider_says_so(
    world: World, store: SqliteStore
) -> None:
    await make_region(store)
    clouds = clouds_over(world, store, {REGION: FlavorProvider(world.clock).provider})
    cloud = await clouds.get(REGION)
    assert (cloud.region.name, cloud.provider.type) == (REGION, "simulated")
    with pytest.raises(NotFound):
        await clouds.get(OTHER_REGION)
    await make_region(store, OTHER_REGION, called="south")
    with pytest.raises(Unavailable, match=OTHER_REGION):
        await clouds.get(OTHER_REGION)


async def test_only_those_of_its_organizations_see_a_private_region_and_controllers_always_do(
    world: World, store: SqliteStore
) -> None:
    await make_region(store, organizations=[OTHER_ORG])
    clouds = clouds_over(world, store, {REGION: FlavorProvider(world.clock).provider})
    assert (await clouds.get_visible(BOB, REGION)).region.name == REGION
    assert (await clouds.get_visible(everywhere("all", "region:regions R"), REGION)).region.name == REGION
    assert (await clouds.get(REGION)).region.name == REGION
    for stranger in (ANN, everywhere("odd", "region:networks:v2 CRUD")):
        with pytest.raises(NotFound):
            await clouds.get_visible(stranger, REGION)
        assert await clouds.visible_regions(stranger) == []


async def test_a_withdrawn_region_is_seen_by_nobody_and_still_reconciled(world: World, store: SqliteStore) -> None:
    spec = RegionSpec(provider="simulated", simulated=RegionSimulated(region="north"))
    await seed_regions(store, [ConfiguredRegion(name="north", spec=spec)], now=world.clock.now())
    await seed_regions(store, [], now=world.clock.now())
    north = region_id("north")
    clouds = clouds_over(world, store, {north: FlavorProvider(world.clock).provider})
    with pytest.raises(NotFound):
        await clouds.get_visible(everywhere("all", "region:regions R"), north)
    assert await clouds.visible_regions(ANN) == []
    assert (await clouds.get(north)).region.name == north


async def test_what_a_provider_lacks_rejects_the_request(world: World, store: SqliteStore) -> None:
    await make_region(store)
    cloud = await clouds_over(world, store, {REGION: FlavorProvider(world.clock).bare}).get(REGION)
    with pytest.raises(Malformed, match=r"^region is not valid for this endpoint$"):
        require(cloud.provider.networks)
    with pytest.raises(Malformed, match=r"^region is not valid for this endpoint$"):
        await cloud.external_networks()


async def test_all_who_work_in_a_region_share_its_calls_and_what_it_said(world: World, store: SqliteStore) -> None:
    await make_region(store)
    flavors = FlavorProvider(world.clock)
    clouds = clouds_over(world, store, {REGION: flavors.provider})
    one, other = await clouds.get(REGION), await clouds.get_visible(ANN, REGION)
    assert one.calls is other.calls
    assert one.absence is other.absence
    assert await one.flavors() == await other.flavors()
    assert flavors.asked == ["flavors"]


async def test_a_provider_that_was_set_up_again_is_the_one_that_is_asked(world: World, store: SqliteStore) -> None:
    await make_region(store)
    old, new = FlavorProvider(world.clock), FlavorProvider(world.clock)
    providers: dict[str, Provider] = {REGION: old.provider}
    clouds = ProviderRegistry(store, Setup(providers), clock=world.clock, randomness=world.randomness)
    await (await clouds.get(REGION)).flavors()
    providers[REGION] = new.provider
    await (await clouds.get(REGION)).flavors()
    assert (old.asked, new.asked) == (["flavors"], ["flavors"])


async def test_one_ill_region_leaves_the_others_alone(world: World, store: SqliteStore) -> None:
    await make_region(store)
    await make_region(store, OTHER_REGION, called="south")
    ill, well = FlavorProvider(world.clock, error=Unavailable("ill")), FlavorProvider(world.clock)
    settings = CallSettings(retries=0, breaker=CircuitBreakerSettings(failures_in_a_row=2))
    clouds = clouds_over(world, store, {REGION: ill.provider, OTHER_REGION: well.provider}, settings)
    for _ in range(4):
        with pytest.raises(Unavailable):
            await (await clouds.get(REGION)).flavors()
    assert len(ill.asked) == 2
    assert len(await (await clouds.get(OTHER_REGION)).flavors()) == 4


async def test_closing_cuts_off_what_does_not_end(world: World, store: SqliteStore) -> None:
    await make_region(store)
    clouds = clouds_over(world, store, {REGION: FlavorProvider(world.clock, takes_s=10**6).provider})
    cloud = await clouds.get(REGION)
    with pytest.raises(Unavailable):
        await cloud.flavors()
    await clouds.close(grace_s=1)
    with pytest.raises(Unavailable, match="shutting down"):
        await cloud.provider.catalogue.flavors()
