"""What a process that is gone has left open is undone, and what the living do is left alone."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import msgspec

from remuda.operations.kinds import Operation
from remuda.operations.reporter import OpenCounts, Reporter
from remuda.operations.runner import OperationSettings
from remuda.operations.saga import Step, Work
from tests.kit.environment import options
from tests.kit.proofs.saga_environment import FIRST, SETTINGS, SagaEnvironment
from tests.kit.proofs.saga_hooks import Again, Point, hooked, meanwhile
from tests.kit.sample_farm.open_operations import left_open
from tests.kit.sample_farm.saga import PITCH, Outfit, Pitch

LAST = Point("do", "pitch-tent", "after")


class Counting(Reporter):
    """Remembers how many were open."""

    def __init__(self) -> None:
        self.seen: list[OpenCounts] = []

    def open(self, counts: OpenCounts) -> None:
        self.seen.append(dict(counts))


async def test_alone_everything_that_is_open_is_undone_at_once(sagas: SagaEnvironment) -> None:
    await sagas.store.create(left_open(sagas, FIRST))
    await sagas.start().recovery.recover()
    found = await sagas.store.get(Operation, FIRST)
    assert (found.phase, found.status.error.code if found.status.error else "") == ("undone", "process_ended")


async def test_alone_a_living_run_is_left_alone(sagas: SagaEnvironment) -> None:
    async def recover() -> None:
        await process.recovery.recover()

    process = sagas.start(hooked(PITCH, meanwhile(LAST, recover)))
    assert (await process.run()).phase == "done"


async def test_beside_others_only_what_is_past_deadline_and_grace_is_undone(sagas: SagaEnvironment) -> None:
    await sagas.store.create(left_open(sagas, FIRST))
    process = sagas.start(is_only_process=False)
    await sagas.world.clock.sleep(SETTINGS.run_s + SETTINGS.grace_s - 1)
    await process.recovery.recover()
    assert await sagas.phase() == "running"
    await sagas.world.clock.sleep(2)
    await process.recovery.recover()
    assert await sagas.phase() == "undone"


async def test_beside_others_one_that_is_tried_again_is_left_until_its_next_try_is_overdue(
    sagas: SagaEnvironment,
) -> None:
    created = await sagas.store.create(left_open(sagas, FIRST))
    next_try = sagas.world.clock.now() + timedelta(seconds=1000)
    await sagas.store.update_status(created.moved("stuck", next_attempt=next_try))
    process = sagas.start(is_only_process=False)
    await sagas.world.clock.sleep(1000 + SETTINGS.grace_s - 1)
    await process.recovery.recover()
    assert await sagas.phase() == "stuck"
    await sagas.world.clock.sleep(2)
    await process.recovery.recover()
    assert await sagas.phase() == "undone"


async def test_a_record_of_this_boot_that_nobody_works_on_is_undone(sagas: SagaEnvironment) -> None:
    process = sagas.start(is_only_process=False)
    orphan = left_open(sagas, FIRST)
    spec = msgspec.structs.replace(orphan.spec, process=process.operations.process)
    await sagas.store.create(msgspec.structs.replace(orphan, spec=spec))
    await process.recovery.recover()
    assert await sagas.phase() == "undone"


async def test_what_is_taken_over_twice_is_undone_by_one(sagas: SagaEnvironment) -> None:
    left = await sagas.store.create(left_open(sagas, FIRST))
    process = sagas.start()
    one, other = process.operations.take_over(left), process.operations.take_over(left)
    assert one is other
    await process.settle()
    assert await sagas.phase() == "undone"


async def test_the_task_looks_now_and_then(sagas: SagaEnvironment) -> None:
    process = sagas.start()
    async with sagas.task(process.recovery.run):
        await sagas.world.clock.sleep(1)
        await sagas.store.create(left_open(sagas, FIRST))
        await sagas.world.clock.sleep(SETTINGS.recovery_interval_s)
        assert await sagas.phase() == "undone"


@options(seeds=1)
async def test_more_than_a_page_is_recovered(sagas: SagaEnvironment) -> None:
    for number in range(250):
        await sagas.store.create(left_open(sagas, f"left-{number:03}"))
    await sagas.start().recovery.recover()
    await sagas.assert_closed()


async def test_recovery_tells_how_many_are_open(sagas: SagaEnvironment) -> None:
    await sagas.store.create(left_open(sagas, FIRST))
    counting = Counting()
    process = sagas.start(is_only_process=False, reporter=counting)
    await process.recovery.recover()
    await sagas.world.clock.sleep(SETTINGS.run_s + SETTINGS.grace_s + 1)
    await process.recovery.recover()
    await process.recovery.recover()
    assert counting.seen == [{(PITCH.name, "running"): 1}, {(PITCH.name, "running"): 1}, {}]


@options(seeds=1)
async def test_an_undo_that_hangs_holds_up_nobody_else(sagas: SagaEnvironment) -> None:
    undone: list[float] = []
    began = sagas.world.clock.monotonic()

    async def hang(point: Point, _again: Again) -> None:
        if point == Point("undo", "pitch-tent", "before"):
            await sagas.world.clock.sleep(10_000)

    async def note(_outfit: Outfit, _work: Work[Pitch]) -> None:
        undone.append(sagas.world.clock.monotonic() - began)

    step = Step(name="note", do=note, undo=note)
    process = sagas.start(hooked(replace(PITCH, steps=(*PITCH.steps, step)), hang))
    for number in range(3 * SETTINGS.concurrency):
        await sagas.store.create(left_open(sagas, f"left-{number:03}"))
    await sagas.store.create(left_open(sagas, FIRST))
    await process.recovery.recover()
    assert len(undone) == 3 * SETTINGS.concurrency + 1
    assert max(undone) < SETTINGS.undo_s
    await process.kill()


@options(seeds=1)
async def test_what_was_abandoned_while_recovery_was_busy_is_left(sagas: SagaEnvironment) -> None:
    undone: list[str] = []

    async def hang(_outfit: Outfit, work: Work[Pitch]) -> None:
        undone.append(work.id)
        await sagas.world.clock.sleep(10_000)

    counting = Counting()
    process = sagas.start(replace(PITCH, steps=(Step(name="hang", do=hang, undo=hang),)), reporter=counting)
    for number in range(SETTINGS.concurrency):
        await sagas.store.create(left_open(sagas, f"left-{number:03}"))
    last = await sagas.store.create(left_open(sagas, "the-last"))
    await sagas.store.update_status(last.moved("undoing"))
    recovering = asyncio.create_task(process.recovery.recover())
    await sagas.world.clock.sleep(1)
    assert len(undone) == SETTINGS.concurrency
    await sagas.start().operations.abandon("the-last", reason="enough", actor="ada")
    await recovering
    assert "the-last" not in undone
    assert counting.seen == [{(PITCH.name, "running"): SETTINGS.concurrency}]
    await process.kill()


async def test_closed_operations_are_forgotten_when_their_time_has_come(sagas: SagaEnvironment) -> None:
    process = sagas.start()
    await process.run()
    sagas.world.clock.jump(OperationSettings().retention - timedelta(minutes=1))
    created = await sagas.store.create(left_open(sagas, "open-and-old"))
    await process.recovery.delete_old()
    assert await sagas.phase() == "done"
    async with sagas.task(process.recovery.run_retention):
        await sagas.world.clock.sleep(2 * 3600)
    assert [each.name for each in (await sagas.store.list(Operation)).items] == [created.name]
