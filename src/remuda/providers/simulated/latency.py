"""How long the cloud takes to answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from remuda.kernel.randomness import Randomness


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """How long a verb takes."""

    mean_s: float = 0.0
    jitter: float = 0.0
    """It is up to this share shorter or longer than the mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long each verb takes."""

    usual: Delay = Delay()
    verbs: Mapping[str, Delay] = field(default_factory=dict)
    """Those that take longer or less."""

    @property
    def is_zero(self) -> bool:
        """Nothing takes any time."""
        return not any(delay.mean_s for delay in (self.usual, *self.verbs.values()))

    def of(self, verb: str, randomness: Randomness) -> float:
        """Return how long a call takes this time."""
        delay = self.verbs.get(verb, self.usual)
        if not delay.mean_s:
            return 0.0
        return delay.mean_s * (1 + delay.jitter * randomness.uniform(-1, 1))


INSTANT = Latency()
"""Everything is answered at once."""
