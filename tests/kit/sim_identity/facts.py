"""Facts: what can be the case, by what customers asked for and what they were told.

Several ask at once, some are told yes, some no, and some never learn what became of it. What can be the case is then:
what the last one asked who was told yes, or what was asked by anybody whose asking may have come after that one's.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

UNKNOWN = "nobody knows"
"""What is the case before anybody was told yes."""


@dataclass(slots=True)
class _Wish:
    value: Hashable
    began: int
    ended: int | None = None
    """None while it may still come true."""
    lasts: bool = False
    """It comes true by itself, at any time."""


class Fact:
    """One thing that can be one way or another. `moments` counts up, for all facts together."""

    def __init__(self, moments: Iterator[int]) -> None:
        self._moments = moments
        self._wishes = {0: _Wish(UNKNOWN, 0, 0)}

    @property
    def possible(self) -> frozenset[Hashable]:
        """Everything that can be the case."""
        return frozenset(wish.value for wish in self._wishes.values())

    @property
    def is_disputed(self) -> bool:
        """Somebody has asked for something and may still get it."""
        return any(wish.ended is None for wish in self._wishes.values())

    def is_surely(self, value: Hashable) -> bool:
        """Tell whether nothing else can be the case."""
        return self.possible == {value}

    def ask(self, value: Hashable, *, since: int | None = None, lasts: bool = False) -> int:
        """Somebody asks, or did so since; return the number of the wish."""
        number = next(self._moments)
        self._wishes[number] = _Wish(value, number if since is None else since, lasts=lasts)
        return number

    def lingers(self, number: int) -> None:
        """It may still come true long after whoever asked for it is gone."""
        self._wishes[number].lasts = True

    def reveal(self, number: int, value: Hashable) -> None:
        """Say what somebody got who could not know before."""
        self._wishes[number].value = value

    def granted(self, number: int) -> None:
        """It was: what ended before it was asked for is over."""
        granted = self._wishes[number]
        granted.ended = next(self._moments)
        self._wishes = {
            each: wish
            for each, wish in self._wishes.items()
            if each == number or wish.ended is None or wish.ended > granted.began
        }

    def refused(self, number: int) -> None:
        """It was not, and never will be."""
        self._wishes.pop(number, None)

    def unclear(self, number: int) -> None:
        """It may have been, but what was before may also have stayed."""
        self._wishes[number].ended = next(self._moments)

    def before(self, number: int) -> Hashable | None:
        """Return what was the case before a wish, if that is sure, and nobody has wished for anything else since."""
        others = [wish.value for each, wish in self._wishes.items() if each != number]
        return others[0] if number in self._wishes and len(others) == 1 and others[0] != UNKNOWN else None

    def settle(self) -> None:
        """Nobody is at anything any more: what was never answered has happened, or never will."""
        for wish in self._wishes.values():
            if wish.ended is None and not wish.lasts:
                wish.ended = next(self._moments)
