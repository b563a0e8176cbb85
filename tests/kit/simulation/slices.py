"""Slices of seeds, each a test case of its own, and what all of them cover together.

A test whose seeds take long is cut into slices, so that several workers can share them: parametrise it with `sliced`,
named by `slice_name`. A rule that needs all seeds ("every fault fired") is asserted over the union: each slice adds
what it met with `Coverage.unite`, which keeps it in a directory of the run, and the last slice to end gets the sum.
A slice that is run alone covers nothing but itself, and so is not held to such a rule.

REMUDA_SEEDS replaces the count of seeds; REMUDA_SEED runs one seed, which has no slices.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.kit.simulation.faults import Count, FaultMenu, add_up, assert_fired

_MAX_SLICES = 8
_SLICE = re.compile(r"\[seeds \d+ to \d+\]$")


def sliced(count: int, *, length: int) -> list[range]:
    """Return the seeds of a test, in slices of at least this length; REMUDA_SEEDS replaces the count."""
    if "REMUDA_SEED" in os.environ:
        return [range(count)]
    total = int(os.environ.get("REMUDA_SEEDS", count))
    slices = max(1, min(_MAX_SLICES, total // length))
    return [range(total * each // slices, total * (each + 1) // slices) for each in range(slices)]


def slice_name(seeds: range) -> str:
    """Return what a slice is called among the parameters of a test."""
    return f"seeds {seeds.start} to {seeds.stop - 1}"


def is_slice(case: str) -> bool:
    """Tell whether a test case is a slice of seeds, by its id."""
    return _SLICE.search(case) is not None


def without_slice(case: str) -> str:
    """Return the id of a test case without the name of its slice."""
    return _SLICE.sub("", case)


class Coverage:
    """What seeds met: faults that fired, answers that were given, operations that were used."""

    def __init__(self) -> None:
        self.seeds = 0
        """How many there were."""
        self.outcomes: Counter[str] = Counter()
        self.operations: set[str] = set()
        self.faults: dict[str, Count] = {}

    def add(self, *, outcomes: Mapping[str, int], operations: Iterable[str]) -> None:
        """Add what one seed met."""
        self.outcomes.update(outcomes)
        self.operations.update(operations)

    def unite(
        self, menus: Sequence[FaultMenu], seeds: range, slices: Sequence[range], directory: Path
    ) -> "Coverage | None":
        """Add what fired, keep all of it for the other slices, and return the sum if this slice is the last to end."""
        if "REMUDA_SEED" in os.environ:
            return None
        self.seeds, self.faults = len(menus), add_up(menus)
        part = directory / slice_name(seeds)
        unfinished = part.with_suffix(".unfinished")
        unfinished.write_text(self._written())
        unfinished.rename(part)
        parts = [directory / slice_name(each) for each in slices]
        return _sum_of(part.read_text() for part in parts) if all(part.exists() for part in parts) else None

    def assert_covered(self, *, outcomes: Iterable[str], operations: Iterable[str]) -> None:
        """Fail, naming each fault that never fired, and each of these outcomes and operations that was never met."""
        assert_fired(self.faults)
        assert not (missing := {*outcomes} - self.outcomes.keys()), f"never answered: {sorted(missing)}"
        assert not (unused := {*operations} - self.operations), f"never succeeded: {sorted(unused)}"

    def _written(self) -> str:
        faults = {name: (each.asked, each.fired) for name, each in self.faults.items()}
        return json.dumps([self.seeds, self.outcomes, sorted(self.operations), faults])


def _sum_of(parts: Iterable[str]) -> Coverage:
    total = Coverage()
    for seeds, outcomes, operations, faults in map(json.loads, parts):
        total.seeds += seeds
        total.add(outcomes=outcomes, operations=operations)
        for name, (asked, fired) in faults.items():
            count = total.faults.setdefault(name, Count())
            count.asked += asked
            count.fired += fired
    return total
