"""What callers of an operation meet."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest
import structlog

from remuda.kernel.errors import InFlight, KeyReused, TimedOut, Unavailable
from remuda.operations.kinds import OPEN, Operation, attempt_id
from remuda.operations.saga import Step, Work
from remuda.store.logs import Record, subject_of
from tests.kit.proofs.saga_environment import FIRST, SETTINGS, SagaEnvironment
from tests.kit.proofs.saga_hooks import Again, InjectedError, Point, failing, hooked, meanwhile
from tests.kit.sample_farm.saga import PITCH, TENT, Outfit, Pitch

LAST = Point("do", "pitch-tent", "after")
POLE = Point("undo", "cut-pole", "before")


async def test_the_record_says_what_was_asked_and_what_became_of_it(sagas: SagaEnvironment) -> None:
    process = sagas.start()
    operation = await process.operations.run(PITCH, id=FIRST, actor="ada", input=Pitch("blue"), trace_id="t" * 32)
    spec = operation.spec
    assert (spec.saga, spec.subject_kind, spec.subject) == ("tent.pitch", TENT.qualified, "blue")
    assert (spec.actor, spec.trace_id, spec.request) == ("ada", "t" * 32, FIRST)
    assert msgspec.json.decode(spec.input, type=Pitch) == Pitch("blue")
    assert spec.process == process.operations.process
    assert operation.status.closed is not None
    found = await sagas.store.list(Operation, index=("subject", subject_of(TENT.qualified, "blue")))
    assert list(found.items) == [operation]
    assert not (await sagas.store.list(Operation, index=OPEN)).items


async def test_a_saga_that_is_not_registered_is_not_run(sagas: SagaEnvironment) -> None:
    another = replace(PITCH, steps=PITCH.steps[:1])
    with pytest.raises(ValueError, match="is not registered"):
        await sagas.start().operations.run(another, id=FIRST, actor="ada", input=Pitch("blue"))
    assert not (await sagas.store.list(Operation)).items


async def test_an_unexpected_error_is_kept_without_its_text(sagas: SagaEnvironment) -> None:
    async def leak() -> None:
        raise RuntimeError("hunter2")

    error = await sagas.start(hooked(PITCH, meanwhile(LAST, leak))).try_to_run()
    assert str(error) == "hunter2"
    status = (await sagas.store.get(Operation, FIRST)).status
    assert (status.failed_step, status.error.code if status.error else "") == ("pitch-tent", "internal")
    assert "hunter2" not in msgspec.json.encode(status).decode()


async def test_a_run_past_its_deadline_is_undone(sagas: SagaEnvironment) -> None:
    clean = await sagas.observe()

    async def dawdle() -> None:
        await sagas.world.clock.sleep(SETTINGS.run_s + 1)

    error = await sagas.start(hooked(PITCH, meanwhile(LAST, dawdle))).try_to_run()
    assert isinstance(error, TimedOut)
    assert await sagas.observe() == clean


async def test_a_run_that_slept_past_its_deadline_begins_no_further_step(sagas: SagaEnvironment) -> None:
    async def sleep() -> None:
        sagas.world.clock.jump(timedelta(seconds=SETTINGS.run_s + 1))

    process = sagas.start(hooked(PITCH, meanwhile(Point("do", "take-place", "after"), sleep)))
    error = await process.try_to_run()
    assert isinstance(error, TimedOut)
    assert process.fuse.by_kind["Tent"] == 0


async def test_a_run_that_slept_past_its_deadline_in_the_last_step_is_undone(sagas: SagaEnvironment) -> None:
    async def sleep() -> None:
        sagas.world.clock.jump(timedelta(seconds=SETTINGS.run_s + 1))

    clean = await sagas.observe()
    error = await sagas.start(hooked(PITCH, meanwhile(LAST, sleep))).try_to_run()
    assert isinstance(error, TimedOut)
    assert await sagas.phase() == "undone"
    assert await sagas.observe() == clean


async def test_a_caller_that_goes_away_before_the_first_step_has_none_done(sagas: SagaEnvironment) -> None:
    process = sagas.start()
    caller = asyncio.create_task(process.run())
    while not process.fuse.by_kind["Operation"]:
        await sagas.world.clock.sleep(0)
    caller.cancel()
    await asyncio.wait([caller])
    await process.settle()
    assert process.fuse.by_kind == {"Operation": 3}
    assert await sagas.phase() == "undone"


async def test_a_caller_that_goes_away_interrupts_the_step_under_way(sagas: SagaEnvironment) -> None:
    async def hang() -> None:
        await sagas.world.clock.sleep(10_000)

    process = sagas.start(hooked(PITCH, meanwhile(LAST, hang)))
    caller = asyncio.create_task(process.run())
    await sagas.world.clock.sleep(1)
    caller.cancel()
    await asyncio.wait([caller])
    await process.settle()
    assert sagas.world.clock.monotonic() < 5
    found = await sagas.store.get(Operation, FIRST)
    assert (found.phase, found.status.error.code if found.status.error else "") == ("undone", "caller_left")


async def test_the_same_request_meanwhile_is_in_flight(sagas: SagaEnvironment) -> None:
    met: list[Exception | None] = []
    other = sagas.start(is_only_process=False)

    async def ask_again() -> None:
        met.append(await process.try_to_run())
        met.append(await other.try_to_run())

    process = sagas.start(hooked(PITCH, meanwhile(LAST, ask_again)))
    await process.run()
    assert [type(error) for error in met] == [InFlight, InFlight]


async def test_the_id_of_another_request_is_refused(sagas: SagaEnvironment) -> None:
    process = sagas.start()
    await process.run(FIRST, Pitch("blue"))
    assert isinstance(await process.try_to_run(FIRST, Pitch("red")), KeyReused)


def test_each_attempt_has_a_name_of_its_own() -> None:
    names = [attempt_id(FIRST, number) for number in (1, 2, 3)]
    assert names[0] == FIRST
    assert len(set(names)) == 3
    assert names == [attempt_id(FIRST, number) for number in (1, 2, 3)]
    assert attempt_id(FIRST, 2) != attempt_id(f"{FIRST[:-1]}7", 2)


async def test_what_a_caller_wants_kept_is_kept_only_with_success(sagas: SagaEnvironment) -> None:
    record = Record(stream="audit", subject="blue", data=msgspec.Raw(b'"pitched"'))
    process = sagas.start(hooked(PITCH, failing(LAST)))
    saga = process.operations.sagas.get(PITCH.name)
    assert saga is not None
    with pytest.raises(InjectedError):
        await process.operations.run(saga, id=FIRST, actor="ada", input=Pitch("blue"), log=[record])
    assert not (await sagas.store.read("audit", "blue")).entries
    await process.operations.run(saga, id=FIRST, actor="ada", input=Pitch("blue"), log=[record])
    assert [bytes(entry.data) for entry in (await sagas.store.read("audit", "blue")).entries] == [b'"pitched"']


async def test_steps_and_undos_run_with_the_operation_bound_to_the_log(sagas: SagaEnvironment) -> None:
    bound: list[object] = []

    async def note(_outfit: Outfit, _work: Work[Pitch]) -> None:
        bound.append(structlog.contextvars.get_contextvars().get("operation"))

    saga = replace(PITCH, steps=(Step(name="note", do=note, undo=note), *PITCH.steps))
    await sagas.start(hooked(saga, failing(LAST))).try_to_run()
    assert bound == [FIRST, FIRST]
    assert "operation" not in structlog.contextvars.get_contextvars()


async def test_a_step_that_makes_an_error_of_the_interruption_leaves_no_trace_of_it_in_undoing(
    sagas: SagaEnvironment,
) -> None:
    cancelled: list[Point] = []

    async def stumble(point: Point, _again: Again) -> None:
        if point == LAST:
            try:
                await sagas.world.clock.sleep(10_000)
            except asyncio.CancelledError:
                raise InjectedError("could not clean up") from None
        if point == POLE and not cancelled:
            cancelled.append(point)
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            future.cancel()
            await future

    process = sagas.start(hooked(PITCH, stumble))
    caller = asyncio.create_task(process.run())
    await sagas.world.clock.sleep(1)
    caller.cancel()
    await asyncio.wait([caller])
    await process.settle()
    status = (await sagas.store.get(Operation, FIRST)).status
    assert (status.phase, status.undo_attempts) == ("undone", 1)
    assert status.undo_error is not None
    assert status.undo_error.code == "unavailable"


async def test_something_cancelled_within_a_step_is_a_failure_of_that_step(sagas: SagaEnvironment) -> None:
    async def cancel_within() -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    clean = await sagas.observe()
    error = await sagas.start(hooked(PITCH, meanwhile(LAST, cancel_within))).try_to_run()
    assert isinstance(error, Unavailable)
    assert await sagas.phase() == "undone"
    assert await sagas.observe() == clean
