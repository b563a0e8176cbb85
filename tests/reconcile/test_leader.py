"""Who controls, and that it is one at a time."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from remuda.reconcile.controller import Controller
from remuda.reconcile.kinds import LeaseRecord
from remuda.reconcile.leader import LeaseSettings, SingleProcess
from remuda.reconcile.results import Done, ReconcileContext, Result
from tests.kit.environment import options
from tests.kit.sample_farm.controller import Animal, Farm, animal, farm
from tests.kit.sample_farm.lease_holders import Node
from tests.kit.simulation.runner import World, simulate

FAULTS = {"request lost": 0.1, "answer lost": 0.1, "slow way": 0.05}


async def compete(world: World, environment: Farm, speeds: Sequence[float], *, seconds: float) -> list[Node]:
    """Let some nodes compete while they are frozen now and then."""
    nodes = [Node(world, environment.store, speed=speed) for speed in speeds]

    def one_at_a_time() -> None:
        assert sum(node.lease.is_leading for node in nodes) <= 1, "two lead at once"

    world.invariants.append(one_at_a_time)
    for node in nodes:
        await node.lease.start()
    until = world.clock.monotonic() + seconds
    while world.clock.monotonic() < until:
        await world.clock.sleep(world.randomness.uniform(1, 40))
        await nodes[world.randomness.randrange(len(nodes))].freeze(world.randomness.uniform(1, 60))
    return nodes


async def leader_of(world: World, nodes: Sequence[Node], *, within_s: float) -> Node:
    async with asyncio.timeout(within_s):
        while True:
            for node in nodes:
                if node.lease.is_leading:
                    return node
            await world.clock.sleep(0.1)


def test_no_two_lead_at_once_whatever_happens_and_one_leads_when_all_is_well_again() -> None:
    terms = 0

    async def scenario(world: World) -> None:
        nonlocal terms
        async with farm(world) as environment:
            nodes = await compete(world, environment, [1.0, 1.1, 1.2], seconds=600)
            world.faults.stop()
            await leader_of(world, nodes, within_s=60)
            terms += sum(node.notes.terms.count(True) for node in nodes)
            for node in nodes:
                await node.lease.stop()

    simulate(scenario, 15, rates=FAULTS)
    assert terms > 15 * 3


def test_clocks_that_differ_in_speed_by_more_than_the_guarantee_allows_would_be_seen() -> None:
    async def scenario(world: World) -> None:
        async with farm(world) as environment:
            for node in await compete(world, environment, [0.3, 3.0], seconds=3000):
                await node.lease.stop()

    with pytest.raises(AssertionError, match="two lead at once"):
        simulate(scenario, 10, rates={"request lost": 0.5})


@options(seeds=3)
async def test_a_wall_clock_that_jumps_changes_nothing(world: World) -> None:
    async with farm(world) as environment:
        nodes = [Node(world, environment.store) for _ in range(3)]
        for node in nodes:
            await node.lease.start()
        first = await leader_of(world, nodes, within_s=20)
        for hours in (5, -10, 1):
            world.clock.jump(timedelta(hours=hours))
            await world.clock.sleep(60)
            assert first.lease.is_leading
        for node in nodes:
            await node.lease.stop()


@options(seeds=5)
async def test_who_stops_releases_and_another_takes_over_soon(world: World) -> None:
    async with farm(world) as environment:
        nodes = [Node(world, environment.store) for _ in range(3)]
        for node in nodes:
            await node.lease.start()
        first = await leader_of(world, nodes, within_s=20)
        await first.lease.stop()
        assert not first.lease.is_leading
        rest = [node for node in nodes if node is not first]
        second = await leader_of(world, rest, within_s=3)
        record = await environment.store.get(LeaseRecord, "region")
        assert (record.spec.holder, record.spec.transitions) == (second.lease.identity, 2)
        assert (first.notes.terms, second.notes.terms) == ([False, True, False], [False, True])
        for node in rest:
            await node.lease.stop()
        assert (await environment.store.get(LeaseRecord, "region")).spec.holder == ""


@options(seeds=10)
async def test_who_loses_the_lease_is_told_before_another_can_have_it(world: World) -> None:
    async with farm(world) as environment:
        first, second = Node(world, environment.store), Node(world, environment.store)
        await first.lease.start()
        await first.lease.won()
        await second.lease.start()
        lost = asyncio.create_task(first.lease.lost())
        won = asyncio.create_task(second.lease.won())
        frozen = asyncio.create_task(first.freeze(100))
        await lost
        assert not won.done()
        await won
        await frozen
        await world.clock.sleep(10)
        assert (first.lease.is_leading, second.lease.is_leading) == (False, True)
        await first.lease.stop()
        await second.lease.stop()


@options(seeds=10)
async def test_who_did_not_lead_in_between_is_told_although_it_leads_again(world: World) -> None:
    async with farm(world) as environment:
        node = Node(
            world, environment.store, speed=3
        )  # its lease is over before the loop's timers, which keep world time
        await node.lease.start()
        await node.lease.won()
        lost = asyncio.create_task(node.lease.lost())
        await node.freeze(5)
        await node.lease.won()
        await world.clock.sleep(0.1)
        assert (lost.done(), node.lease.is_leading) == (True, True)
        await node.lease.stop()


def test_times_under_which_two_could_lead_are_refused() -> None:
    for retry_s, renew_deadline_s, duration_s in ((2, 15, 15), (6, 10, 15), (0, 10, 15), (2, 20, 15)):
        with pytest.raises(ValueError, match="renew_deadline_s < duration_s"):
            LeaseSettings(retry_s=retry_s, renew_deadline_s=renew_deadline_s, duration_s=duration_s)


class Switch:
    """A leader that a test turns on and off."""

    def __init__(self) -> None:
        self.is_leading = False
        self._changed = asyncio.Event()

    def turn(self, *, on: bool) -> None:
        self.is_leading = on
        self._changed.set()
        self._changed = asyncio.Event()

    async def won(self) -> None:
        while not self.is_leading:
            await self._changed.wait()

    async def lost(self) -> None:
        while self.is_leading:
            await self._changed.wait()


@options(seeds=5)
async def test_a_driver_controls_only_while_it_leads(world: World) -> None:
    async with farm(world) as environment:
        switch, began, ended = Switch(), [], []

        async def reconcile(key: str, _: ReconcileContext) -> Result:
            began.append(key)
            await world.clock.sleep(5)
            ended.append(key)
            return Done()

        driver = Controller("t", reconcile, kind=Animal, ports=environment.ports(leader=switch))
        await driver.start()
        await environment.store.create(animal("bella"))
        await environment.rest()
        assert (began, driver.is_idle, await driver.resync()) == ([], False, 0)
        switch.turn(on=True)
        await environment.rest(2)
        assert began == ["bella"]
        switch.turn(on=False)
        await environment.rest()
        assert ended == []
        switch.turn(on=True)
        await environment.rest()
        assert (began, ended) == (["bella", "bella"], ["bella"])
        await driver.stop()


@options(seeds=5)
async def test_when_a_node_freezes_another_goes_on_with_its_work(world: World) -> None:
    async with farm(world) as environment:
        nodes = [Node(world, environment.store) for _ in range(2)]
        for node in nodes:
            await node.lease.start()
            await environment.drive(leader=node.lease)
        first = await leader_of(world, nodes, within_s=20)
        await environment.store.create(animal("bella"))
        frozen = asyncio.create_task(first.freeze(200))
        await environment.rest(100)
        await environment.store.create(animal("luna"))
        await environment.rest(60)
        assert environment.barn.stalls.keys() == {"bella", "luna"}
        await frozen
        await environment.stop()
        for node in nodes:
            await node.lease.stop()


async def test_who_is_alone_always_leads() -> None:
    alone = SingleProcess()
    await alone.won()
    assert alone.is_leading
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await alone.lost()
