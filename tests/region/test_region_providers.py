"""Providers of the regions of the store: opened, opened again and closed at run time; none delays another."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec.structs import replace

from remuda.app.region_providers import OpenProvider, RegionProviders
from remuda.kernel.secrets import Secret
from remuda.region.catalogue.provider_registry import ProviderRegistry
from remuda.region.kinds.networks import OpenstackIdentity, OpenstackIdentitySpec
from remuda.region.kinds.regions import Region, RegionSimulated, RegionSpec
from remuda.region.networks.credentials import TenancyCredentials
from remuda.resources.conventions import NAME
from remuda.store.background import BackgroundTasks
from remuda.store.objects import Metadata
from remuda.store.sqlite.store import SqliteStore
from tests.kit.environment import provided_by
from tests.kit.region.flavor_provider import FlavorProvider
from tests.kit.region.resource_api import OTHER_REGION, REGION, registry
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated

TENANCY = f"identity-{REGION}.some-uid"


class Clouds:
    """An opener whose clouds can be slow or dead, and which remembers what is open."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.opened: list[str] = []
        self.closed: list[str] = []
        self.failures = 0
        self.gate = asyncio.Event()
        self.drain_s = 0.0

    async def open(self, region: Region) -> OpenProvider:
        assert region.spec.simulated is not None
        like = region.spec.simulated.region
        if like == "slow":
            await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise OSError("no such file")
        self.opened.append(like)

        async def close() -> None:
            self.closed.append(like)

        return OpenProvider(provider=FlavorProvider(self.world.clock).provider, close=close, drain_s=self.drain_s)


class Bench:
    """Providers that follow a store."""

    def __init__(self, world: World, store: SqliteStore) -> None:
        self.world, self.store, self.clouds = world, store, Clouds(world)
        self.providers = RegionProviders(
            {}, self.clouds.open, store=store, clock=world.clock, randomness=world.randomness
        )

    async def write(self, like: str, name: str = REGION) -> Region:
        """Create a region, or change like what it is."""
        spec = RegionSpec(provider="simulated", simulated=RegionSimulated(region=like))
        found = (await self.store.list(Region)).items
        for each in found:
            if each.name == name:
                return await self.store.update(replace(each, spec=spec))
        return await self.store.create(Region(metadata=Metadata(name=name, labels={NAME: like}), spec=spec))

    async def remove(self, name: str = REGION) -> None:
        found = await self.store.get(Region, name)
        await self.store.delete(Region, name, uid=found.uid)

    async def settled(self) -> None:
        """Wait a moment, in which everything happens that does not wait for anything else."""
        await self.world.clock.sleep(0.1)


def with_bench(act: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    async def scenario(world: World) -> None:
        store = open_simulated(world, registry())
        bench, tasks = Bench(world, store), BackgroundTasks(world.clock)
        tasks.start("providers", bench.providers.run)
        try:
            await act(bench)
        finally:
            await tasks.stop()
            await bench.providers.close()
            await store.close()

    simulate(scenario, 1)


bench = provided_by(with_bench)


async def test_m24_a_provider_follows_its_region(bench: Bench) -> None:
    changes = bench.providers.changes()
    await bench.write("one")
    assert await anext(changes) == REGION
    first = bench.providers.find(REGION)
    assert first is not None
    await bench.write("two")
    assert await anext(changes) == REGION
    assert bench.providers.find(REGION) is not first
    await bench.settled()
    assert (bench.clouds.opened, bench.clouds.closed) == (["one", "two"], ["one"])
    await bench.remove()
    assert await anext(changes) == REGION
    assert bench.providers.find(REGION) is None
    await bench.settled()
    assert bench.clouds.closed == ["one", "two"]


async def test_m24_a_slow_region_delays_no_other(bench: Bench) -> None:
    await bench.write("slow")
    await bench.write("fast", OTHER_REGION)
    await bench.settled()
    assert bench.providers.find(REGION) is None
    assert bench.providers.find(OTHER_REGION) is not None
    bench.clouds.gate.set()
    await bench.settled()
    assert bench.providers.find(REGION) is not None


async def test_a_provider_that_cannot_be_opened_is_tried_again(bench: Bench) -> None:
    bench.clouds.failures = 3
    await bench.write("one")
    await bench.settled()
    assert bench.providers.find(REGION) is None
    await bench.world.clock.sleep(30)
    assert bench.providers.find(REGION) is not None


async def test_m23_calls_in_flight_have_time_before_the_previous_provider_is_closed(bench: Bench) -> None:
    bench.clouds.drain_s = 60.0
    await bench.write("one")
    await bench.settled()
    await bench.write("two")
    await bench.settled()
    assert bench.clouds.closed == []
    await bench.world.clock.sleep(60)
    assert bench.clouds.closed == ["one"]


async def test_m24_what_is_not_of_the_connection_opens_nothing_again(bench: Bench) -> None:
    region = await bench.write("one")
    await bench.settled()
    await bench.store.update(replace(region, spec=replace(region.spec, disabled=True)))
    await bench.settled()
    assert bench.clouds.opened == ["one"]


async def test_m23_unknown_outcomes_stay_known_when_a_provider_is_opened_again(bench: Bench) -> None:
    registry_of_regions = ProviderRegistry(
        bench.store, bench.providers, clock=bench.world.clock, randomness=bench.world.randomness
    )
    await bench.write("one")
    await bench.settled()
    before = await registry_of_regions.get(REGION)
    await bench.write("two")
    await bench.settled()
    after = await registry_of_regions.get(REGION)
    assert after.origin is not before.origin
    assert after.calls is before.calls
    assert after.absence is before.absence


async def test_m23_the_credential_of_a_tenancy_is_in_the_record_of_its_identity(bench: Bench) -> None:
    credentials = TenancyCredentials(bench.store)
    assert await credentials.find(TENANCY) is None
    record = OpenstackIdentity(metadata=Metadata(name=REGION), spec=OpenstackIdentitySpec(ssh_public_key="key"))
    await bench.store.create(record)
    assert await credentials.find(TENANCY) is None
    await credentials.put(TENANCY, "credential", Secret("canary"))
    assert await credentials.find(TENANCY) == ("credential", Secret("canary"))
    found = await bench.store.get(OpenstackIdentity, REGION)
    assert found.spec.ssh_public_key == "key"
    await credentials.remove(TENANCY)
    await credentials.remove("identity-00000000-0000-4000-8000-000000000000.gone")
    assert await credentials.find(TENANCY) is None
