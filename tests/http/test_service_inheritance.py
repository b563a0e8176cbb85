"""Requests under an idempotency key whose process died, or that were cut off: who carries them out again, and when."""

import asyncio

import pytest

from remuda.kernel.errors import InFlight
from tests.kit.sample_api.idempotency import REPLAYED, TIME_LIMIT_S, IdempotencyEnvironment


async def test_what_a_dead_process_began_is_run_again_under_the_same_operation(
    idempotency: IdempotencyEnvironment,
) -> None:
    idempotency.may_go_on.clear()
    dying = asyncio.create_task(idempotency.ask(idempotency.process()))
    await idempotency.world.clock.sleep(1)
    dying.cancel()
    idempotency.may_go_on.set()
    heir = idempotency.process()
    with pytest.raises(InFlight):
        await idempotency.ask(heir)
    await idempotency.world.clock.sleep(TIME_LIMIT_S)
    assert await idempotency.ask(heir) == idempotency.answer
    assert (await idempotency.ask(idempotency.process())).headers[-1] == REPLAYED
    assert len(idempotency.operations) == 2
    assert len(set(idempotency.operations)) == 1


async def test_of_two_heirs_one_runs_it_again(idempotency: IdempotencyEnvironment) -> None:
    idempotency.may_go_on.clear()
    dying = asyncio.create_task(idempotency.ask(idempotency.process()))
    await idempotency.world.clock.sleep(TIME_LIMIT_S + 1)
    dying.cancel()
    heirs = [asyncio.create_task(idempotency.ask(idempotency.process())) for _ in range(2)]
    await idempotency.world.clock.sleep(1)
    idempotency.may_go_on.set()
    outcomes = await asyncio.gather(*heirs, return_exceptions=True)
    assert len(idempotency.operations) == 2
    assert idempotency.answer in outcomes


async def test_where_only_one_process_can_be_the_heir_need_not_wait(idempotency: IdempotencyEnvironment) -> None:
    idempotency.may_go_on.clear()
    dying = asyncio.create_task(idempotency.ask(idempotency.process(only=True)))
    await idempotency.world.clock.sleep(1)
    dying.cancel()
    idempotency.may_go_on.set()
    assert await idempotency.ask(idempotency.process(only=True)) == idempotency.answer
    assert len(set(idempotency.operations)) == 1


async def test_a_request_that_was_cut_off_in_this_process_can_be_sent_again_at_once(
    idempotency: IdempotencyEnvironment,
) -> None:
    process = idempotency.process()
    idempotency.may_go_on.clear()
    cut = asyncio.create_task(idempotency.ask(process))
    await idempotency.world.clock.sleep(1)
    cut.cancel()
    await asyncio.gather(cut, return_exceptions=True)
    idempotency.may_go_on.set()
    assert await idempotency.ask(process) == idempotency.answer
    assert len(set(idempotency.operations)) == 1
