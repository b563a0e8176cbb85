"""Checks of documents that users write: few at once, each with a deadline, and never all threads of the process."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

import pytest

from remuda.kernel.errors import Invalid, Unavailable
from remuda.service import DocumentChecks, in_thread
from tests.kit.environment import run_inline
from tests.kit.simulation.runner import World, simulate

T = TypeVar("T")


class Held:
    """Work in threads that ends when it is told to."""

    def __init__(self) -> None:
        self.begun = 0
        self._end = asyncio.Event()

    async def __call__(self, work: Callable[[], T]) -> T:
        self.begun += 1
        await self._end.wait()
        return work()

    def end(self) -> None:
        self._end.set()


async def refused(checks: DocumentChecks) -> str:
    with pytest.raises(Unavailable) as raised:
        await checks.run("spec.userData", lambda: None)
    return raised.value.message


async def _a_check_that_does_not_end(world: World) -> None:
    held = Held()
    checks = DocumentChecks(held, slots=2, limit_s=5)
    began = world.clock.monotonic()
    messages = await asyncio.gather(*(refused(checks) for _ in range(20)))
    assert world.clock.monotonic() - began == pytest.approx(5)
    assert set(messages) == {"spec.userData could not be checked within 5 s: send a shorter one, or try again later."}
    assert held.begun == 2, "those that wait for a slot take no thread"
    await refused(checks)
    assert held.begun == 2, "a check that nobody waits for keeps its slot until it ends"
    held.end()
    await asyncio.sleep(0)
    assert await checks.run("spec.userData", lambda: 7) == 7


def test_m27_a_check_that_does_not_end_costs_a_slot_and_every_request_ends_with_an_error() -> None:
    simulate(_a_check_that_does_not_end, 1)


async def test_a_check_has_its_result_or_its_error() -> None:
    checks = DocumentChecks(run_inline)
    assert await checks.run("spec.userData", lambda: "read") == "read"
    with pytest.raises(Invalid, match=r"spec\.userData is bad: send a good one"):
        await checks.run("spec.userData", fail)
    with pytest.raises(TimeoutError):  # of the check itself, which is not the deadline
        await checks.run("spec.userData", time_out)


def fail() -> None:
    raise Invalid("spec.userData", "is bad", remedy="send a good one")


def time_out() -> None:
    raise TimeoutError


async def test_a_cancelled_request_leaves_its_slot_to_the_check_until_that_ends() -> None:
    held = Held()
    checks = DocumentChecks(held, slots=1, limit_s=60)
    request = asyncio.ensure_future(checks.run("spec.userData", lambda: None))
    await asyncio.sleep(0)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    following = asyncio.ensure_future(checks.run("spec.userData", lambda: None))
    for _ in range(3):
        await asyncio.sleep(0)
    assert held.begun == 1
    held.end()
    await following
    assert held.begun == 2


async def test_threads_for_other_work_are_left() -> None:
    end = threading.Event()
    checks = DocumentChecks(in_thread, slots=2, limit_s=60)
    stuck = [asyncio.ensure_future(checks.run("spec.userData", end.wait)) for _ in range(50)]
    try:
        assert await in_thread(lambda: "done") == "done"
    finally:
        end.set()
        await asyncio.gather(*stuck)
