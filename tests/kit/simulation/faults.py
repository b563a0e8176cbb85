"""The menu of faults a simulation may suffer, each drawn by the seed and each counted.

Contract: a fault point asks `fires(name)`. The answer depends only on the seed, the name and how often that name was
asked before, so adding a new fault point moves no other one. A name outside the menu never fires, which lets fault
points stay in code whose tests do not plan for them. `stop` ends all faults, for the phase in which the system must
come to rest. A fault that is on the menu and never fired proves nothing: `assert_all_fired` says so.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(slots=True)
class Count:
    """How often a fault point was reached, and how often it fired."""

    asked: int = 0
    fired: int = 0


class Fires(Protocol):
    """Decision whether a fault happens, such as the menu of a simulation makes it."""

    def fires(self, name: str) -> bool:
        """Return whether this fault happens now."""
        ...


class FaultMenu:
    """Faults by name: at a rate between 0 and 1, or at exactly the nth call."""

    def __init__(self, seed: int, rates: Mapping[str, float] | None = None) -> None:
        self.counts: dict[str, Count] = {}
        self._seed = seed
        self._rates = dict(rates or {})
        self._exact: dict[str, set[int]] = {}
        self._draws: dict[str, random.Random] = {}
        self._stopped = False

    @property
    def planned(self) -> set[str]:
        """The names that can fire at all."""
        return {name for name, rate in self._rates.items() if rate > 0} | self._exact.keys()

    def at(self, name: str, nth: int) -> None:
        """Make a fault fire at its nth call, counted from 1 since the menu was made."""
        if nth <= self._count(name).asked:
            raise ValueError(f"call {nth} of {name} has already passed")
        self._exact.setdefault(name, set()).add(nth)

    def fires(self, name: str) -> bool:
        """Answer a fault point: does it happen this time?"""
        if self._stopped:
            return False
        count = self.counts.get(name) or self._count(name)
        count.asked += 1
        if name not in self._rates and name not in self._exact:  # nearly always, and millions of times in a run
            return False
        fired = self._drawn(name) or count.asked in self._exact.get(name, ())
        count.fired += fired
        return fired

    def stop(self) -> None:
        """Let nothing fire from now on; calls are no longer counted either."""
        self._stopped = True

    def _drawn(self, name: str) -> bool:
        rate = self._rates.get(name, 0.0)
        if rate <= 0:
            return False
        if name not in self._draws:
            self._draws[name] = random.Random(f"{self._seed}:{name}")
        return self._draws[name].random() < rate

    def _count(self, name: str) -> Count:
        count = self.counts.get(name)
        if count is None:
            count = self.counts[name] = Count()
        return count


def assert_all_fired(menus: Iterable[FaultMenu]) -> None:
    """Fail, naming each fault that was planned in these runs and fired in none of them."""
    assert_fired(add_up(menus))


def add_up(menus: Iterable[FaultMenu]) -> dict[str, Count]:
    """Return how often each fault that was planned in these runs was asked for and fired."""
    counts: dict[str, Count] = {}
    for menu in menus:
        for name in menu.planned:
            count, one = counts.setdefault(name, Count()), menu.counts.get(name, Count())
            count.asked += one.asked
            count.fired += one.fired
    return counts


def assert_fired(counts: Mapping[str, Count]) -> None:
    """Fail, naming each fault that never fired."""
    silent = [f"{name} (asked {count.asked} times)" for name, count in sorted(counts.items()) if not count.fired]
    assert not silent, "faults that never fired: " + ", ".join(silent)
