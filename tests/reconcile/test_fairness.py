"""Organizations take turns in a controller: the failing objects of one do not delay those of others."""

import asyncio
from collections import Counter
from dataclasses import replace

from remuda.kernel.errors import Unavailable
from remuda.reconcile.controller import Controller, Reconcile
from remuda.reconcile.ports import ControllerSettings
from remuda.reconcile.queue import Queue, Rank
from remuda.reconcile.results import Done, ReconcileContext, Result
from remuda.store.contract import Store
from remuda.store.objects import ResourceT
from tests.kit.environment import options, provided_by
from tests.kit.forwarding_store import Passing
from tests.kit.sample_farm.controller import Animal, Farm, animal
from tests.kit.sample_farm.driver import in_simulation
from tests.kit.sample_farm.queue import key_of, simulated
from tests.kit.simulation.runner import World

sample = provided_by(in_simulation)
world = provided_by(simulated)
LABEL = "test.remuda/organization"
MANY = 1_000


async def first_letter(key: str) -> str:
    return key[0]


def controller(farm: Farm, reconcile: Reconcile, workers: int) -> Controller:
    ports = replace(farm.ports(), group_label=LABEL)
    return Controller("t", reconcile, kind=Animal, ports=ports, settings=ControllerSettings(workers=workers))


@options(seeds=2)
async def test_m27_a_thousand_failing_objects_of_one_organization_delay_the_object_of_another_by_one_reconcile(
    sample: Farm,
) -> None:
    clock, slow_s = sample.world.clock, 5.0
    for number in range(MANY):
        await sample.store.create(animal(f"a{number}", labels={LABEL: "ann"}))
    begun: dict[str, float] = {}
    failed = 0

    async def reconcile(key: str, _: ReconcileContext) -> Result:
        nonlocal failed
        if key.startswith("a"):
            await clock.sleep(slow_s)
            failed += 1
            raise Unavailable("The provider does not respond.")
        begun[key] = clock.monotonic()
        await clock.sleep(slow_s)
        return Done()

    driver = controller(sample, reconcile, workers=4)
    await driver.start()
    await clock.sleep(600)
    assert driver.depth > MANY / 10
    waited = []
    for number in range(20):
        created = clock.monotonic()
        await sample.store.create(animal(f"b{number}", labels={LABEL: "bob"}))
        await clock.sleep(7)
        waited.append(begun[f"b{number}"] - created)
    before = failed
    await clock.sleep(60)
    await driver.stop()
    assert max(waited) < 1.0, "a worker was free for it"
    assert failed - before >= 4 * 60 / slow_s - 4, "all others work for the first one"


@options(seeds=5)
async def test_no_group_has_more_than_its_share_of_the_workers(sample: Farm) -> None:
    clock, running, most = sample.world.clock, Counter[str](), Counter[str]()
    for number in range(60):
        await sample.store.create(animal(f"{'ab'[number % 2]}{number}", labels={LABEL: "ab"[number % 2]}))

    async def reconcile(key: str, _: ReconcileContext) -> Result:
        running[key[0]] += 1
        most[key[0]] = max(most[key[0]], running[key[0]])
        most["all"] = max(most["all"], running.total())
        await clock.sleep(sample.world.randomness.uniform(0, 2))
        running[key[0]] -= 1
        return Done()

    driver = controller(sample, reconcile, workers=3)
    await driver.start()
    await sample.rest()
    assert driver.is_idle
    await driver.stop()
    assert most == {"a": 3, "b": 3, "all": 6}


@options(seeds=3)
async def test_groups_with_due_keys_take_turns_and_one_that_comes_later_is_next(world: World) -> None:
    queue = Queue(world.clock, find_group=first_letter)
    for number in range(MANY):
        queue.add(f"a{number:03}", "event", Rank.ROUTINE)
        queue.add(f"b{number:03}", "event", Rank.ROUTINE)
    await world.clock.sleep(10)
    turns = [await key_of(queue.take()) for _ in range(6)]
    assert turns == ["a000", "b000", "a001", "b001", "a002", "b002"]
    queue.add("c")
    assert await key_of(queue.take()) == "c"
    queue.finish("c", requeue_s=0.0)
    await world.clock.sleep(10)
    later = [str(await key_of(queue.take()))[0] for _ in range(6)]
    assert Counter(later) in ({"a": 3, "b": 2, "c": 1}, {"a": 2, "b": 3, "c": 1}), "a group comes first only once"


@options(seeds=3)
async def test_what_is_due_in_no_group_comes_in_the_order_of_its_rank(world: World) -> None:
    queue = Queue(world.clock, find_group=first_letter)
    queue.add("a1", "resync", Rank.RESYNC)
    await world.clock.sleep(1)
    queue.add("b1", "requeue", Rank.ROUTINE)
    await world.clock.sleep(1)
    queue.add("a2", "requeue", Rank.ROUTINE)
    queue.add("b2", "resync", Rank.RESYNC)
    assert [await key_of(queue.take()) for _ in range(4)] == ["b1", "a2", "a1", "b2"]


class _CountingStore(Passing):
    """A store that notes which objects are read."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.looked_up: list[str] = []

    async def get(self, kind: type[ResourceT], name: str) -> ResourceT:
        self.looked_up.append(name)
        return await super().get(kind, name)


@options(seeds=2)
async def test_the_group_of_a_changed_object_is_not_looked_up(sample: Farm) -> None:
    store, reconciled = _CountingStore(sample.store), []

    async def reconcile(key: str, _: ReconcileContext) -> Result:
        reconciled.append(key)
        return Done()

    ports = replace(sample.ports(store=store), group_label=LABEL)
    driver = Controller("t", reconcile, kind=Animal, ports=ports)
    await driver.start()
    await sample.world.clock.sleep(5)
    for number in range(3):
        await sample.store.create(animal(f"a{number}", labels={LABEL: "ann"}))
    await sample.world.clock.sleep(5)
    await driver.stop()
    assert sorted(reconciled) == ["a0", "a1", "a2"]
    assert store.looked_up == []


@options(seeds=10)
async def test_whatever_happens_every_key_is_taken_and_none_twice_at_once(world: World) -> None:
    chance = world.randomness

    async def find_group(key: str) -> str:
        await world.clock.sleep(chance.uniform(0, 0.2))
        return key[0]

    queue = Queue(world.clock, share=2, find_group=find_group)
    running: set[str] = set()
    pending: set[str] = set()

    async def work() -> None:
        while (taken := await queue.take()) is not None:
            key = taken[0]
            assert key not in running
            assert sum(other[0] == key[0] for other in running) < 2
            running.add(key)
            pending.discard(key)
            await world.clock.sleep(chance.uniform(0, 1))
            running.remove(key)
            queue.finish(key, requeue_s=0.5 if chance.randrange(4) == 0 else None)

    workers = [asyncio.create_task(work()) for _ in range(5)]
    for _ in range(200):
        key = f"{'abc'[chance.randrange(3)]}{chance.randrange(5)}"
        pending.add(key)
        queue.add(key, "event", (Rank.USER, Rank.ROUTINE, Rank.RESYNC)[chance.randrange(3)])
        await world.clock.sleep(chance.uniform(0, 0.3))
    await world.clock.sleep(300)
    assert not pending
    assert queue.is_idle
    assert queue.depth == 0
    queue.close()
    await asyncio.gather(*workers)
