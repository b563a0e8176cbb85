"""Requests under an idempotency key whose process died, or that were cut off: who carries them out again, and when."""

import asyncio

import pytest

from remuda.kernel.errors import InFlight
from tests.kit.sample_api.idempotency import REPLAYED, TIME_LIMIT_S, Bed, in_a_bed


def test_what_a_dead_process_began_is_run_again_under_the_same_operation() -> None:
    async def test(bed: Bed) -> None:
        bed.may_go_on.clear()
        dying = asyncio.create_task(bed.ask(bed.process()))
        await bed.world.clock.sleep(1)
        dying.cancel()
        bed.may_go_on.set()
        heir = bed.process()
        with pytest.raises(InFlight):
            await bed.ask(heir)
        await bed.world.clock.sleep(TIME_LIMIT_S)
        assert await bed.ask(heir) == bed.answer
        assert (await bed.ask(bed.process())).headers[-1] == REPLAYED
        assert len(bed.operations) == 2
        assert len(set(bed.operations)) == 1

    in_a_bed(test)


def test_of_two_heirs_one_runs_it_again() -> None:
    async def test(bed: Bed) -> None:
        bed.may_go_on.clear()
        dying = asyncio.create_task(bed.ask(bed.process()))
        await bed.world.clock.sleep(TIME_LIMIT_S + 1)
        dying.cancel()
        heirs = [asyncio.create_task(bed.ask(bed.process())) for _ in range(2)]
        await bed.world.clock.sleep(1)
        bed.may_go_on.set()
        outcomes = await asyncio.gather(*heirs, return_exceptions=True)
        assert len(bed.operations) == 2
        assert bed.answer in outcomes

    in_a_bed(test)


def test_where_only_one_process_can_be_the_heir_need_not_wait() -> None:
    async def test(bed: Bed) -> None:
        bed.may_go_on.clear()
        dying = asyncio.create_task(bed.ask(bed.process(only=True)))
        await bed.world.clock.sleep(1)
        dying.cancel()
        bed.may_go_on.set()
        assert await bed.ask(bed.process(only=True)) == bed.answer
        assert len(set(bed.operations)) == 1

    in_a_bed(test)


def test_a_request_that_was_cut_off_in_this_process_can_be_sent_again_at_once() -> None:
    async def test(bed: Bed) -> None:
        process = bed.process()
        bed.may_go_on.clear()
        cut = asyncio.create_task(bed.ask(process))
        await bed.world.clock.sleep(1)
        cut.cancel()
        await asyncio.gather(cut, return_exceptions=True)
        bed.may_go_on.set()
        assert await bed.ask(process) == bed.answer
        assert len(set(bed.operations)) == 1

    in_a_bed(test)
