"""A test runs inside the environment of its fixtures, with the options that it names."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.kit.environment import options, provided_by

Test = Callable[[str, list[int]], Coroutine[Any, Any, None]]

runs: list[int] = []
"""How often the launcher ran a test, and with how many rounds each."""


def in_rounds(test: Test, *, rounds: int = 1) -> None:
    """Run a test in each of some rounds, on loops of their own."""
    runs.append(rounds)
    seen: list[int] = []
    for number in range(rounds):
        seen.append(number)
        asyncio.run(test(f"round {number}", seen))


current = provided_by(in_rounds)
rounds_seen = provided_by(in_rounds, position=1)


@pytest.mark.parametrize("text", ["round 0"])
async def test_a_test_gets_what_the_launcher_hands_over(current: str, text: str) -> None:
    assert current == text


@options(rounds=3)
async def test_options_are_those_of_the_launcher(rounds_seen: list[int], current: str) -> None:
    assert current == f"round {rounds_seen[-1]}"
    assert runs[-1] == 3


@pytest.fixture
def several() -> int:
    return 2


@pytest.mark.parametrize("more", [1, 2])
@options(lambda several, more: {"rounds": several + more})
async def test_options_may_be_computed_from_arguments_that_the_test_need_not_have(
    rounds_seen: list[int], more: int
) -> None:
    assert rounds_seen
    assert runs[-1] == 2 + more


@pytest.mark.usefixtures("current")
async def test_an_environment_may_go_unused() -> None:
    runs.append(0)
    assert runs[-2:] == [1, 0]


async def test_without_an_environment_time_is_real() -> None:
    assert not type(asyncio.get_running_loop()).__module__.startswith("tests.")
