"""The simulated loop repeats itself exactly, owns time, and rejects the world outside."""

import asyncio
import inspect
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from remuda.kernel.clock import Clock
from tests.kit.simulation.loop import (
    REFUSED,
    DeadlockError,
    EndlessError,
    NotSimulatedError,
    SimClock,
    SimLoop,
    UnseenError,
    finish,
    run,
)

START = datetime(2030, 1, 1, tzinfo=UTC)


async def trace_of_three_workers() -> list[str]:
    trace: list[str] = []

    async def worker(name: str) -> None:
        for step in range(5):
            trace.append(f"{name}{step}@{asyncio.get_running_loop().time():g}")
            await asyncio.sleep(step % 2)

    await asyncio.gather(*(worker(name) for name in "abc"))
    return trace


def test_the_same_seed_gives_the_same_trace() -> None:
    for seed in range(20):
        assert run(trace_of_three_workers(), seed) == run(trace_of_three_workers(), seed)


def test_different_seeds_give_different_traces() -> None:
    assert len({tuple(run(trace_of_three_workers(), seed)) for seed in range(20)}) > 15


def test_some_seed_finds_a_planted_race() -> None:
    async def two_takers_of_one_place() -> int:
        taken = 0

        async def take() -> None:
            nonlocal taken
            seen = taken
            if seen < 1:
                await asyncio.sleep(0)
                taken += 1

        async def take_later() -> None:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            await take()

        await asyncio.gather(take(), take_later())
        return taken

    assert {run(two_takers_of_one_place(), seed) for seed in range(30)} == {1, 2}


def test_a_virtual_year_passes_at_once() -> None:
    async def wait() -> tuple[float, datetime]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        clock: Clock = SimClock(loop, START)
        await clock.sleep(365 * 86400)
        return clock.monotonic(), clock.now()

    assert run(wait(), 1) == (365 * 86400, START + timedelta(days=365))


def test_a_timeout_fires_at_its_virtual_time() -> None:
    async def wait() -> float:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 30)
        return asyncio.get_running_loop().time()

    assert run(wait(), 1) == 30


def test_a_deadlock_names_the_tasks_and_where_they_wait() -> None:
    async def inner() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        await asyncio.create_task(inner(), name="waits-for-ever")

    with pytest.raises(DeadlockError, match=r"waits-for-ever \(.*inner at .*locks\.py:\d+\)"):
        run(main(), 1)


def test_a_run_that_never_ends_is_stopped() -> None:
    async def spin() -> None:
        for _ in range(10**9):
            await asyncio.sleep(1)

    loop = SimLoop(1, max_steps=1000)
    with pytest.raises(EndlessError, match="spin"):
        loop.run_until_complete(spin())
    finish(loop)


def test_orphans_are_cancelled_and_seen_to_end() -> None:
    ended: list[str] = []

    async def linger(name: str) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(name)

    async def main() -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(linger(name)) for name in "abc"]
        await asyncio.sleep(1)
        return tasks

    assert all(task.cancelled() for task in run(main(), 3))
    assert sorted(ended) == ["a", "b", "c"]


def test_an_error_in_a_callback_ends_the_run() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 // 0)
        await asyncio.sleep(1)

    with pytest.raises(UnseenError) as caught:
        run(main(), 1)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_after_step_sees_every_step_and_can_end_the_run() -> None:
    loop = SimLoop(1)
    seen: list[int] = []

    def check() -> None:
        seen.append(loop.steps)
        assert loop.time() < 2, "too late"

    loop.after_step = check
    with pytest.raises(AssertionError, match="too late"):
        loop.run_until_complete(trace_of_three_workers())
    finish(loop)
    assert seen == list(range(1, len(seen) + 1))


@pytest.mark.parametrize("name", REFUSED)
def test_real_input_and_output_is_refused(name: str) -> None:
    async def reach_out() -> None:
        getattr(asyncio.get_running_loop(), name)(None, None)

    with pytest.raises(NotSimulatedError, match=name):
        run(reach_out(), 1)


def test_threads_are_refused() -> None:
    errors: list[Exception] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def call() -> None:
            try:
                loop.call_soon_threadsafe(print)
            except NotSimulatedError as error:
                errors.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        loop.call_soon_threadsafe(errors.copy)
        await asyncio.to_thread(print)

    with pytest.raises(NotSimulatedError, match="run_in_executor"):
        run(main(), 1)
    assert len(errors) == 1


def test_wall_time_can_jump_without_moving_monotonic_time() -> None:
    loop = SimLoop(1)
    clock = SimClock(loop, START)
    clock.jump(timedelta(hours=-1))
    assert (clock.now(), clock.monotonic()) == (START - timedelta(hours=1), 0)
    finish(loop)


def test_asyncio_still_has_the_private_parts_the_loop_replaces() -> None:
    """Run on each new Python: if this fails, read loop.py against the new base_events.py."""
    source: Callable[[object], str] = inspect.getsource  # type: ignore[assignment]  # inside asyncio
    base = asyncio.BaseEventLoop
    assert "self._run_once()" in source(base.run_forever)
    assert "self._ready.append(handle)" in source(base._call_soon)  # type: ignore[attr-defined]  # inside asyncio
    assert "self.call_at(" in source(base.call_later)
    assert "handle._scheduled" in source(base._timer_handle_cancelled)  # type: ignore[attr-defined]  # inside asyncio
    assert not any("_scheduled" in source(part) for part in (base.call_later, base.stop, base.run_until_complete))
    assert list(inspect.signature(asyncio.Handle._run).parameters) == ["self"]
