"""Calls end when the process does."""

import asyncio
import contextlib

import pytest

from remuda.kernel.errors import OutcomeUnknown, Unavailable
from remuda.providers.circuit_breaker import CallSettings
from tests.kit.environment import options
from tests.kit.providers.slow_provider import NEVER_BREAKS, Cloud

TWO_SLOTS = CallSettings(slots=2, queue=2, breaker=NEVER_BREAKS)


@options(settings=TWO_SLOTS)
async def test_closing_waits_for_calls_under_way_and_rejects_the_rest(cloud: Cloud) -> None:
    under_way = [asyncio.create_task(cloud.make(key, takes_s=5)) for key in "ab"]
    await cloud.world.clock.sleep(0.1)
    waiting = asyncio.create_task(cloud.make("c"))
    await cloud.world.clock.sleep(0.1)
    await cloud.calls.close(grace_s=60)
    assert cloud.under_way == 0
    with pytest.raises(Unavailable, match="shutting down"):
        await cloud.look("d")
    results = await asyncio.gather(*under_way, waiting, return_exceptions=True)
    assert results[:2] == ["a is there", "b is there"]
    assert isinstance(results[2], Unavailable)
    assert sorted(cloud.asked) == ["a", "b"]


async def test_closing_cuts_off_what_does_not_end_within_the_grace(cloud: Cloud) -> None:
    caller = asyncio.create_task(cloud.make("a", takes_s=10_000, deadline_s=20_000))
    await cloud.world.clock.sleep(0.1)
    await cloud.calls.close(grace_s=10)
    with pytest.raises(OutcomeUnknown):
        await caller
    assert cloud.world.clock.monotonic() < 11
    assert cloud.under_way == 0


async def test_closing_does_not_wait_for_ever_for_what_cannot_be_cut_off(cloud: Cloud) -> None:
    ends = asyncio.Event()

    async def go_on() -> None:
        while not ends.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await ends.wait()

    caller = asyncio.create_task(cloud.calls.call("a", "make", go_on, deadline_s=10_000))
    await cloud.world.clock.sleep(0.1)
    await cloud.calls.close(grace_s=10)
    assert cloud.world.clock.monotonic() < 20
    ends.set()
    await caller
