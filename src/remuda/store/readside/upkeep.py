"""What every store does by itself: how long it remembers, and how it tells idle watchers where they are."""

from dataclasses import dataclass, field
from datetime import timedelta

from remuda.kernel.clock import Clock
from remuda.store.logs import DEFAULT_RETENTION, Retention
from remuda.store.readside.reader import Reader


@dataclass(frozen=True, kw_only=True)
class UpkeepSettings:
    """How long the store remembers."""

    history_age: timedelta = timedelta(minutes=30)
    """How far back a watch may resume."""
    history_changes: int = 200_000
    """How many changes it may go back."""
    interval_s: float = 30.0
    """How often compaction and retention look whether there is something to do."""
    retention: Retention = field(default_factory=lambda: DEFAULT_RETENTION)


async def send_bookmarks(reader: Reader, clock: Clock) -> None:
    """Let idle watchers know how far they are, for ever."""
    while True:
        await clock.sleep(reader.settings.bookmark_interval_s)
        for feed in reader.feeds():
            feed.tick()
