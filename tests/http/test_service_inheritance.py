"""Requests under an idempotency key whose process died, or that were cut off: who carries them out again, and when."""

import asyncio

import pytest

from remuda.kernel.errors import InFlight
from tests.kit.sample_api.idempotency import REPLAYED, TIME_LIMIT_S, IdempotencyEnvironment, run_idempotency


def test_what_a_dead_process_began_is_run_again_under_the_same_operation() -> None:
    async def test(sample: IdempotencyEnvironment) -> None:
        sample.may_go_on.clear()
        dying = asyncio.create_task(sample.ask(sample.process()))
        await sample.world.clock.sleep(1)
        dying.cancel()
        sample.may_go_on.set()
        heir = sample.process()
        with pytest.raises(InFlight):
            await sample.ask(heir)
        await sample.world.clock.sleep(TIME_LIMIT_S)
        assert await sample.ask(heir) == sample.answer
        assert (await sample.ask(sample.process())).headers[-1] == REPLAYED
        assert len(sample.operations) == 2
        assert len(set(sample.operations)) == 1

    run_idempotency(test)


def test_of_two_heirs_one_runs_it_again() -> None:
    async def test(sample: IdempotencyEnvironment) -> None:
        sample.may_go_on.clear()
        dying = asyncio.create_task(sample.ask(sample.process()))
        await sample.world.clock.sleep(TIME_LIMIT_S + 1)
        dying.cancel()
        heirs = [asyncio.create_task(sample.ask(sample.process())) for _ in range(2)]
        await sample.world.clock.sleep(1)
        sample.may_go_on.set()
        outcomes = await asyncio.gather(*heirs, return_exceptions=True)
        assert len(sample.operations) == 2
        assert sample.answer in outcomes

    run_idempotency(test)


def test_where_only_one_process_can_be_the_heir_need_not_wait() -> None:
    async def test(sample: IdempotencyEnvironment) -> None:
        sample.may_go_on.clear()
        dying = asyncio.create_task(sample.ask(sample.process(only=True)))
        await sample.world.clock.sleep(1)
        dying.cancel()
        sample.may_go_on.set()
        assert await sample.ask(sample.process(only=True)) == sample.answer
        assert len(set(sample.operations)) == 1

    run_idempotency(test)


def test_a_request_that_was_cut_off_in_this_process_can_be_sent_again_at_once() -> None:
    async def test(sample: IdempotencyEnvironment) -> None:
        process = sample.process()
        sample.may_go_on.clear()
        cut = asyncio.create_task(sample.ask(process))
        await sample.world.clock.sleep(1)
        cut.cancel()
        await asyncio.gather(cut, return_exceptions=True)
        sample.may_go_on.set()
        assert await sample.ask(process) == sample.answer
        assert len(set(sample.operations)) == 1

    run_idempotency(test)
