"""Randomness as a port.

Ids, keys and retry jitter use the Randomness they were given. Production passes SystemRandomness, which is
unpredictable; a simulation passes SeededRandomness, so that a seed repeats a whole run.
"""

import random
from typing import Protocol


class Randomness(Protocol):
    """A source of random values."""

    def token_bytes(self, count: int) -> bytes:
        """Return that many random bytes."""

    def uniform(self, low: float, high: float) -> float:
        """Return a number between low and high, uniformly distributed."""

    def randrange(self, stop: int) -> int:
        """Return an integer from 0 up to but not including stop."""


class _PythonRandomness:
    """A source of random values that uses one of Python's generators."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def token_bytes(self, count: int) -> bytes:
        return self._source.randbytes(count)

    def uniform(self, low: float, high: float) -> float:
        return self._source.uniform(low, high)

    def randrange(self, stop: int) -> int:
        return self._source.randrange(stop)


class SystemRandomness(_PythonRandomness):
    """The generator of the operating system: suitable for keys, not repeatable."""

    def __init__(self) -> None:
        super().__init__(random.SystemRandom())


class SeededRandomness(_PythonRandomness):
    """A generator for simulations. The same seed gives the same values, so it must never create a real key."""

    def __init__(self, seed: int) -> None:
        super().__init__(random.Random(seed))  # noqa: S311  repeatable on purpose
