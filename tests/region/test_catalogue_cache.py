"""What a provider said a moment ago: fresh, old, or not there, with a provider that is quick, slow or ill."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from remuda.kernel.errors import NotFound, Unavailable
from remuda.region.catalogue.provider_registry import TtlCache, TtlSettings
from tests.kit.environment import provided_by
from tests.kit.simulation.runner import World, simulate

FRESHNESS = TtlSettings(fresh_s=10, wait_s=1, stale_s=100)


class Oracle:
    """Says how often it was asked, after a while."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.asked = 0
        self.takes_s = 0.1
        self.error: Exception | None = None
        self.recent: TtlCache[int] = TtlCache(self.answer, clock=world.clock, ttl=FRESHNESS)

    async def answer(self) -> int:
        self.asked += 1
        said, error = self.asked, self.error
        await self.world.clock.sleep(self.takes_s)
        if error is not None:
            raise error
        return said

    async def timed(self) -> tuple[int, float]:
        """Return an answer, and how long it took."""
        began = self.world.clock.monotonic()
        return await self.recent.read(), round(self.world.clock.monotonic() - began, 3)


def with_oracle(act: Callable[[Oracle], Awaitable[None]]) -> None:
    async def scenario(world: World) -> None:
        await act(Oracle(world))

    simulate(scenario, 3)


oracle = provided_by(with_oracle)


async def test_a_fresh_answer_is_given_out_without_asking(oracle: Oracle) -> None:
    assert await oracle.timed() == (1, 0.1)
    await oracle.world.clock.sleep(9)
    assert await oracle.timed() == (1, 0)
    await oracle.world.clock.sleep(2)
    assert await oracle.timed() == (2, 0.1)


async def test_many_who_ask_at_once_share_one_answer(oracle: Oracle) -> None:
    assert await asyncio.gather(*(oracle.recent.read() for _ in range(20))) == [1] * 20
    await oracle.world.clock.sleep(20)
    assert await asyncio.gather(*(oracle.recent.read() for _ in range(20))) == [2] * 20


async def test_a_slow_provider_costs_the_first_a_second_and_the_others_nothing(oracle: Oracle) -> None:
    await oracle.recent.read()
    await oracle.world.clock.sleep(20)
    oracle.takes_s = 15
    assert await oracle.timed() == (1, 1)
    assert await oracle.timed() == (1, 0)
    assert oracle.asked == 2
    await oracle.world.clock.sleep(15)
    assert await oracle.timed() == (2, 0)


async def test_an_ill_provider_is_asked_seldom_and_the_old_answer_serves(oracle: Oracle) -> None:
    await oracle.recent.read()
    await oracle.world.clock.sleep(20)
    oracle.error = Unavailable("ill")
    assert await oracle.timed() == (1, 0.1)
    assert await oracle.timed() == (1, 0)
    assert oracle.asked == 2
    await oracle.world.clock.sleep(10)
    oracle.error = None
    assert await oracle.timed() == (3, 0.1)


async def test_without_an_answer_everybody_is_told_what_the_provider_says(oracle: Oracle) -> None:
    oracle.error = Unavailable("ill")
    outcomes = await asyncio.gather(*(oracle.recent.read() for _ in range(3)), return_exceptions=True)
    assert [str(each) for each in outcomes] == ["ill"] * 3
    assert oracle.asked == 1
    oracle.error = None
    assert await oracle.recent.read() == 2


async def test_too_old_an_answer_is_given_to_nobody(oracle: Oracle) -> None:
    await oracle.recent.read()
    await oracle.world.clock.sleep(101)
    oracle.error = Unavailable("ill")
    with pytest.raises(Unavailable):
        await oracle.recent.read()


async def test_a_provider_that_says_no_is_believed(oracle: Oracle) -> None:
    await oracle.recent.read()
    await oracle.world.clock.sleep(20)
    oracle.error = NotFound("catalogue", "north")
    with pytest.raises(NotFound):
        await oracle.recent.read()


async def test_who_leaves_takes_no_answer_from_the_others(oracle: Oracle) -> None:
    leaving, staying = (asyncio.create_task(oracle.recent.read()) for _ in range(2))
    await oracle.world.clock.sleep(0.05)
    leaving.cancel()
    assert await staying == 1
    assert leaving.cancelled()


async def test_what_was_forgotten_is_asked_for_again_even_while_it_is_being_said(oracle: Oracle) -> None:
    assert await oracle.recent.read() == 1
    oracle.recent.invalidate()
    before = asyncio.create_task(oracle.recent.read())
    await oracle.world.clock.sleep(0.05)
    oracle.recent.invalidate()
    assert await oracle.recent.read() == 3
    assert await before == 2
    assert await oracle.timed() == (3, 0)


async def test_what_was_forgotten_serves_while_the_provider_is_ill(oracle: Oracle) -> None:
    await oracle.recent.read()
    oracle.recent.invalidate()
    oracle.error = Unavailable("ill")
    assert await oracle.timed() == (1, 0.1)
