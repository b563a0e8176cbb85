"""Operations that cannot be undone are seen, tried again, and can be given up."""

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from remuda.kernel.errors import Invalid, NotFound, Unavailable
from remuda.operations.kinds import OPEN, Operation, attempt_id
from tests.kit.proofs.saga_environment import FIRST, SETTINGS, SagaEnvironment
from tests.kit.proofs.saga_hooks import Again, InjectedError, Point, both, failing, hooked
from tests.kit.sample_farm.saga import PITCH
from tests.kit.sample_farm.stuck_operations import LAST, POLE, Jam, get_stuck


async def test_an_undo_that_keeps_failing_gets_stuck_and_is_still_tried(sagas: SagaEnvironment) -> None:
    clean, jam = await sagas.observe(), Jam()
    with capture_logs() as logs:
        process = await get_stuck(sagas, jam)
    assert jam.tries == SETTINGS.stuck_attempts
    (stuck,) = (await sagas.store.list(Operation, index=OPEN)).items
    assert stuck.status.undo_attempts == SETTINGS.stuck_attempts
    assert stuck.status.undo_error is not None
    assert stuck.status.next_attempt is not None
    assert stuck.status.failed_step == "pitch-tent"
    assert [line["log_level"] for line in logs if line["event"] == "undo failed"] == ["warning", "warning", "error"]
    await sagas.world.clock.sleep(2 * SETTINGS.longest_pause_s)
    assert jam.tries > SETTINGS.stuck_attempts
    jam.is_loose = True
    await process.settle()
    assert await sagas.phase() == "undone"
    assert await sagas.observe() == clean


async def test_the_pauses_grow_up_to_the_longest(sagas: SagaEnvironment) -> None:
    jam = Jam()
    process = await get_stuck(sagas, jam)
    began = sagas.world.clock.monotonic()
    tries = jam.tries
    await sagas.world.clock.sleep(100 * SETTINGS.longest_pause_s)
    made = jam.tries - tries
    assert 100 <= made <= 220, f"{made} tries in {sagas.world.clock.monotonic() - began} s"
    await process.kill()


async def test_retry_tries_at_once(sagas: SagaEnvironment) -> None:
    jam = Jam()
    process = await get_stuck(sagas, jam)
    tries, began = jam.tries, sagas.world.clock.monotonic()
    assert (await process.operations.retry(FIRST)).phase == "stuck"
    assert jam.tries == tries + 1
    jam.is_loose = True
    assert (await process.operations.retry(FIRST)).phase == "undone"
    assert sagas.world.clock.monotonic() - began < 1


async def test_retry_during_a_try_waits_for_what_comes_of_it(sagas: SagaEnvironment) -> None:
    tries: list[float] = []

    async def fail_then_dawdle(point: Point, _again: Again) -> None:
        if point == POLE:
            tries.append(sagas.world.clock.monotonic())
            if len(tries) == 1:
                raise InjectedError(str(point))
            await sagas.world.clock.sleep(5)

    process = sagas.start(hooked(PITCH, both(failing(LAST), fail_then_dawdle)))
    await process.try_to_run()
    await sagas.world.clock.sleep(1)
    assert len(tries) == 2, "the second is under way"
    assert (await process.operations.retry(FIRST)).phase == "undone"
    assert len(tries) == 2


async def test_retry_where_the_saga_is_unknown_is_refused_and_changes_nothing(sagas: SagaEnvironment) -> None:
    process = await get_stuck(sagas, Jam())
    await process.kill()
    version = await sagas.version()
    stranger = sagas.start(replace(PITCH, name="tent.burn"))
    with pytest.raises(Invalid, match=r"tent\.pitch, which is unknown here: use its"):
        await stranger.operations.retry(FIRST)
    assert await sagas.version() == version


async def test_retry_works_in_a_process_that_knows_nothing_of_it(sagas: SagaEnvironment) -> None:
    process = await get_stuck(sagas, Jam())
    await process.kill()
    assert (await sagas.start().operations.retry(FIRST)).phase == "undone"


async def test_abandoning_ends_it_with_a_name_and_a_reason(sagas: SagaEnvironment) -> None:
    jam = Jam()
    process = await get_stuck(sagas, jam)
    with pytest.raises(Invalid, match="reason"):
        await process.operations.abandon(FIRST, reason=" ", actor="ada")
    abandoned = await process.operations.abandon(FIRST, reason="the woods burned down", actor="ada")
    assert (abandoned.phase, abandoned.status.abandoned_by) == ("abandoned", "ada")
    assert abandoned.status.abandoned_because == "the woods burned down"
    tries = jam.tries
    await sagas.world.clock.sleep(0.1)
    assert not process.operations.running, "it is released at once, not after the pause"
    assert jam.tries == tries, "nobody tries any more"
    await sagas.assert_closed()


async def test_abandoning_elsewhere_ends_it_here(sagas: SagaEnvironment) -> None:
    jam = Jam()
    process = await get_stuck(sagas, jam)
    await sagas.start(is_only_process=False).operations.abandon(FIRST, reason="enough", actor="ada")
    await process.settle()
    assert await sagas.phase() == "abandoned"


async def test_a_stuck_request_that_is_sent_again_waits_and_an_abandoned_one_is_a_fresh_attempt(
    sagas: SagaEnvironment,
) -> None:
    process = await get_stuck(sagas, Jam())
    assert isinstance(await process.try_to_run(), Unavailable)
    await process.operations.abandon(FIRST, reason="enough", actor="ada")
    assert (await process.run()).name == attempt_id(FIRST, 2)


async def test_only_what_is_being_undone_can_be_retried_or_abandoned(sagas: SagaEnvironment) -> None:
    process = sagas.start()
    await process.run()
    with pytest.raises(Invalid, match="is done"):
        await process.operations.retry(FIRST)
    with pytest.raises(Invalid, match="is done"):
        await process.operations.abandon(FIRST, reason="enough", actor="ada")
    with pytest.raises(NotFound):
        await process.operations.retry("nobody")
    assert await sagas.phase() == "done"


async def test_an_undo_that_never_comes_back_is_cut_off_and_tried_again(sagas: SagaEnvironment) -> None:
    hung: list[float] = []

    async def hang(point: Point, _again: Again) -> None:
        if point == POLE and not hung:
            hung.append(sagas.world.clock.monotonic())
            await sagas.world.clock.sleep(10_000)

    process = sagas.start(hooked(PITCH, both(failing(LAST), hang)))
    await process.try_to_run()
    assert sagas.world.clock.monotonic() - hung[0] == pytest.approx(SETTINGS.undo_s, abs=1)
    await process.settle()
    assert await sagas.phase() == "undone"
