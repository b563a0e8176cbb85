"""What a read would have shown a little while ago, for a simulation whose reads may be stale.

Before something changes, how it was is remembered here for as long as a stale read may reach back. What was made may
also be hidden for so long: it is there, and nobody sees it yet.

What may go wrong in the cloud, off unless somebody passes a menu.

Each fault is asked of the menu as `cloud.<fault>`, and again with the verb appended: `cloud.error.create_server`.

How long the cloud takes to answer.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from remuda.kernel.errors import Unavailable
from remuda.kernel.randomness import Randomness
from remuda.providers.contract.common import Handle
from remuda.providers.contract.provider import Subject

Fault = Literal[
    "timeout_done",
    "error_done",
    "error",
    "slow",
    "stale",
    "doubled_rows",
    "rate_limited",
    "not_found_yet",
    "dropped_event",
]
"""Done, but the answer comes far too late; done, but told that it failed; failed, and not done; late, but done; a read
of a little while ago; a list with a row twice; too many requests; made, but not to be seen yet; an event lost."""

FAULTS: tuple[Fault, ...] = (
    "timeout_done",
    "error_done",
    "error",
    "slow",
    "stale",
    "doubled_rows",
    "rate_limited",
    "not_found_yet",
    "dropped_event",
)
"""The whole menu."""


class CloudFailed(Unavailable):
    """The cloud said that something went wrong, which says nothing about what it did."""

    code = "cloud_failed"

    def __init__(self) -> None:
        super().__init__("The simulated cloud failed: look at what it did before trying again.")


class RateLimited(Unavailable):
    """The cloud was asked too often, and has done nothing."""

    code = "rate_limited"

    def __init__(self) -> None:
        super().__init__("The simulated cloud is asked too often: try again a little later.")


class Faults(Protocol):
    """A menu of faults, such as a simulation has."""

    def fires(self, name: str) -> bool:
        """Tell whether this fault happens now."""
        ...


class Calm:
    """A menu without faults."""

    def fires(self, name: str) -> bool:
        """Nothing ever goes wrong."""
        return not name


@dataclass(frozen=True, slots=True)
class DrawnFaults:
    """A menu by chance, for a cloud that somebody wants to be unreliable: each fault at its rate."""

    randomness: Randomness
    rates: Mapping[str, float]
    """By the fault's name, or that with a verb: `error`, `error.create_server`."""

    def fires(self, name: str) -> bool:
        """Draw."""
        rate = self.rates.get(name.removeprefix("cloud."), 0.0)
        return rate > 0 and self.randomness.uniform(0, 1) < rate


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultBounds:
    """How bad it may get."""

    slow_s: float = 10.0
    """A slow call takes so much longer at most."""
    lost_answer_s: float = 60.0
    """An answer that comes too late comes after so long."""
    stale_s: float = 2.0
    """No read is older; and what was made is to be seen by then."""


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


_Key = tuple[Subject, Handle]


@dataclass(slots=True)
class Past:
    """How things were."""

    now: Callable[[], float]
    reach_s: float
    readers: dict[Subject, Callable[[Handle], Any]] = field(default_factory=dict)
    """How each sort of thing is read."""
    _was: dict[_Key, list[tuple[float, Any]]] = field(default_factory=dict)
    _hidden_until: dict[_Key, float] = field(default_factory=dict)

    def remember(self, subject: Subject, handle: Handle) -> None:
        """Keep how something is, because it is about to change."""
        now, key = self.now(), (subject, handle)
        read = self.readers.get(subject)
        if read is None:
            return
        kept = [each for each in self._was.pop(key, ()) if each[0] > now - self.reach_s]
        if not kept or kept[-1][0] != now:
            kept.append((now, read(handle)))
        self._was[key] = kept  # now the last one, so that the oldest are first
        self._forget(now)

    def hide(self, subject: Subject, handle: Handle) -> None:
        """Let what was just made not be seen for a while."""
        self._hidden_until.pop((subject, handle), None)  # so that the oldest are first, here too
        self._hidden_until[subject, handle] = self.now() + self.reach_s

    def seen(self, subject: Subject, handle: Handle, present: Any, *, is_stale: bool) -> Any:
        """Return what a read of one thing shows."""
        key, now = (subject, handle), self.now()
        if self._hidden_until.get(key, now) > now:
            return None
        return self._as_of(key, now - self.reach_s, present) if is_stale else present

    def rows(self, subject: Subject, present: Mapping[Handle, Any], *, is_stale: bool) -> Iterable[Any]:
        """Yield what a list of things shows where these are there now."""
        for handle, thing in present.items():
            shown = self.seen(subject, handle, thing, is_stale=is_stale)
            if shown is not None:
                yield shown

    def gone(self, subject: Subject) -> Iterable[Handle]:
        """Yield what may have been there a while ago and is no longer."""
        return [handle for kind, handle in self._was if kind == subject and self.readers[subject](handle) is None]

    def _as_of(self, key: _Key, moment: float, present: Any) -> Any:
        return next((value for until, value in self._was.get(key, ()) if until > moment), present)

    def _forget(self, now: float) -> None:
        while self._was:
            oldest = next(iter(self._was))
            if self._was[oldest][-1][0] > now - self.reach_s:
                break
            del self._was[oldest]
        while self._hidden_until:
            oldest = next(iter(self._hidden_until))
            if self._hidden_until[oldest] > now:
                break
            del self._hidden_until[oldest]
