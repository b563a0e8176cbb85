"""Faults, latency and stale reads of the simulated cloud. There are none unless faults are configured or passed in.

Each fault is drawn as `cloud.<fault>`, and again with the method appended: `cloud.error.create_server`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

from remuda.kernel.errors import Unavailable
from remuda.kernel.randomness import Randomness
from remuda.providers.contract.common import Handle
from remuda.providers.contract.provider import EventSubject

Fault = Literal[
    "timeout_after_write",  # done, but the response comes far too late
    "error_after_write",  # done, but reported as failed
    "error",  # failed and not done
    "slow",  # late, but done
    "stale",  # a stale read
    "duplicate_rows",  # a list with a row twice
    "rate_limited",
    "not_visible_yet",  # created, but not visible yet
    "dropped_event",  # a lost event
]
FAULTS: Sequence[Fault] = get_args(Fault)


class CloudFailed(Unavailable):
    """Raised for an internal error of the cloud, after which it is unknown what was done."""

    code = "cloud_failed"

    def __init__(self) -> None:
        super().__init__("The simulated cloud failed. Check what it did before you try again.")


class RateLimited(Unavailable):
    """Raised when the cloud gets too many requests; nothing was done."""

    code = "rate_limited"

    def __init__(self) -> None:
        super().__init__("The simulated cloud receives too many requests. Try again a little later.")


class Faults(Protocol):
    """Source of faults, such as a simulation."""

    def fires(self, name: str) -> bool:
        """Return whether this fault happens now."""


class NoFaults:
    """Source without faults."""

    def fires(self, name: str) -> bool:
        return not name


@dataclass(frozen=True, slots=True)
class RandomFaults:
    """Source of random faults at configured rates, for a cloud that is deliberately unreliable."""

    randomness: Randomness
    rates: Mapping[str, float]
    """By the fault's name, or its name and a method: `error`, `error.create_server`."""

    def fires(self, name: str) -> bool:
        rate = self.rates.get(name.removeprefix("cloud."), 0.0)
        return rate > 0 and self.randomness.uniform(0, 1) < rate


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultBounds:
    """Bounds of the faults."""

    slow_s: float = 10.0
    """Greatest additional duration of a slow call."""
    lost_response_s: float = 60.0
    """Delay of a response that comes too late."""
    stale_s: float = 2.0
    """Greatest age of a read; a created object is visible after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Duration of a method's calls."""

    mean_s: float = 0.0
    jitter: float = 0.0
    """Share of the mean by which a call may be shorter or longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Durations of all methods' calls."""

    usual: Delay = Delay()
    methods: Mapping[str, Delay] = field(default_factory=dict)
    """Methods that differ from the usual."""

    @property
    def is_zero(self) -> bool:
        return not any(delay.mean_s for delay in (self.usual, *self.methods.values()))

    def of(self, method: str, randomness: Randomness) -> float:
        delay = self.methods.get(method, self.usual)
        if not delay.mean_s:
            return 0.0
        return delay.mean_s * (1 + delay.jitter * randomness.uniform(-1, 1))


NO_LATENCY = Latency()
"""Latency of a cloud that responds immediately."""


_Key = tuple[EventSubject, Handle]


@dataclass(slots=True)
class StaleReads:
    """Previous states of objects, for reads that may be stale.

    An object's state is kept here before each change, for as long as a stale read may reach back. A created object may
    be hidden for the same time: it exists, but is not visible yet.
    """

    now: Callable[[], float]
    max_age_s: float
    readers: dict[EventSubject, Callable[[Handle], Any]] = field(default_factory=dict)
    """Read function of each kind of object."""
    _history: dict[_Key, list[tuple[float, Any]]] = field(default_factory=dict)
    _hidden_until: dict[_Key, float] = field(default_factory=dict)

    def remember(self, subject: EventSubject, handle: Handle) -> None:
        """Keep the state of an object that is about to change."""
        now, key = self.now(), (subject, handle)
        read = self.readers.get(subject)
        if read is None:
            return
        kept = [each for each in self._history.pop(key, ()) if each[0] > now - self.max_age_s]
        if not kept or kept[-1][0] != now:
            kept.append((now, read(handle)))
        self._history[key] = kept  # moved to the end, so that the oldest are first
        self._forget(now)

    def hide(self, subject: EventSubject, handle: Handle) -> None:
        self._hidden_until.pop((subject, handle), None)  # so that the oldest are first, here too
        self._hidden_until[subject, handle] = self.now() + self.max_age_s

    def visible(self, subject: EventSubject, handle: Handle, present: Any, *, is_stale: bool) -> Any:
        key, now = (subject, handle), self.now()
        if self._hidden_until.get(key, now) > now:
            return None
        return self._as_of(key, now - self.max_age_s, present) if is_stale else present

    def rows(self, subject: EventSubject, present: Mapping[Handle, Any], *, is_stale: bool) -> Iterable[Any]:
        """Yield the entries of a list, given the present objects."""
        for handle, thing in present.items():
            shown = self.visible(subject, handle, thing, is_stale=is_stale)
            if shown is not None:
                yield shown

    def removed(self, subject: EventSubject) -> Iterable[Handle]:
        """Yield objects that may have existed recently and no longer do."""
        return [handle for kind, handle in self._history if kind == subject and self.readers[subject](handle) is None]

    def _as_of(self, key: _Key, moment: float, present: Any) -> Any:
        return next((value for until, value in self._history.get(key, ()) if until > moment), present)

    def _forget(self, now: float) -> None:
        while self._history:
            oldest = next(iter(self._history))
            if self._history[oldest][-1][0] > now - self.max_age_s:
                break
            del self._history[oldest]
        while self._hidden_until:
            oldest = next(iter(self._hidden_until))
            if self._hidden_until[oldest] > now:
                break
            del self._hidden_until[oldest]
