"""Fair comparison on a machine that others use: short turns, and of each subject's turns a good one.

Others can only slow a turn down. So a value that a quarter of all turns reach says what the subject can do, and needs
no quiet machine, while the very best turn might have been luck.
"""

from collections.abc import Awaitable, Callable, Sequence

__all__ = ["alternate", "good_rate", "good_time", "quantile", "steady_rate"]

Subject = Callable[[int], Awaitable[float]]


async def alternate(rounds: int, *subjects: Subject) -> list[list[float]]:
    """Let each subject measure itself once a round, one after the other; return the values of each."""
    found: list[list[float]] = [[] for _ in subjects]
    for turn in range(rounds):
        for values, subject in zip(found, subjects, strict=True):
            values.append(await subject(turn))
    return found


def steady_rate(values: Sequence[float]) -> float:
    """Return the rate over all turns together, for what pays now and then for many turns at once."""
    return len(values) / sum(1 / value for value in values)


def good_rate(values: Sequence[float]) -> float:
    """Return a rate that a quarter of all turns reach."""
    return quantile(values, 0.75)


def good_time(values: Sequence[float]) -> float:
    """Return a time that a quarter of all turns stay below."""
    return quantile(values, 0.25)


def quantile(values: Sequence[float], part: float) -> float:
    """Return the value below which this part of all values lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]
