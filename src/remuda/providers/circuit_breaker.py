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

The retry budget: a provider in trouble is not buried under retries.

Every call pays a share of a token in, every retry takes a whole one out, and a trickle keeps the first retries of a
quiet provider possible. So over any time the retries are at most `share` of the calls, plus `floor_per_s` of the
seconds, plus `reserve`.

What a provider bears, and how one sees that it is ill.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unavailable
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettings:
    """What an operator may set for a provider."""

    slots: int = 16
    """So many calls may be under way."""
    queue: int = 256
    """So many more may wait."""
    deadline_s: float = 30.0
    """A caller waits so long unless it says otherwise."""
    silence_s: float = 2.0
    """A call that is not back by its deadline says that the provider is ill if it was under way so long; if its caller
    waited less, it says nothing."""
    retries: int = 3
    """A safe call is made again so often at most."""
    retry_share: float = 0.1
    """So many retries for each call at most, in the long run."""
    pause_s: float = 0.2
    """The longest pause before the first retry; each is up to twice as long as the one before."""
    breaker: BreakerSettings = field(default_factory=BreakerSettings)


def is_ill(error: BaseException) -> bool:
    """Tell whether an error shows that a provider is ill, rather than that it says no."""
    return isinstance(error, Unavailable | OSError)  # TimeoutError and ConnectionError are OSErrors
