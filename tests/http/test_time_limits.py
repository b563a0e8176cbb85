"""A time limit costs a timer only where somebody waits, and changes nothing else."""

import asyncio

import pytest

from remuda.http.time_limit import run_with_timeout
from remuda.kernel.errors import TimedOut
from remuda.kernel.time_limits import TimeLimits


async def test_work_that_does_not_wait_sets_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TimeLimits, "begin", None)

    async def work() -> int:
        return 7

    assert await run_with_timeout(TimeLimits(0), work()) == 7


async def test_work_that_waits_goes_on_where_it_was() -> None:
    passed: list[object] = []

    async def work() -> str:
        for delay_s in (0, 0.001, 0):
            await asyncio.sleep(delay_s)
            passed.append(asyncio.current_task())
        return "done"

    assert await run_with_timeout(TimeLimits(5), work()) == "done"
    assert passed == [asyncio.current_task()] * 3


@pytest.mark.parametrize("waits", [False, True])
async def test_what_work_raises_is_raised(waits: bool) -> None:  # noqa: FBT001  a parameter
    async def work() -> None:
        if waits:
            await asyncio.sleep(0)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await run_with_timeout(TimeLimits(5), work())


async def test_late_work_is_cancelled_and_may_tidy_up() -> None:
    tidied = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            tidied.append(True)

    with pytest.raises(TimedOut):
        await run_with_timeout(TimeLimits(0.01), work())
    assert tidied


async def test_a_timeout_of_the_works_own_is_not_taken_for_ours() -> None:
    async def work() -> None:
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await run_with_timeout(TimeLimits(5), work())


async def test_a_caller_that_is_cancelled_cancels_the_work() -> None:
    heard = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.set()
            raise

    calling = asyncio.create_task(run_with_timeout(TimeLimits(5), work()))
    await asyncio.sleep(0)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert heard.is_set()
