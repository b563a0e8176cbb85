"""Runs whose record somebody else has written, and closes of which nobody knows whether they happened."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from remuda.kernel.errors import StorageFailing, Unavailable
from remuda.operations.kinds import Operation
from remuda.operations.reporter import Metrics
from remuda.operations.saga import Sagas
from tests.kit.proofs.saga_environment import FIRST, SETTINGS, Process, SagaEnvironment
from tests.kit.proofs.saga_hooks import Again, Point, hooked, meanwhile
from tests.kit.sample_farm.open_operations import left_open
from tests.kit.sample_farm.saga import PITCH

LAST = Point("do", "pitch-tent", "after")


async def test_a_run_that_loses_the_closing_swap_answers_503_and_leaves_nothing(sagas: SagaEnvironment) -> None:
    clean = await sagas.observe()
    other = sagas.start(is_only_process=False)

    async def overtake(write: Callable[[], Awaitable[Any]]) -> Any:
        sagas.world.clock.jump(timedelta(seconds=SETTINGS.run_s + SETTINGS.grace_s + 1))
        await other.recovery.recover()
        return await write()

    process = sagas.start(is_only_process=False)
    process.store.at_close = overtake
    error = await process.try_to_run()
    assert isinstance(error, Unavailable)
    assert await sagas.phase() == "undone"
    assert await sagas.observe() == clean


async def test_a_close_that_happened_although_it_failed_is_a_success(sagas: SagaEnvironment) -> None:
    async def fail_after(write: Callable[[], Awaitable[Any]]) -> Any:
        await write()
        raise StorageFailing("disk", "cable")

    process = sagas.start()
    process.store.at_close = fail_after
    assert (await process.run()).phase == "done"


async def test_a_close_that_failed_is_undone(sagas: SagaEnvironment) -> None:
    clean = await sagas.observe()

    async def fail(_write: Callable[[], Awaitable[Any]]) -> Any:
        raise StorageFailing("disk", "cable")

    process = sagas.start()
    process.store.at_close = fail
    assert isinstance(await process.try_to_run(), StorageFailing)
    assert await sagas.phase() == "undone"
    assert await sagas.observe() == clean


async def test_somebody_elses_annotation_does_not_make_a_run_fail(sagas: SagaEnvironment) -> None:
    async def annotate() -> None:
        found = await sagas.store.get(Operation, FIRST)
        metadata = msgspec.structs.replace(found.metadata, annotations={"note": "hello"})
        await sagas.store.update(msgspec.structs.replace(found, metadata=metadata))

    operation = await sagas.start(hooked(PITCH, meanwhile(LAST, annotate))).run()
    assert (operation.phase, operation.metadata.annotations) == ("done", {"note": "hello"})


async def test_a_run_whose_record_was_deleted_is_undone(sagas: SagaEnvironment) -> None:
    async def delete() -> None:
        found = await sagas.store.get(Operation, FIRST)
        await sagas.store.delete(Operation, FIRST, uid=found.uid)

    clean = await sagas.observe()
    error = await sagas.start(hooked(PITCH, meanwhile(LAST, delete))).try_to_run()
    assert isinstance(error, Unavailable)
    assert await sagas.observe() == clean


async def test_a_run_whose_record_was_recreated_by_somebody_else_does_not_touch_that(sagas: SagaEnvironment) -> None:
    async def replace() -> None:
        found = await sagas.store.get(Operation, FIRST)
        await sagas.store.delete(Operation, FIRST, uid=found.uid)
        made.append(await sagas.store.create(left_open(sagas, FIRST)))

    clean, made = await sagas.observe(), list[Operation]()
    error = await sagas.start(hooked(PITCH, meanwhile(LAST, replace))).try_to_run()
    assert isinstance(error, Unavailable)
    assert await sagas.observe() == clean
    assert await sagas.store.get(Operation, FIRST) == made[0]


class Counted:
    """A process whose close can fail, and its numbers."""

    def __init__(self, sagas: SagaEnvironment) -> None:
        self._registry = CollectorRegistry()
        self.process: Process = sagas.start(reporter=Metrics(Sagas([PITCH]), self._registry))

    def closed(self, phase: str) -> float | None:
        return self._value("remuda_operations_closed_total", phase=phase)

    @property
    def journal_failures(self) -> float | None:
        return self._value("remuda_operation_step_failures_total", step="journal")

    def _value(self, name: str, **labels: str) -> float | None:
        return self._registry.get_sample_value(name, {"saga": PITCH.name, **labels})


async def test_a_close_that_happened_although_it_failed_counts_as_done(sagas: SagaEnvironment) -> None:
    async def fail_after(write: Callable[[], Awaitable[Any]]) -> Any:
        await write()
        raise StorageFailing("disk", "cable")

    counted = Counted(sagas)
    counted.process.store.at_close = fail_after
    await counted.process.run()
    assert (counted.closed("done"), counted.journal_failures) == (1, 0)


async def test_it_counts_as_done_even_if_for_a_while_nobody_can_see_that_it_happened(sagas: SagaEnvironment) -> None:
    async def fail_after(write: Callable[[], Awaitable[Any]]) -> Any:
        await write()
        reads.append(counted.process.store.before_read)
        counted.process.store.before_read = fail  # type: ignore[method-assign]  # reads fail for a while
        raise StorageFailing("disk", "cable")

    def fail() -> None:
        counted.process.store.before_read = reads[0]  # type: ignore[method-assign]  # reads fail for a while
        raise StorageFailing("disk", "cable")

    reads: list[Callable[[], None]] = []
    counted = Counted(sagas)
    counted.process.store.at_close = fail_after
    assert (await counted.process.run()).phase == "done"
    assert counted.closed("done") == 1


async def test_a_close_that_failed_counts_as_undone(sagas: SagaEnvironment) -> None:
    async def fail(_write: Callable[[], Awaitable[Any]]) -> Any:
        raise StorageFailing("disk", "cable")

    counted = Counted(sagas)
    counted.process.store.at_close = fail
    await counted.process.try_to_run()
    assert (counted.closed("done"), counted.closed("undone"), counted.journal_failures) == (0, 1, 1)


async def test_what_was_abandoned_meanwhile_is_not_undone(sagas: SagaEnvironment) -> None:
    left = await sagas.store.update_status((await sagas.store.create(left_open(sagas, FIRST))).moved("undoing"))
    reached: list[Point] = []

    async def note(point: Point, _again: Again) -> None:
        reached.append(point)

    process = sagas.start(hooked(PITCH, note))
    await process.operations.abandon(FIRST, reason="enough", actor="ada")
    process.operations.take_over(left)
    await process.settle()
    assert await sagas.phase() == "abandoned"
    assert not reached
