"""Chance as a port.

Ids, keys and retry jitter draw from a Randomness they were given. Production passes SystemRandomness, which nobody can
predict; a simulation passes SeededRandomness, so that one number repeats a whole run.
"""

import random
from typing import Protocol


class Randomness(Protocol):
    """Where chance comes from."""

    def token_bytes(self, count: int) -> bytes:
        """Return that many random bytes."""
        ...

    def uniform(self, low: float, high: float) -> float:
        """Return a number between low and high, all equally likely."""
        ...

    def randrange(self, stop: int) -> int:
        """Return a whole number from 0 up to but not including stop."""
        ...


class _Drawn:
    """Draws from one source of Python's random family."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def token_bytes(self, count: int) -> bytes:
        """Return that many bytes from the source."""
        return self._source.randbytes(count)

    def uniform(self, low: float, high: float) -> float:
        """Return a number between low and high from the source."""
        return self._source.uniform(low, high)

    def randrange(self, stop: int) -> int:
        """Return a whole number below stop from the source."""
        return self._source.randrange(stop)


class SystemRandomness(_Drawn):
    """The operating system's generator: fit for keys, impossible to repeat."""

    def __init__(self) -> None:
        super().__init__(random.SystemRandom())


class SeededRandomness(_Drawn):
    """A generator for simulations: the same seed gives the same draws, so it must never make a real key."""

    def __init__(self, seed: int) -> None:
        super().__init__(random.Random(seed))  # noqa: S311  repeatable on purpose
