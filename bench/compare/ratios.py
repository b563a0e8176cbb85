"""Ratios of paired values: their mean, their spread and their 95 % interval.

Both programs are measured once in each turn, minutes apart at most, so that a machine that changes by the hour changes
both. The ratio of a turn is therefore a pair of its own. Costs multiply, so the interval is Student's over the
logarithms of these ratios, and the mean is the geometric one.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["LIMIT", "Comparison", "compare"]

LIMIT = 1.03
"""A measure fails if its whole interval lies above this ratio."""

# fmt: off
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)
# fmt: on
"""The 97.5 % quantile of Student's distribution, by degrees of freedom from 1 to 30."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A measure of the current program beside that of another one; less is better."""

    measure: str
    unit: str
    current: float
    """The geometric mean of all turns."""
    base: float
    ratio: float
    spread: float
    """The standard deviation of the turns' ratios, as a share of the ratio."""
    low: float
    """Where the 95 % interval of the ratio begins."""
    high: float

    @property
    def is_slower(self) -> bool:
        """Whether the whole interval lies above the limit."""
        return self.low > LIMIT

    @property
    def is_faster(self) -> bool:
        """Whether the whole interval lies below 1."""
        return self.high < 1


def compare(measure: str, unit: str, current: Sequence[float], base: Sequence[float]) -> Comparison:
    """Compare the values of two programs, those of the same turn with each other."""
    logs = [math.log(ours / theirs) for ours, theirs in zip(current, base, strict=True)]
    mean, deviation = statistics.fmean(logs), statistics.stdev(logs)
    margin = _quantile(len(logs) - 1) * deviation / math.sqrt(len(logs))
    return Comparison(
        measure=measure,
        unit=unit,
        current=statistics.geometric_mean(current),
        base=statistics.geometric_mean(base),
        ratio=math.exp(mean),
        spread=math.expm1(deviation),
        low=math.exp(mean - margin),
        high=math.exp(mean + margin),
    )


def _quantile(freedom: int) -> float:
    """Return the quantile for these degrees of freedom; for more than 30 that of 30, which is a little too wide."""
    return _STUDENT[min(freedom, len(_STUDENT)) - 1]
