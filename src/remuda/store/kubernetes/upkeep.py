"""What the store does by itself: bookmarks, compaction of its scratch tables, retention of journals."""

from dataclasses import dataclass, field
from datetime import timedelta

from remuda.kernel.clock import Clock
from remuda.kernel.errors import RemudaError
from remuda.store.kubernetes.journal import JournalLog
from remuda.store.logs import DEFAULT_RETENTION, Retention
from remuda.store.readside.reader import Reader

__all__ = ["Upkeep", "UpkeepSettings"]

_SLICE_ROWS = 200


@dataclass(frozen=True, kw_only=True)
class UpkeepSettings:
    """How long the store remembers."""

    history_age: timedelta = timedelta(minutes=30)
    """How far back a watch may resume."""
    interval_s: float = 30.0
    retention: Retention = field(default_factory=lambda: DEFAULT_RETENTION)


class Upkeep:
    """The recurring work of one open store."""

    def __init__(self, reader: Reader, log: JournalLog, clock: Clock, settings: UpkeepSettings) -> None:
        self._reader = reader
        self._log = log
        self._clock = clock
        self._settings = settings
        self._floor = 0

    async def bookmarks(self) -> None:
        """Let idle watchers know how far they are, for ever."""
        while True:
            await self._clock.sleep(self._reader.settings.bookmark_interval_s)
            for feed in self._reader.feeds():
                feed.tick()

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
        while (floor := tables.version_at(oldest, after=self._floor, limit=_SLICE_ROWS)) > self._floor:
            with tables.connection:
                tables.compact(after=self._floor, upto=floor, limit=2 * _SLICE_ROWS)
            self._floor = floor
            for feed in self._reader.feeds():
                feed.floor = max(feed.floor, floor)
            await self._clock.sleep(0)
