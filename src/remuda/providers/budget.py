"""The retry budget: a provider in trouble is not buried under retries.

Every call pays a share of a token in, every retry takes a whole one out, and a trickle keeps the first retries of a
quiet provider possible. So over any time the retries are at most `share` of the calls, plus `floor_per_s` of the
seconds, plus `reserve`.
"""

from remuda.kernel.clock import Clock


class RetryBudget:
    """A bucket of tokens, one for each retry."""

    def __init__(self, clock: Clock, *, share: float = 0.1, floor_per_s: float = 0.1, reserve: float = 10.0) -> None:
        self._clock = clock
        self._share, self._floor_per_s, self._reserve = share, floor_per_s, reserve
        self._tokens = reserve
        self._filled_at = clock.monotonic()

    def pay_in(self) -> None:
        """A call is made."""
        self._add(self._share)

    def take(self) -> bool:
        """Tell whether a retry may be made, and if so count it."""
        self._add(0.0)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def _add(self, tokens: float) -> None:
        now = self._clock.monotonic()
        tokens += (now - self._filled_at) * self._floor_per_s
        self._filled_at = now
        self._tokens = min(self._reserve, self._tokens + tokens)
