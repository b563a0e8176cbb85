"""The regions of a configuration, as they come into the store, change, and go."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from remuda.kernel.errors import NotFound
from remuda.kernel.ids import is_id
from remuda.kernel.secrets import Secret
from remuda.region.catalogue.seed import is_withdrawn, region_id, seed_regions
from remuda.region.kinds.networks import Identity, IdentitySpec
from remuda.region.kinds.regions import Region, RegionKubernetes, RegionSimulated, RegionSpec
from remuda.region.settings import ConfiguredRegion
from remuda.resources.conventions import DESCRIPTION, NAME
from remuda.resources.conventions import REGION as REGION_LABEL
from remuda.store.contract import Store
from remuda.store.objects import Metadata
from remuda.store.sqlite.store import SqliteStore
from tests.kit.environment import options, provided_by
from tests.kit.region.resource_api import make_region, registry
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
NORTH, SOUTH = region_id("north"), region_id("south")


def in_store(act: Callable[[SqliteStore], Coroutine[Any, Any, None]], seeds: int = 1) -> None:
    async def scenario(world: World) -> None:
        store = open_simulated(world, registry())
        try:
            await act(store)
        finally:
            await store.close()

    simulate(scenario, seeds)


store = provided_by(in_store)


def _region(name: str, *, spec: RegionSpec | None = None, description: str = "") -> ConfiguredRegion:
    wanted = spec or RegionSpec(provider="simulated", simulated=RegionSimulated(region=name))
    return ConfiguredRegion(name=name, spec=wanted, description=description)


async def _start(store: Store, *names: str | ConfiguredRegion, hours: int = 0) -> None:
    """Start with these regions in the configuration, so many hours after noon."""
    wanted = [_region(name) if isinstance(name, str) else name for name in names]
    await seed_regions(store, wanted, now=NOON + timedelta(hours=hours))


async def _names(store: Store) -> set[str]:
    return set((await store.list_names(Region)).items)


async def test_a_configured_region_has_an_id_of_its_name_and_stays_as_it_is(store: SqliteStore) -> None:
    await _start(store, _region("north", description="up there"), "south")
    assert await _names(store) == {NORTH, SOUTH}
    assert is_id(NORTH)
    found = await store.get(Region, NORTH)
    assert found.metadata.labels[NAME] == "north"
    assert found.metadata.annotations[DESCRIPTION] == "up there"
    await _start(store, "south", _region("north", description="up there"))
    assert (await store.get(Region, NORTH)).version == found.version


async def test_a_region_follows_its_configuration(store: SqliteStore) -> None:
    await _start(store, _region("north", description="up there"))
    before = await store.get(Region, NORTH)
    kubernetes = RegionKubernetes(kube_config=Secret("canary"), domain_name="k.example.com")
    await _start(store, _region("north", spec=RegionSpec(provider="kubernetes", kubernetes=kubernetes)))
    after = await store.get(Region, NORTH)
    assert (after.uid, after.spec.provider, after.spec.simulated) == (before.uid, "kubernetes", None)
    assert after.spec.kubernetes == kubernetes
    assert DESCRIPTION not in after.metadata.annotations


async def test_a_region_that_is_no_longer_configured_is_withdrawn_then_goes_when_it_is_empty(
    store: SqliteStore,
) -> None:
    await _start(store, "north", "south")
    await _start(store, "south")
    assert is_withdrawn(await store.get(Region, NORTH))
    assert not is_withdrawn(await store.get(Region, SOUTH))
    await _start(store, "south")
    assert await _names(store) == {NORTH, SOUTH}
    await _start(store, "south", hours=1)
    assert await _names(store) == {SOUTH}


async def test_a_region_with_something_in_it_never_goes(store: SqliteStore) -> None:
    await _start(store, "north")
    inhabitant = Identity(
        metadata=Metadata(name="b0000000-0000-4000-8000-0000000000aa", labels={REGION_LABEL: NORTH}),
        spec=IdentitySpec(provider="simulated"),
    )
    stored = await store.create(inhabitant)
    for hours in range(3):
        await _start(store, hours=hours)
    assert is_withdrawn(await store.get(Region, NORTH))
    await store.delete(Identity, stored.name, uid=stored.uid)
    await _start(store, hours=4)
    with pytest.raises(NotFound):
        await store.get(Region, NORTH)


async def test_a_region_that_is_configured_again_is_the_same_one(store: SqliteStore) -> None:
    await _start(store, "north")
    before = await store.get(Region, NORTH)
    await _start(store)
    await _start(store, "north")
    after = await store.get(Region, NORTH)
    assert (after.uid, is_withdrawn(after)) == (before.uid, False)


async def test_what_somebody_else_put_there_stays(store: SqliteStore) -> None:
    theirs = await make_region(store)
    await _start(store, "north")
    await _start(store)
    found = await store.get(Region, theirs.name)
    assert (found.version, is_withdrawn(found)) == (theirs.version, False)


@options(seeds=5)
async def test_processes_that_start_at_once_make_each_region_once(store: SqliteStore) -> None:
    await asyncio.gather(*(_start(store, "north", "south") for _ in range(4)))
    assert await _names(store) == {NORTH, SOUTH}
    await asyncio.gather(*(_start(store, hours=hours) for hours in (0, 0, 0, 0)))
    assert await _names(store) == {NORTH, SOUTH}
    await asyncio.gather(*(_start(store, hours=hours) for hours in (1, 1, 2, 2)))
    assert await _names(store) == set()
