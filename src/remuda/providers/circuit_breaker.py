"""Circuit breaker, retry budget and call settings of a provider.

::

    closed ──── too many failures ────► open
      ▲                                  │ after a pause
      │ the probe succeeds               ▼
      └───────────────────────────── half-open ── the probe fails ──► open, twice as long

While closed, calls are admitted and their failures counted; a number of consecutive failures, or a share of the recent
calls, opens the breaker. While open, every call is rejected at once. While half-open, one call is admitted as a probe
and every other is rejected. An outcome counts only in the epoch in which its call was admitted: a call that began
before the breaker opened says nothing about the time after.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unavailable
from remuda.kernel.randomness import Randomness

BreakerState = Literal["closed", "open", "half_open"]

BREAKER_STATES: tuple[BreakerState, ...] = ("closed", "open", "half_open")


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitBreakerSettings:
    """Thresholds and durations of a breaker."""

    failures_in_a_row: int = 5
    failure_share: float = 0.5
    """Share of failures among the recent calls that opens the breaker."""
    window: int = 40
    """Number of recent calls that `failure_share` is computed from; it needs all of them."""
    open_s: float = 5.0
    longest_open_s: float = 60.0


class CircuitBreaker:
    """Circuit breaker of one provider."""

    def __init__(self, clock: Clock, randomness: Randomness, settings: CircuitBreakerSettings) -> None:
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
    def state(self) -> BreakerState:
        if not self._is_open:
            return "closed"
        return "open" if self._clock.monotonic() < self._until else "half_open"

    @property
    def is_rejecting(self) -> bool:
        state = self.state
        return state == "open" or (state == "half_open" and self._is_probing)

    @property
    def retry_after_s(self) -> float:
        """Remaining time of the open state."""
        return max(0.0, self._until - self._clock.monotonic())

    def admit(self) -> int | None:
        """Admit a call and return its epoch, to be passed back with the outcome; return None if it is rejected."""
        if self.is_rejecting:
            return None
        self._is_probing = self._is_open
        return self._epoch

    def record_success(self, epoch: int) -> None:
        """Record a call that succeeded, or failed in a way that shows a healthy provider."""
        if epoch != self._epoch:
            return
        if self._is_open:
            self._close()
        self._in_a_row = 0
        self._recent.append(False)

    def record_failure(self, epoch: int) -> None:
        """Record a call that failed in a way that shows an unhealthy provider."""
        if epoch != self._epoch:
            return
        self._in_a_row += 1
        self._recent.append(True)
        if self._is_open or self._has_failed_too_often():
            self._open()

    def record_abandoned(self, epoch: int) -> None:
        """Record a call whose caller stopped waiting: if it was the probe, another may be sent."""
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


class RetryBudget:
    """Token bucket for retries, so that retries do not overload a provider that is already failing.

    Every call adds a share of a token, every retry takes a whole one, and a constant rate allows the first retries of a
    quiet provider. Over any period the retries are at most `share` of the calls, plus `floor_per_s` of the seconds,
    plus `reserve`.
    """

    def __init__(self, clock: Clock, *, share: float = 0.1, floor_per_s: float = 0.1, reserve: float = 10.0) -> None:
        self._clock = clock
        self._share, self._floor_per_s, self._reserve = share, floor_per_s, reserve
        self._tokens = reserve
        self._filled_at = clock.monotonic()

    def add_call(self) -> None:
        """Add the share of one call."""
        self._add(self._share)

    def take(self) -> bool:
        """Take a token for a retry; return whether there was one."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettings:
    """Limits of the calls to a provider. There are no configuration keys for them: a program passes other ones."""

    slots: int = 16
    queue: int = 256
    deadline_s: float = 30.0
    """Deadline of a call unless the caller passes another."""
    unresponsive_after_s: float = 2.0
    """Time in flight after which a call that missed its deadline counts as a failure of the provider."""
    retries: int = 3
    retry_share: float = 0.1
    """Largest number of retries per call, in the long run."""
    pause_s: float = 0.2
    """Longest pause before the first retry; the limit doubles with each further one."""
    breaker: CircuitBreakerSettings = field(default_factory=CircuitBreakerSettings)


def is_unhealthy(error: BaseException) -> bool:
    """Return whether an error shows an unhealthy provider, rather than a request that it rejects."""
    return isinstance(error, Unavailable | OSError)  # TimeoutError and ConnectionError are OSErrors
