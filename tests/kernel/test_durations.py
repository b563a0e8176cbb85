from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.kernel.clock import duration_text, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60s", 60), ("1h", 3600), ("90d", 90 * 86_400), ("1h30m", 5400), ("2w", 14 * 86_400), ("0s", 0)],
)
def test_durations_are_numbers_with_units(text: str, seconds: int) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "5", "h", "1 h", "1.5h", "-1h", "1y", "PT1H", "1h ", "999999999w", "\u0661s"])
def test_anything_else_is_none(text: str) -> None:
    assert parse_duration(text) is None


@given(st.integers(min_value=0, max_value=10**9))
def test_what_is_written_is_read_again(seconds: int) -> None:
    assert parse_duration(duration_text(timedelta(seconds=seconds))) == timedelta(seconds=seconds)


def test_a_round_duration_has_one_unit() -> None:
    assert [duration_text(timedelta(**each)) for each in ({"days": 90}, {"hours": 1}, {"minutes": 1})] == [
        "90d",
        "1h",
        "1m",
    ]
