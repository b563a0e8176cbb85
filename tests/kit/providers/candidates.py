"""The providers that the conformance suite runs on. A new one is one more candidate here.

One that needs more than this process runs the same scenarios elsewhere: `scenarios` has them all, with what each needs.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Protocol

import pytest

from remuda.kernel.clock import Clock, SystemClock
from remuda.kernel.randomness import Randomness, SystemRandomness
from remuda.providers.calls import Calls
from remuda.providers.circuit_breaker import CallSettings
from remuda.providers.contract.provider import Provider
from remuda.providers.proxy import methods_of, proxied
from remuda.providers.simulated.catalogue import SimCatalogue, SimDurations, load_catalogues, without_delays
from remuda.providers.simulated.faults import Delay, Latency
from remuda.providers.simulated.provider import open_cloud
from tests.kit.providers.conformance import Bench
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import SEALER

Scenario = Callable[[Bench], Awaitable[None]]

EVERYTHING = frozenset(
    {
        *("catalogue", "external_networks", "images", "tenancies", "networks", "security_groups", "ports", "servers"),
        *("consoles", "snapshots", "load_balancers", "file_storages", "events"),
    }
)
CPU, UBUNTU, DEBIAN = (
    "11111111-1111-1111-1111-111111111111",
    "33333333-3333-3333-3333-333333333333",
    "b1f0c0de-0003-4000-8000-000000000003",
)


@dataclass(frozen=True)
class Part:
    """A scenario of the suite."""

    name: str
    needed: frozenset[str]
    scenario: Scenario


class Candidate(Protocol):
    """A provider that claims to keep the contract."""

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> frozenset[str]:
        """What it says that it has; the suite passes over what needs another one."""
        ...

    def run(self, scenario: Scenario, directory: Path) -> None:
        """Run a scenario on an empty provider."""
        ...


@dataclass(frozen=True)
class Simulated:
    """The simulated cloud: in memory under a simulated loop, or on a file in real time."""

    name: str
    catalogue: SimCatalogue
    is_on_file: bool
    is_called: bool = False
    """Through its calls, as a process has it."""
    capabilities: frozenset[str] = EVERYTHING

    def run(self, scenario: Scenario, directory: Path) -> None:
        if self.is_on_file:
            path = directory / "cloud.db"
            asyncio.run(self._run(scenario, path, SystemClock(), SystemRandomness()))
            return

        async def in_world(world: World) -> None:
            await self._run(scenario, None, world.clock, world.randomness)

        simulate(in_world, seeds=3)

    async def _run(self, scenario: Scenario, path: Path | None, clock: Clock, randomness: Randomness) -> None:
        cloud = open_cloud(path, self.catalogue, clock=clock, sealer=SEALER, randomness=randomness)
        await cloud.start()
        try:
            provider = through_calls(cloud.provider, clock, randomness) if self.is_called else cloud.provider
            await scenario(Bench(provider=provider, clock=clock, flavor=CPU, image=UBUNTU, other_image=DEBIAN))
        finally:
            await cloud.stop()


def through_calls(
    provider: Provider, clock: Clock, randomness: Randomness, settings: CallSettings | None = None
) -> Provider:
    calls = Calls("cloud", methods_of(provider), clock=clock, randomness=randomness, settings=settings)
    return proxied(provider, calls)


def _candidates() -> list[Candidate]:
    usual = load_catalogues()["sim-north"]
    brisk = replace(
        usual,
        times=SimDurations(
            queue_s=0.01, boot_s=0.02, stop_s=0.01, rebuild_s=0.02, remove_s=0.01, snapshot_s=0.02, balancer_s=0.01
        ),
        latency=Latency(usual=Delay(mean_s=0.001, jitter=1.0)),
    )
    return [
        Simulated("simulated in memory", usual, is_on_file=False),
        Simulated("simulated in memory, instant", without_delays(usual), is_on_file=False),
        Simulated("simulated in memory, called", usual, is_on_file=False, is_called=True),
        Simulated("simulated on file", brisk, is_on_file=True),
        Simulated("simulated on file, instant", without_delays(usual), is_on_file=True),
    ]


CANDIDATES = _candidates()


def scenarios() -> list[Part]:
    """Return the whole suite."""
    files = sorted((Path(__file__).parents[2] / "providers" / "conformance").glob("test_*.py"))
    modules = [import_module(f"tests.providers.conformance.{file.stem}") for file in files]
    tests = [each for module in modules for each in vars(module).values()]
    return [vars(test)["of_suite"] for test in tests if callable(test) and "of_suite" in getattr(test, "__dict__", {})]


def on_every_provider(*needed: str) -> Callable[[Scenario], Callable[[Candidate, Path], None]]:
    """Make a test of a scenario: it runs on each provider that says that it has what is needed."""

    def made(scenario: Scenario) -> Callable[[Candidate, Path], None]:
        def test(candidate: Candidate, tmp_path: Path) -> None:
            lacking = sorted(set(needed) - candidate.capabilities)
            if lacking:
                pytest.skip(f"{candidate.name} has no {' and no '.join(lacking)}")
            candidate.run(scenario, tmp_path)

        test.__name__ = getattr(scenario, "__name__", "test")
        vars(test)["of_suite"] = Part(test.__name__, frozenset(needed), scenario)
        return pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda each: each.name)(test)

    return made
