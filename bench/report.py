"""What a benchmark says: ours beside a limit, and whether the goal holds."""

import sys
from collections.abc import Iterable, Iterator

import msgspec

__all__ = ["Measure", "at_least", "at_most", "figure", "show_json", "show_table"]


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a report. The goal bounds the ratio of ours to the limit; without a goal it is there to be read."""

    bench: str = ""
    """Which benchmark says it: filled in by whoever runs the group."""
    measure: str
    ours: float
    limit: float | None
    unit: str
    is_at_most: bool = True
    goal: float | None = None

    @property
    def ratio(self) -> float | None:
        """Ours as a part of the limit."""
        return self.ours / self.limit if self.limit else None

    @property
    def holds(self) -> bool:
        """Whether the goal is met; one that was not set always is."""
        if self.goal is None or self.ratio is None:
            return True
        return self.ratio <= self.goal if self.is_at_most else self.ratio >= self.goal

    @property
    def goal_text(self) -> str | None:
        """The goal for users and for JSON."""
        return None if self.goal is None else f"{'<=' if self.is_at_most else '>='} {self.goal:g}"


def at_least(goal: float | None, measure: str, ours: float, limit: float, unit: str) -> Measure:
    """Return a measure of which more is better; without a goal it is there to be read."""
    return Measure(measure=measure, ours=ours, limit=limit, unit=unit, goal=goal, is_at_most=False)


def at_most(goal: float | None, measure: str, ours: float, limit: float, unit: str) -> Measure:
    """Return a measure of which less is better; without a goal it is there to be read."""
    return Measure(measure=measure, ours=ours, limit=limit, unit=unit, goal=goal)


def figure(measure: str, ours: float, unit: str) -> Measure:
    """Return a figure that stands alone and helps to read the others."""
    return Measure(measure=measure, ours=ours, limit=None, unit=unit)


def show_json(measures: Iterable[Measure]) -> bool:
    """Print one object a line as the measures come; tell whether all hold."""
    everything_holds = True
    for each in measures:
        everything_holds &= each.holds
        line = {
            "bench": each.bench,
            "measure": each.measure,
            "ours": round(each.ours, 4),
            "limit": None if each.limit is None else round(each.limit, 4),
            "unit": each.unit,
            "ratio": None if each.ratio is None else round(each.ratio, 4),
            "goal": each.goal_text,
            "holds": each.holds,
        }
        print(msgspec.json.encode(line).decode(), flush=True)
    return everything_holds


def show_table(measures: Iterable[Measure]) -> bool:
    """Print a table when all is measured, naming on the way what was; tell whether all hold."""
    done = list(_announced(measures))
    rows = [("measure", "ours", "limit", "unit", "ratio", "goal", ""), *map(_row, done)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if number in _RIGHT else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
    return all(each.holds for each in done)


_RIGHT = {1, 2, 4}
"""The columns of numbers."""


def _row(each: Measure) -> tuple[str, ...]:
    verdict = "" if each.goal is None else "holds" if each.holds else "MISSED"
    figures = _figure(each.ours), _figure(each.limit), each.unit, _figure(each.ratio)
    return (each.measure, *figures, each.goal_text or "", verdict)


def _announced(measures: Iterable[Measure]) -> Iterator[Measure]:
    for each in measures:
        print(f"measured {each.measure}", file=sys.stderr, flush=True)
        yield each


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
