"""What a read would have shown a little while ago, for a simulation whose reads may be stale.

Before something changes, how it was is remembered here for as long as a stale read may reach back. What was made may
also be hidden for so long: it is there, and nobody sees it yet.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from remuda.providers.contract.common import Handle
from remuda.providers.contract.provider import Subject

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
