"""Facts: what can be the case, by what customers asked for and what they were told.

Several ask at once, some are told yes, some no, and some never learn what became of it. What can be the case is then:
what the last one asked who was told yes, or what was asked by anybody whose asking may have come after that one's.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

UNKNOWN = "nobody knows"
"""What is the case before anybody was told yes."""


@dataclass(slots=True)
class _Request:
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
        self._requests = {0: _Request(UNKNOWN, 0, 0)}

    @property
    def possible(self) -> frozenset[Hashable]:
        """Everything that can be the case."""
        return frozenset(request.value for request in self._requests.values())

    @property
    def is_disputed(self) -> bool:
        """Somebody has asked for something and may still get it."""
        return any(request.ended is None for request in self._requests.values())

    def is_surely(self, value: Hashable) -> bool:
        """Tell whether nothing else can be the case."""
        return self.possible == {value}

    def ask(self, value: Hashable, *, since: int | None = None, lasts: bool = False) -> int:
        """Somebody asks, or did so since; return the number of the request."""
        number = next(self._moments)
        self._requests[number] = _Request(value, number if since is None else since, lasts=lasts)
        return number

    def lingers(self, number: int) -> None:
        """It may still come true long after whoever asked for it is gone."""
        self._requests[number].lasts = True

    def reveal(self, number: int, value: Hashable) -> None:
        """Say what somebody got who could not know before."""
        self._requests[number].value = value

    def granted(self, number: int) -> None:
        """It was: what ended before it was asked for is over."""
        granted = self._requests[number]
        granted.ended = next(self._moments)
        self._requests = {
            each: request
            for each, request in self._requests.items()
            if each == number or request.ended is None or request.ended > granted.began
        }

    def refused(self, number: int) -> None:
        """It was not, and never will be."""
        self._requests.pop(number, None)

    def unclear(self, number: int) -> None:
        """It may have been, but what was before may also have stayed."""
        self._requests[number].ended = next(self._moments)

    def before(self, number: int) -> Hashable | None:
        """Return what was the case before a request, if that is sure, and nobody has wished for anything else since."""
        others = [request.value for each, request in self._requests.items() if each != number]
        return others[0] if number in self._requests and len(others) == 1 and others[0] != UNKNOWN else None

    def settle(self) -> None:
        """Nobody is at anything any more: what was never answered has happened, or never will."""
        for request in self._requests.values():
            if request.ended is None and not request.lasts:
                request.ended = next(self._moments)
