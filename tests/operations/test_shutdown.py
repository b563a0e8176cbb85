"""A process that stops ends what it can, and leaves the rest to the next start."""

import asyncio

import pytest
from structlog.testing import capture_logs

from remuda.kernel.errors import Unavailable
from remuda.operations.kinds import attempt_id
from tests.kit.proofs.saga_environment import FIRST, SagaEnvironment
from tests.kit.proofs.saga_hooks import Again, InjectedError, Point, both, failing, hooked, meanwhile
from tests.kit.sample_farm.open_operations import left_open
from tests.kit.sample_farm.saga import PITCH
from tests.kit.sample_farm.stuck_operations import Jam, get_stuck

LAST = Point("do", "pitch-tent", "after")
POLE = Point("undo", "cut-pole", "before")


async def test_a_process_that_stops_lets_its_runs_end(sagas: SagaEnvironment) -> None:
    async def stop() -> None:
        stopping.append(asyncio.create_task(process.operations.stop(grace_s=5)))
        await sagas.world.clock.sleep(1)

    stopping: list[asyncio.Task[None]] = []
    process = sagas.start(hooked(PITCH, meanwhile(LAST, stop)))
    assert (await process.run()).phase == "done"
    await stopping[0]
    assert isinstance(await process.try_to_run(attempt_id(FIRST, 9)), Unavailable)


async def test_a_process_that_stops_leaves_what_does_not_end_to_the_next_start(sagas: SagaEnvironment) -> None:
    async def stop() -> None:
        stopping.append(asyncio.create_task(process.operations.stop(grace_s=5)))
        await sagas.world.clock.sleep(10)

    clean = await sagas.observe()
    stopping: list[asyncio.Task[None]] = []
    process = sagas.start(hooked(PITCH, meanwhile(LAST, stop)))
    assert isinstance(await process.try_to_run(), Unavailable)
    await stopping[0]
    assert await sagas.phase() == "running"
    await sagas.start().recovery.recover()
    assert await sagas.phase() == "undone"
    assert await sagas.observe() == clean


async def test_a_run_that_pauses_is_not_waited_for(sagas: SagaEnvironment) -> None:
    process = await get_stuck(sagas, Jam())
    began = sagas.world.clock.monotonic()
    await process.operations.stop(grace_s=100)
    assert sagas.world.clock.monotonic() - began < 1
    assert not process.operations.running
    assert await sagas.phase() == "stuck"


async def test_a_run_that_would_pause_while_the_process_stops_is_not_waited_for_either(sagas: SagaEnvironment) -> None:
    async def dawdle() -> None:
        await sagas.world.clock.sleep(2)

    jam = Jam()
    process = sagas.start(hooked(PITCH, both(both(meanwhile(LAST, dawdle), failing(LAST)), jam)))
    caller = asyncio.create_task(process.try_to_run())
    await sagas.world.clock.sleep(1)
    began = sagas.world.clock.monotonic()
    await process.operations.stop(grace_s=100)
    assert sagas.world.clock.monotonic() - began < 2
    assert jam.tries == 1, "it was tried once"
    assert isinstance(await caller, InjectedError), "and its caller hears what the step said"
    assert await sagas.phase() == "undoing"


async def test_what_cannot_be_cut_off_does_not_hold_up_the_end(sagas: SagaEnvironment) -> None:
    ends = asyncio.Event()

    async def never_end(point: Point, _again: Again) -> None:
        while point == LAST and not ends.is_set():
            try:
                await ends.wait()
            except asyncio.CancelledError:
                continue

    process = sagas.start(hooked(PITCH, never_end))
    caller = asyncio.create_task(process.try_to_run())
    await sagas.world.clock.sleep(1)
    with capture_logs() as logs:
        await process.operations.stop(grace_s=10)
    assert sagas.world.clock.monotonic() < 20
    assert [(line["event"], line["operations"]) for line in logs] == [("operations did not end in time", [FIRST])]
    ends.set()
    await caller


async def test_a_process_that_stops_takes_nothing_over(sagas: SagaEnvironment) -> None:
    created = await sagas.store.create(left_open(sagas, FIRST))
    process = sagas.start()
    await process.operations.stop(grace_s=0)
    await process.recovery.recover()
    assert not process.operations.running
    assert await sagas.phase() == "running"
    await sagas.store.update_status(created.moved("undoing"))
    with pytest.raises(Unavailable, match="stopping"):
        await process.operations.retry(FIRST)
    assert await sagas.phase() == "undoing"
