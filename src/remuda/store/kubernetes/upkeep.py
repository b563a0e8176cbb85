"""What the store does by itself: compaction of its scratch tables, retention of journals."""

from collections import deque
from collections.abc import Sequence
from typing import Any

from remuda.kernel.clock import Clock
from remuda.kernel.errors import RemudaError
from remuda.store.kubernetes.journal import JournalLog
from remuda.store.readside.change_feed import Landed
from remuda.store.readside.reader import Reader
from remuda.store.readside.upkeep import UpkeepSettings

_SLICE_ROWS = 200


class Upkeep:
    """The recurring work of one open store."""

    def __init__(self, reader: Reader, log: JournalLog, clock: Clock, settings: UpkeepSettings) -> None:
        self._reader = reader
        self._log = log
        self._clock = clock
        self._settings = settings
        self._floor = 0
        self._changes = 0
        self._milestones: deque[int] = deque(maxlen=settings.history_changes // _SLICE_ROWS + 1)
        """The version of every so many-th change: the oldest is where too much history begins."""

    def notice(self, changes: Sequence[Landed[Any]]) -> None:
        """Count what an informer has seen."""
        for change in changes:
            self._floor = min(self._floor, change.version - 1)  # of a kind that lags behind: look there again
            self._changes += 1
            if self._changes % _SLICE_ROWS == 0:
                self._milestones.append(change.version)

    async def forget(self) -> None:
        """Compact history and drop old journals, for ever. A server that does not answer only delays it."""
        while True:
            await self._clock.sleep(self._settings.interval_s)
            try:
                await self.compact()
                await self._log.trim(self._settings.retention)
            except RemudaError:
                continue

    async def compact(self) -> None:
        """Remove the history that no watch may ask for any more."""
        tables = self._reader.tables
        oldest = (self._clock.now() - self._settings.history_age).timestamp()
        is_full = len(self._milestones) == self._milestones.maxlen
        too_many = self._milestones[0] if is_full else 0
        while True:
            floor = max(
                tables.version_at(oldest, after=self._floor, limit=_SLICE_ROWS),
                tables.version_upto(too_many, after=self._floor, limit=_SLICE_ROWS),
            )
            if floor <= self._floor:
                return
            with tables.connection:
                tables.compact(after=self._floor, upto=floor, limit=2 * _SLICE_ROWS)
            self._floor = floor
            for feed in self._reader.feeds():
                feed.forget(floor)
            await self._clock.sleep(0)
