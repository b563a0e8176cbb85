"""The circuit breaker: a provider that is ill is left alone for a while.

::

    closed ──── too many failures ────► open
      ▲                                  │ after a pause
      │ the probe works                  ▼
      └───────────────────────────── half-open ── the probe fails ──► open, twice as long

Closed, calls go through and their failures are counted: so many in a row, or such a share of the last ones, open it.
Open, everything is refused at once. Half-open, one call goes through as a probe and everything else is refused. An
outcome counts only in the epoch in which its call was admitted: what began before the breaker opened says nothing about
the time after.
"""

from collections import deque
from dataclasses import dataclass
from typing import Literal

from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock
from remuda.kernel.randomness import Randomness

State = Literal["closed", "open", "half_open"]
"""What a breaker does with calls."""

STATES: tuple[State, ...] = ("closed", "open", "half_open")
"""All states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerSettings:
    """When it opens, and for how long."""

    failures_in_a_row: int = 5
    failure_share: float = 0.5
    """It opens when so many of the last calls failed."""
    window: int = 40
    """How many calls `failure_share` looks back; fewer say nothing."""
    open_s: float = 5.0
    longest_open_s: float = 60.0


class Breaker:
    """Decides whether a provider is called at all."""

    def __init__(self, clock: Clock, randomness: Randomness, settings: BreakerSettings) -> None:
        self._clock, self._randomness, self._settings = clock, randomness, settings
        self._backoff = Backoff(settings.open_s, settings.longest_open_s)
        self._epoch = 0
        self._is_open = False
        self._is_probing = False
        self._opened_in_a_row = 0
        self._until = 0.0
        self._in_a_row = 0
        self._recent: deque[bool] = deque(maxlen=settings.window)

    @property
    def state(self) -> State:
        """What it does with calls now."""
        if not self._is_open:
            return "closed"
        return "open" if self._clock.monotonic() < self._until else "half_open"

    @property
    def is_refusing(self) -> bool:
        """The next call would be refused."""
        state = self.state
        return state == "open" or (state == "half_open" and self._is_probing)

    @property
    def retry_after_s(self) -> float:
        """How long it stays open yet."""
        return max(0.0, self._until - self._clock.monotonic())

    def admit(self) -> int | None:
        """Return the epoch in which a call is let through, to be told with its outcome; None if it is refused."""
        if self.is_refusing:
            return None
        self._is_probing = self._is_open
        return self._epoch

    def succeeded(self, epoch: int) -> None:
        """A call worked, or failed in a way that shows the provider to be well."""
        if epoch != self._epoch:
            return
        if self._is_open:
            self._close()
        self._in_a_row = 0
        self._recent.append(False)

    def failed(self, epoch: int) -> None:
        """A call failed in a way that shows the provider to be ill."""
        if epoch != self._epoch:
            return
        self._in_a_row += 1
        self._recent.append(True)
        if self._is_open or self._has_failed_too_often():
            self._open()

    def left(self, epoch: int) -> None:
        """Nobody waits for a call any more: if it was the probe, another may be sent."""
        if epoch == self._epoch:
            self._is_probing = False

    def _has_failed_too_often(self) -> bool:
        settings = self._settings
        if self._in_a_row >= settings.failures_in_a_row:
            return True
        return len(self._recent) == settings.window and sum(self._recent) >= settings.failure_share * settings.window

    def _open(self) -> None:
        self._opened_in_a_row += 1
        self._until = self._clock.monotonic() + self._backoff.pause_s(self._opened_in_a_row, self._randomness)
        self._is_open, self._is_probing = True, False
        self._epoch += 1

    def _close(self) -> None:
        self._is_open, self._is_probing = False, False
        self._opened_in_a_row = 0
        self._recent.clear()
        self._epoch += 1
