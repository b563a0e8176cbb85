"""How long to wait before trying again: each time up to twice as long, and never all at the same time."""

from dataclasses import dataclass

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
