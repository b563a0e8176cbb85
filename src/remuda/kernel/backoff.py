"""Exponential backoff with jitter: the delays between attempts at an operation that fails."""

from dataclasses import dataclass

from remuda.kernel.clock import Clock
from remuda.kernel.randomness import Randomness

_MAX_DOUBLINGS = 30


@dataclass(frozen=True, slots=True)
class Backoff:
    """The delays between attempts, as a function of the number of consecutive failures."""

    first_s: float
    longest_s: float

    def pause_s(self, failures: int, randomness: Randomness) -> float:
        """Return the delay after this many failures. Jitter shortens it by up to a half."""
        doubled_s = self.first_s * float(1 << min(failures - 1, _MAX_DOUBLINGS))
        return min(doubled_s, self.longest_s) * randomness.uniform(0.5, 1.0)


class RetryTimer:
    """The delays between attempts at one operation: each up to twice as long as the one before."""

    def __init__(self, clock: Clock, randomness: Randomness, *, first_s: float, longest_s: float) -> None:
        self._clock, self._randomness = clock, randomness
        self._first_s, self._longest_s = first_s, longest_s
        self.next_s = first_s
        """Upper bound of the next delay."""

    async def pause(self) -> None:
        """Wait for the next delay, shortened by jitter."""
        await self._clock.sleep(self.next_s * self._randomness.uniform(0.5, 1.0))
        self.next_s = min(2 * self.next_s, self._longest_s)

    def reset(self) -> None:
        """Return to the first delay, after a success."""
        self.next_s = self._first_s


class RetryTimers:
    """Factory of retry timers that share a clock and a source of randomness."""

    def __init__(self, clock: Clock, randomness: Randomness) -> None:
        self._clock, self._randomness = clock, randomness

    def new(self, *, first_s: float, longest_s: float) -> RetryTimer:
        """Return a timer for an operation that is about to be attempted."""
        return RetryTimer(self._clock, self._randomness, first_s=first_s, longest_s=longest_s)
