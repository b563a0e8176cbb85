"""Time limits of one duration: each expires on time, one timer serves all, and a cancellation stays one."""

import asyncio
from collections.abc import Sequence

import pytest

from remuda.kernel.time_limits import TimeLimits
from tests.kit.simulation.loop import SimLoop, run


def now() -> float:
    return asyncio.get_running_loop().time()


async def ends(limits: TimeLimits, *, begins_at: float, takes_s: float) -> tuple[str, float]:
    """Return how and when work ends."""
    await asyncio.sleep(begins_at)
    try:
        with limits.begin() as limit:
            await asyncio.sleep(takes_s)
    except TimeoutError:
        assert limit.is_expired
        return "expired", now()
    assert not limit.is_expired
    return "done", now()


async def all_ends() -> Sequence[tuple[str, float]]:
    limits = TimeLimits(10)
    return await asyncio.gather(
        ends(limits, begins_at=0, takes_s=100),
        ends(limits, begins_at=1, takes_s=2),
        ends(limits, begins_at=2, takes_s=9.5),
        ends(limits, begins_at=4, takes_s=100),
        ends(limits, begins_at=40, takes_s=11),
    )


def test_each_expires_after_its_own_time_and_what_ends_before_does_not() -> None:
    for seed in range(20):
        found = run(all_ends(), seed)
        assert found == [("expired", 10), ("done", 3), ("done", 11.5), ("expired", 14), ("expired", 50)]


def test_one_timer_serves_work_that_begins_and_ends_often(monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[float] = []
    call_at = SimLoop.call_at

    def counted(loop: SimLoop, when: float, *arguments: object, **options: object) -> asyncio.TimerHandle:
        timers.append(when)
        return call_at(loop, when, *arguments, **options)  # type: ignore[arg-type]  # as it was called

    async def work() -> None:
        limits = TimeLimits(10)
        for _ in range(100):
            with limits.begin():
                await asyncio.sleep(0)

    monkeypatch.setattr(SimLoop, "call_at", counted)
    run(work(), 1)
    assert timers == [10]


def test_a_task_that_is_cancelled_as_well_while_it_ends_is_cancelled() -> None:
    async def slow_to_end() -> None:
        with TimeLimits(10).begin():
            try:
                await asyncio.sleep(100)
            finally:
                await asyncio.sleep(2)

    async def cancelled_meanwhile() -> bool:
        task = asyncio.create_task(slow_to_end())
        await asyncio.sleep(11)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return task.cancelled()

    for seed in range(20):
        assert run(cancelled_meanwhile(), seed)


def test_the_limit_of_a_caller_does_not_expire_that_of_its_call() -> None:
    async def nested() -> tuple[bool, bool, float]:
        outer_limits, inner_limits = TimeLimits(5), TimeLimits(10)
        with pytest.raises(TimeoutError), outer_limits.begin() as outer, inner_limits.begin() as inner:
            await asyncio.sleep(100)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        return outer.is_expired, inner.is_expired, now()

    assert run(nested(), 1) == (True, False, 5)


def test_work_that_handles_its_cancellation_ends_as_it_likes() -> None:
    async def handled() -> str:
        with TimeLimits(5).begin() as limit:
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                return f"tidied {limit.is_expired}"
        return "not cancelled"

    assert run(handled(), 1) == "tidied True"
