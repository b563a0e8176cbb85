"""Trying again, less and less often, and never all at the same time.

How long to wait before trying again: each time up to twice as long, and never all at the same time.
"""

from dataclasses import dataclass

from remuda.kernel.clock import Clock
from remuda.kernel.randomness import Randomness

_MOST_DOUBLINGS = 30


@dataclass(frozen=True, slots=True)
class Backoff:
    """The pauses between attempts at one thing, as a function of how often it failed in a row."""

    first_s: float
    longest_s: float

    def pause_s(self, failures: int, randomness: Randomness) -> float:
        """Return the pause after that many failures, of which chance takes away up to a half."""
        doubled_s = self.first_s * float(1 << min(failures - 1, _MOST_DOUBLINGS))
        return min(doubled_s, self.longest_s) * randomness.uniform(0.5, 1.0)


class RetryTimer:
    """The pauses between attempts at one thing: each up to twice as long as the one before."""

    def __init__(self, clock: Clock, randomness: Randomness, *, first_s: float, longest_s: float) -> None:
        self._clock = clock
        self._randomness = randomness
        self._first_s, self._longest_s = first_s, longest_s
        self.next_s = first_s
        """The longest that the next pause can be."""

    async def pause(self) -> None:
        """Wait a part of the next pause that chance decides."""
        await self._clock.sleep(self.next_s * self._randomness.uniform(0.5, 1.0))
        self.next_s = min(2 * self.next_s, self._longest_s)

    def reset(self) -> None:
        """It worked: begin with short pauses again."""
        self.next_s = self._first_s


class RetryTimers:
    """Makes them, with the time and the chance of one store."""

    def __init__(self, clock: Clock, randomness: Randomness) -> None:
        self._clock = clock
        self._randomness = randomness

    def new(self, *, first_s: float, longest_s: float) -> RetryTimer:
        """Return the pauses for something that is about to be tried."""
        return RetryTimer(self._clock, self._randomness, first_s=first_s, longest_s=longest_s)
