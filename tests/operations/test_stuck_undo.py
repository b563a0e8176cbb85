"""Operations that this process cannot undo are told and counted, and hold up nobody."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from remuda.kernel.errors import Unreadable
from remuda.operations.kinds import Obstacle, Operation
from remuda.operations.reporter import Obstructed, OpenCounts, Reporter
from remuda.operations.runner import OperationSettings
from remuda.operations.saga import Sagas
from tests.kit.proofs.saga_environment import FIRST, SECOND, SETTINGS, SagaEnvironment
from tests.kit.proofs.saga_hooks import Point, hooked, meanwhile
from tests.kit.sample_farm.open_operations import left_open
from tests.kit.sample_farm.saga import PITCH, Pitch

LAST = Point("do", "pitch-tent", "after")
BURN = replace(PITCH, name="tent.burn")
"""Another service's saga."""


class Counting(Reporter):
    """Remembers the last numbers."""

    def __init__(self) -> None:
        self.seen: OpenCounts = {}
        self.obstacles: dict[Obstacle, int] = {}

    def open(self, counts: OpenCounts) -> None:
        self.seen = dict(counts)

    def obstructed(self, found: Obstructed, sagas: Sagas) -> None:  # noqa: ARG002  as the port has it
        self.obstacles = dict(Counter(found.values()))


def told(logs: list[EventDict]) -> list[str]:
    return [line["operation"] for line in logs if line["event"] == "operation cannot be undone"]


async def spoil(sagas: SagaEnvironment, operation: Operation) -> None:
    """Make a record unreadable, and start again so that nobody remembers what it said."""
    await sagas.store.update_status(operation.moved(operation.phase, undo_attempts="many"))
    await sagas.crash()
    with pytest.raises(Unreadable):
        await sagas.store.get(Operation, operation.name)


async def test_a_record_that_cannot_be_read_holds_up_nobody(sagas: SagaEnvironment) -> None:
    await sagas.store.create(left_open(sagas, SECOND))
    await spoil(sagas, await sagas.store.create(left_open(sagas, FIRST)))
    counting = Counting()
    process = sagas.start(reporter=counting)
    with capture_logs() as logs:
        await process.recovery.recover()
        await process.recovery.recover()
    assert (await sagas.store.get(Operation, SECOND)).phase == "undone"
    assert counting.obstacles == {"unreadable": 1}
    assert told(logs) == [FIRST], "and only once"


async def test_a_closed_record_that_cannot_be_read_is_kept_and_holds_up_nobody(sagas: SagaEnvironment) -> None:
    await sagas.start().run(SECOND, Pitch("red"))
    await spoil(sagas, await sagas.start().run(FIRST))
    sagas.world.clock.jump(OperationSettings().retention + timedelta(minutes=1))
    with capture_logs() as logs:
        await sagas.start().recovery.delete_old()
    assert (await sagas.store.list_names(Operation)).items == [FIRST]
    assert [(line["count"], line["operation"]) for line in logs] == [(1, FIRST)]


async def test_an_input_that_cannot_be_read_is_stuck(sagas: SagaEnvironment) -> None:
    await sagas.store.create(left_open(sagas, FIRST, text='{"tint":"blue"}'))
    counting = Counting()
    process = sagas.start(reporter=counting)
    with capture_logs() as logs:
        await process.recovery.recover()
        await process.recovery.recover()
    status = (await sagas.store.get(Operation, FIRST)).status
    assert (status.phase, status.undo_error.code if status.undo_error else "") == ("stuck", "unreadable_input")
    assert counting.obstacles == {"unreadable_input": 1}
    assert told(logs) == [FIRST]


async def test_alone_a_saga_that_nobody_knows_is_stuck_after_a_while(sagas: SagaEnvironment) -> None:
    await sagas.store.create(left_open(sagas, FIRST, saga="tent.forgotten"))
    sagas.world.clock.jump(timedelta(days=1))
    counting = Counting()
    process = sagas.start(reporter=counting)
    await process.recovery.recover()
    await sagas.world.clock.sleep(2 * SETTINGS.grace_s - 1)
    await process.recovery.recover()
    assert (await sagas.phase(), counting.obstacles) == ("running", {})
    await sagas.world.clock.sleep(2)
    with capture_logs() as logs:
        await process.recovery.recover()
        await process.recovery.recover()
    status = (await sagas.store.get(Operation, FIRST)).status
    assert status.phase == "stuck"
    assert status.undo_error is not None
    assert "tent.forgotten" in status.undo_error.message
    assert counting.obstacles == {"unknown_saga": 1}
    assert told(logs) == [FIRST]


async def test_beside_others_nothing_is_written_on_a_saga_that_is_not_known_here(sagas: SagaEnvironment) -> None:
    await sagas.store.create(left_open(sagas, FIRST, saga=BURN.name))
    version, counting = await sagas.version(), Counting()
    process = sagas.start(is_only_process=False, reporter=counting)
    with capture_logs() as logs:
        for _ in range(4):
            await sagas.world.clock.sleep(SETTINGS.grace_s)
            await process.recovery.recover()
    assert await sagas.version() == version
    assert counting.seen == {(BURN.name, "running"): 1}
    assert counting.obstacles == {"unknown_saga": 1}
    assert told(logs) == [FIRST]
    await sagas.start(BURN, is_only_process=False).recovery.recover()
    assert await sagas.phase() == "undone", "those who know it undo it"


async def test_two_services_of_one_process_leave_each_others_runs_alone(sagas: SagaEnvironment) -> None:
    other = sagas.start()

    async def look() -> None:
        await other.recovery.recover()

    process = sagas.start(hooked(BURN, meanwhile(LAST, look)))
    assert process.operations.process != other.operations.process
    assert (await process.run()).phase == "done"


async def test_what_a_crash_left_is_undone_by_the_service_that_knows_it_although_another_looks_first(
    sagas: SagaEnvironment,
) -> None:
    left = await sagas.store.create(left_open(sagas, FIRST, saga=BURN.name))
    await sagas.store.create(left_open(sagas, SECOND))
    sagas.world.clock.jump(timedelta(days=1))
    one, other = sagas.start(), sagas.start(BURN)
    await one.recovery.recover()
    assert await sagas.store.get(Operation, FIRST) == left
    await other.recovery.recover()
    assert [await sagas.phase(name) for name in (FIRST, SECOND)] == ["undone", "undone"]
