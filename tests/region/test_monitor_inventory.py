"""Servers are counted from an index, and right, whatever happens meanwhile; what waits in a line keeps its turn."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import UTC, datetime
from itertools import product
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from remuda.kernel.conditions import Condition
from remuda.kernel.errors import Gone
from remuda.region.kinds import KINDS
from remuda.region.kinds.regions import Region, RegionSpec
from remuda.region.kinds.servers import (
    DRIFTED,
    Phase,
    Server,
    ServerImage,
    ServerSpec,
    ServerStatus,
    StatusSummary,
    status_summary,
)
from remuda.region.monitor.metrics import MonitorMetrics, ServerCounts
from remuda.region.monitor.poller import NameQueue
from remuda.resources.conventions import REGION
from remuda.store.contract import Event, Store
from remuda.store.kinds import Registry
from remuda.store.objects import Metadata
from tests.kit.environment import provided_by
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NORTH = "north"


class Forgetful:
    """A store whose watches can be told to have missed something."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.is_gone = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def watch(self, kind: type[Any], *, since: str) -> AsyncIterator[Event[Any]]:
        async for event in self.store.watch(kind, since=since):
            if self.is_gone.is_set():
                self.is_gone.clear()
                raise Gone(kind.__name__, since)
            yield event


class Counted:
    """Servers of the north, and a census of them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.store = open_simulated(world, Registry(KINDS))
        self.flaky = Forgetful(self.store)
        self.registry = CollectorRegistry()
        self.census = ServerCounts(cast("Store", self.flaky), world.clock, MonitorMetrics(self.registry), page=2)

    async def make(self, name: str, phase: Phase | None = None, *, drifted: bool = False) -> None:
        """Have a server in this phase."""
        metadata = Metadata(name=name, labels={REGION: NORTH})
        spec = ServerSpec(flavor_id="flavor", image=ServerImage(id="image"))
        await self.store.create(Server(metadata=metadata, spec=spec))
        await self.change(name, phase, drifted=drifted)

    async def change(self, name: str, phase: Phase | None, *, drifted: bool = False) -> None:
        """Put a server into another phase."""
        server = await self.store.get(Server, name)
        said = Condition(type=DRIFTED, status="True", reason="Why", message="it is", last_transition_time=NOW)
        status = ServerStatus(phase=phase, conditions=(said,) if drifted else ())
        await self.store.update_status(replace(server, status=status))

    async def remove(self, name: str) -> None:
        server = await self.store.get(Server, name)
        await self.store.delete(Server, name, uid=server.uid)

    async def counts(self) -> dict[str, float]:
        """Return what is counted now, and that nothing is counted of anywhere else."""
        await self.world.clock.sleep(10)
        samples = [each for family in self.registry.collect() for each in family.samples]
        found = [each for each in samples if each.name == "remuda_region_servers"]
        assert {each.labels["region"] for each in found if each.value} <= {NORTH}
        drifted = sum(each.value for each in samples if each.name == "remuda_region_servers_drifted")
        counts = {each.labels["phase"]: each.value for each in found if each.value}
        return counts | ({"drifted": drifted} if drifted else {})


def counting(scenario: Callable[[Counted], Coroutine[Any, Any, None]]) -> None:
    async def run(world: World) -> None:
        counted = Counted(world)
        await counted.store.create(Region(metadata=Metadata(name=NORTH), spec=RegionSpec(provider="simulated")))
        await scenario(counted)
        await counted.store.close()

    simulate(run, 3)


counted = provided_by(counting)


async def at_work(counted: Counted, work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(counted.census.run())
    try:
        await work
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_servers_are_counted_when_the_census_begins_and_followed_from_then_on(counted: Counted) -> None:
    await counted.make("a", "Running", drifted=True)
    await counted.make("b", "Running")
    await counted.make("c")

    async def work() -> None:
        assert await counted.counts() == {"running": 2, "pending": 1, "drifted": 1}
        await counted.change("a", "Stopped")
        await counted.make("d", "Building")
        await counted.remove("b")
        assert await counted.counts() == {"stopped": 1, "pending": 1, "building": 1}

    await at_work(counted, work())


async def test_a_census_that_missed_something_is_taken_again(counted: Counted) -> None:
    for number in range(12):  # several pages, and several steps to forget them
        await counted.make(f"s{number:02}", "Running" if number % 2 else "Stopped")

    async def work() -> None:
        assert await counted.counts() == {"running": 6, "stopped": 6}
        counted.flaky.is_gone.set()
        await counted.change("s00", "Running", drifted=True)
        await counted.remove("s01")
        assert await counted.counts() == {"running": 6, "stopped": 5, "drifted": 1}

    await at_work(counted, work())


async def test_what_changes_while_the_census_is_taken_is_counted_once(counted: Counted) -> None:
    for number in range(12):
        await counted.make(f"s{number:02}", "Stopped" if number % 2 else "Running")

    async def work() -> None:
        for number in range(0, 12, 4):
            await counted.world.clock.sleep(0.03)
            await counted.change(f"s{number:02}", "Stopped")
            await counted.change(f"s{number + 1:02}", "Running")
            await counted.remove(f"s{number + 3:02}")
        assert await counted.counts() == {"running": 6, "stopped": 3}

    await at_work(counted, work())


@pytest.mark.parametrize(("has_run", "is_drifted"), list(product((False, True), repeat=2)))
def test_a_standing_is_read_back_from_its_text(*, has_run: bool, is_drifted: bool) -> None:
    standing = StatusSummary("c0000000-0000-4000-8000-000000000001", "running", has_run, is_drifted)
    assert StatusSummary.of_text(standing.text) == standing


def test_a_new_server_is_pending_and_of_its_region() -> None:
    spec = ServerSpec(flavor_id="flavor", image=ServerImage(id="image"))
    server = Server(metadata=Metadata(name="a", labels={REGION: NORTH}), spec=spec)
    assert status_summary(server) == StatusSummary(NORTH, "pending", has_run=False, is_drifted=False)
    assert status_summary(replace(server, metadata=Metadata(name="a"))).region == ""


@given(some.lists(some.integers(-1_300, 1_300), max_size=12))
def test_a_line_is_first_come_first_served(moves: list[int]) -> None:
    line, expected, count = NameQueue(), deque[str](), 0
    for move in moves:
        for _ in range(abs(move)):
            if move > 0:
                count += 1
                line.put(f"n{count}")
                expected.append(f"n{count}")
            elif expected:
                assert line.take() == expected.popleft()
        assert len(line) == len(expected)
