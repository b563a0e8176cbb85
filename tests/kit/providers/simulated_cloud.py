"""A simulated cloud in a simulated world, with a tenancy and a network in it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from remuda.kernel.clock import Clock
from remuda.kernel.randomness import Randomness
from remuda.providers.contract.provider import Provider
from remuda.providers.contract.servers import CloudServers
from remuda.providers.simulated.catalogue import Hosts, SimCatalogue, load_catalogues
from remuda.providers.simulated.faults import NO_LATENCY
from remuda.providers.simulated.provider import SimulatedCloud, open_cloud
from tests.kit.providers.candidates import CPU, DEBIAN, UBUNTU
from tests.kit.providers.conformance import Bench
from tests.kit.simulation.faults import FaultMenu
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import SEALER

USUAL = load_catalogues()["sim-north"]
METAL = "a1f0c0de-0005-4000-8000-000000000005"
PINNED = "a1f0c0de-0006-4000-8000-000000000006"
METAL_IMAGE = "b1f0c0de-0001-4000-8000-000000000001"
PROMPT = replace(USUAL, latency=NO_LATENCY, times=replace(USUAL.times, boot_jitter=0.0))
"""It answers at once, and boots in two seconds."""


@dataclass(frozen=True)
class Scene:
    """A cloud, and what the conformance suite has to use it."""

    world: World
    cloud: SimulatedCloud
    bench: Bench

    @property
    def provider(self) -> Provider:
        return self.cloud.provider

    @property
    def servers(self) -> CloudServers:
        assert self.cloud.provider.servers is not None
        return self.cloud.provider.servers

    async def sleep(self, seconds: float) -> None:
        await self.world.clock.sleep(seconds)

    async def state(self, number: int = 1) -> str:
        found = await self.servers.find_server(self.bench.server_spec(number).handle)
        return "gone" if found is None else found.state


def bench_of(cloud: SimulatedCloud, clock: Clock) -> Bench:
    return Bench(provider=cloud.provider, clock=clock, flavor=CPU, image=UBUNTU, other_image=DEBIAN)


def on_file(path: Path, clock: Clock, randomness: Randomness, catalogue: SimCatalogue = PROMPT) -> SimulatedCloud:
    """Open a cloud on a file whose answers do not wait for the disk, which a simulated loop has no thread for."""
    return open_cloud(path, catalogue, clock=clock, sealer=SEALER, randomness=randomness, is_durable=False)


def in_cloud(
    act: Callable[[Scene], Awaitable[None]],
    catalogue: SimCatalogue = PROMPT,
    *,
    seeds: int = 3,
    rates: Mapping[str, float] | None = None,
    **options: Any,
) -> list[FaultMenu]:
    """Run a scenario with a cloud of its own, under several seeds; with rates, its faults are on."""

    async def scenario(world: World) -> None:
        faults = None if rates is None else world.faults
        cloud = open_cloud(
            None, catalogue, clock=world.clock, sealer=SEALER, randomness=world.randomness, faults=faults, **options
        )
        await cloud.start()
        try:
            await act(Scene(world, cloud, bench_of(cloud, world.clock)))
        finally:
            await cloud.stop()

    return simulate(scenario, seeds, rates=rates)


def with_capacity(count: int, size: int, catalogue: SimCatalogue = PROMPT) -> SimCatalogue:
    """Return a catalogue with so many hosts of such a size for each flavor."""
    return replace(catalogue, hosts={flavor: Hosts(count=count, size=size) for flavor in catalogue.hosts})
