"""Pauses grow up to the longest, and those who failed together do not come back together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.kernel.backoff import Backoff
from remuda.kernel.randomness import SeededRandomness

BACKOFF = Backoff(first_s=0.5, longest_s=60.0)


class Drawing(SeededRandomness):
    """Draws the least or the most that there is."""

    def __init__(self, *, is_high: bool) -> None:
        super().__init__(0)
        self._is_high = is_high

    def uniform(self, low: float, high: float) -> float:
        return high if self._is_high else low


@pytest.mark.parametrize(("failures", "longest_s"), [(1, 0.5), (2, 1.0), (3, 2.0), (7, 32.0), (8, 60.0), (10**6, 60.0)])
def test_each_pause_is_up_to_twice_as_long_as_the_one_before_and_chance_takes_away_up_to_a_half(
    failures: int, longest_s: float
) -> None:
    assert BACKOFF.pause_s(failures, Drawing(is_high=True)) == longest_s
    assert BACKOFF.pause_s(failures, Drawing(is_high=False)) == longest_s / 2


@given(st.integers(1, 10**9), st.integers())
def test_no_pause_is_longer_than_the_longest_or_shorter_than_half_the_first(failures: int, seed: int) -> None:
    assert 0.25 <= BACKOFF.pause_s(failures, SeededRandomness(seed)) <= 60.0


def test_those_who_failed_together_come_back_apart() -> None:
    randomness = SeededRandomness(1)
    assert len({BACKOFF.pause_s(8, randomness) for _ in range(10)}) == 10
