"""Verification queues: the credentials of an address over its limit, in a fair order that outlives their requests.

Credentials are verified one after the other, some time apart, and those of different subjects take turns. A subject is
what a credential claims to be: an account, or the digest of a token. Only a few can wait in a request. The others are
rejected, but each subject keeps its entry, by the time of its first attempt, as long as it tries again when it was
told. One that comes back displaces the youngest that waits, so new subjects, of which an attacker has any number,
cannot keep it out: it waits at most for the subjects that had an entry before it.

Rejections are also sent one after the other, some time apart, in the order of the requests. So an address gets no more
of them in the lifetime of an entry than its queue can hold entries: every rejected subject has one, and none is removed
for another. A request in progress is not cancelled by its client, so it keeps its turn.
"""

from dataclasses import dataclass

from remuda.kernel.clock import Clock
from remuda.kernel.fair_slots import Displaced, FairSlots

ENTRY_S = 40.0
"""Time for which an entry is kept after an attempt. A rejected client is told to come back within half of it."""
MAX_ENTRIES = 8_000
"""Largest number of entries in a queue: half for rejected subjects, the rest for those that wait or were displaced."""
_MOST_REJECTIONS = 5_000
"""Largest number of rejections of one address that wait: as many as it can have connections."""
_SWEEP_S = 2.0
"""Shortest time between two removals of expired entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """Pace of verifications at an address over its limit."""

    interval_s: float = 0.02
    most_waiting: int = 500
    """Largest number of credentials of one address that wait in requests."""

    @property
    def retry_after_s(self) -> float:
        """Time in which all credentials that wait are verified."""
        return min(self.most_waiting * self.interval_s, ENTRY_S / 2)


@dataclass(slots=True)
class _Entry:
    arrival: int
    seen: float


class VerificationQueue:
    """The credentials of one address."""

    def __init__(self, clock: Clock, pacing: Pacing) -> None:
        self._clock, self._pacing = clock, pacing
        self._gate = FairSlots(1, share=1)
        self._rejections = FairSlots(1, share=1)
        self._entries: dict[str, _Entry] = {}
        self._arrivals = 0
        self._used = self._swept = clock.monotonic()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def is_over(self) -> bool:
        """Whether no credential waits, and every entry has expired."""
        is_idle = self._gate.is_idle and self._rejections.is_idle
        return is_idle and self._clock.monotonic() - self._used > ENTRY_S

    async def wait(self, subject: str, *, most_entries: int = MAX_ENTRIES) -> bool:
        """Return True when a credential of this subject may be verified, or False if it has to try again later.

        It has an entry then, unless more rejections wait than an address has connections.
        """
        self._used = self._clock.monotonic()
        self._remove_expired()
        rejected_s = 2 * ENTRY_S / min(most_entries, MAX_ENTRIES)
        entry = self._entries.get(subject) or self._new_entry()
        if self._gate.waiting >= self._pacing.most_waiting and not self._displace(subject, entry):
            await self._reject(subject, entry, rejected_s)
            return False
        self._entries.setdefault(subject, entry)
        try:
            async with self._gate.acquire(subject):
                await self._clock.sleep(self._pacing.interval_s)
        except Displaced:
            await self._reject(subject, entry, rejected_s)
            return False
        if subject not in self._gate.keys:
            self._entries.pop(subject, None)
        return True

    def _new_entry(self) -> _Entry:
        self._arrivals += 1
        return _Entry(self._arrivals, self._used)

    async def _reject(self, subject: str, entry: _Entry, duration_s: float) -> None:
        """Return when the rejection may be sent, and keep the entry from then on."""
        if self._rejections.waiting >= _MOST_REJECTIONS:
            return
        async with self._rejections.acquire(""):
            await self._clock.sleep(duration_s)
        self._used = self._clock.monotonic()
        self._remove_expired()
        self._entries.setdefault(subject, entry).seen = self._used

    def _displace(self, subject: str, entry: _Entry) -> bool:
        """Displace the newest of the subject with most that wait or, if it is younger than this one, the youngest."""
        if self._gate.displace(subject):
            return True
        if subject in self._gate.keys:
            return False
        youngest = max(self._gate.keys, key=self._arrival)
        is_older = entry.arrival < self._arrival(youngest)
        if is_older:
            self._gate.displace_from(youngest)
        return is_older

    def _arrival(self, subject: str) -> int:
        return self._entries[subject].arrival

    def _remove_expired(self) -> None:
        """Remove the entries of those that did not come back, from time to time."""
        if self._used < self._swept + _SWEEP_S:
            return
        self._swept = self._used
        kept = {
            subject: entry
            for subject, entry in self._entries.items()
            if self._used - entry.seen <= ENTRY_S or subject in self._gate.keys
        }
        self._entries = kept
