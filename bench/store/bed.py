"""Where the store is measured: sizes, a directory for this run, and files that are filled once and used by many."""

from dataclasses import dataclass
from pathlib import Path

from bench.report import Measure, note
from bench.store.kinds import REGISTRY, SEALER
from bench.store.rows import BareFile
from remuda.store.readside.reader import ReaderSettings
from remuda.store.readside.upkeep import UpkeepSettings
from remuda.store.sqlite.store import SqliteSettings, SqliteStore, open_store

__all__ = ["FULL", "QUICK", "Bed", "Sizes", "at_least", "at_most", "figure"]


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much is measured."""

    many: int
    few: int = 3_000
    rounds: int
    writes: int
    """Writes in one round."""
    listed: int
    replayed: int
    compacted: int
    children: int
    watchers: int = 1_000
    posts: int = 640
    """Creates on an API server in one round."""
    posting_rounds: int


FULL = Sizes(
    many=300_000,
    posting_rounds=8,
    rounds=20,
    writes=640,
    listed=100_000,
    replayed=50_000,
    compacted=100_000,
    children=10_000,
)
QUICK = Sizes(
    many=60_000,
    posting_rounds=4,
    rounds=10,
    writes=640,
    listed=20_000,
    replayed=10_000,
    compacted=10_000,
    children=3_000,
)


class Bed:
    """One run of the benchmark."""

    def __init__(self, directory: Path, sizes: Sizes) -> None:
        self.sizes = sizes
        self._directory = directory
        self._made = 0

    def directory(self, name: str) -> Path:
        """Return a directory for this run."""
        path = self._directory / name
        path.mkdir(exist_ok=True)
        return path

    def fresh(self) -> Path:
        """Return a path that no other measure uses."""
        self._made += 1
        return self._directory / f"{self._made}.db"

    def filled(self, objects: int, *, changes: int | None = None) -> Path:
        """Return a file with so many machines, after so many changes of them; it is made once."""
        path = self._directory / f"{objects}-{changes or objects}.db"
        if not path.exists():
            bare = BareFile(path)
            bare.fill(objects=objects, changes=changes or objects)
            bare.close()
        return path

    def open(
        self, path: Path, *, cache_bytes: int = ReaderSettings.cache_bytes, history_changes: int = 1_000_000
    ) -> SqliteStore:
        """Open a store whose own upkeep stays out of the way."""
        reader = ReaderSettings(cache_bytes=cache_bytes, bookmark_interval_s=3_600)
        upkeep = UpkeepSettings(interval_s=3_600, history_changes=history_changes)
        return open_store(path, REGISTRY, SEALER, settings=SqliteSettings(reader=reader, upkeep=upkeep))


def at_least(goal: float, measure: str, ours: float, limit: float, unit: str) -> Measure:
    """Return a measure of which more is better."""
    return Measure(bench="store", measure=measure, ours=ours, limit=limit, unit=unit, goal=goal, is_at_most=False)


def at_most(goal: float | None, measure: str, ours: float, limit: float, unit: str) -> Measure:
    """Return a measure of which less is better; without a goal it is there to be read."""
    return Measure(bench="store", measure=measure, ours=ours, limit=limit, unit=unit, goal=goal)


def figure(measure: str, ours: float, unit: str) -> Measure:
    """Return a figure that has no goal."""
    return note("store", measure, ours, unit)
