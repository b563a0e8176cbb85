"""Where things are measured: sizes, a directory for this run, and files that are filled once and used by many."""

from dataclasses import dataclass
from pathlib import Path

from bench.kinds import REGISTRY, SEALER
from bench.rows import BareFile
from remuda.store.readside.reader import ReaderSettings
from remuda.store.readside.reads import MaintenanceSettings
from remuda.store.sqlite.store import SqlitePorts, SqliteSettings, SqliteStore, open_store

__all__ = ["FULL", "QUICK", "Bed", "Sizes"]


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
    reconciled: int = 2_000
    """Objects that a controller looks at in one round."""
    idle_s: float
    """How long is looked at what does nothing."""
    operations: int
    """Operations in one round."""
    asked: int
    """Requests in one round."""
    organizations: int
    """Organizations of 100 users each."""
    members: int
    """Users, and projects, of one large organization."""
    servers: int
    """Servers that are made in one round, over sockets."""
    creating_rounds: int
    networked: int = 1_000
    """Servers on one network."""
    fleet: int
    """Servers that do nothing."""


FULL = Sizes(
    many=300_000,
    posting_rounds=8,
    rounds=20,
    writes=640,
    listed=100_000,
    replayed=50_000,
    compacted=100_000,
    children=10_000,
    idle_s=32.0,
    operations=640,
    asked=4_000,
    organizations=1_000,
    members=2_000,
    servers=640,
    creating_rounds=8,
    fleet=100_000,
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
    idle_s=16.0,
    operations=320,
    asked=1_000,
    organizations=100,
    members=1_000,
    servers=320,
    creating_rounds=5,
    fleet=20_000,
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
        self,
        path: Path,
        *,
        cache_bytes: int = ReaderSettings.cache_bytes,
        history_changes: int = 1_000_000,
        ports: SqlitePorts | None = None,
    ) -> SqliteStore:
        """Open a store whose own upkeep stays out of the way."""
        reader = ReaderSettings(cache_bytes=cache_bytes, bookmark_interval_s=3_600)
        upkeep = MaintenanceSettings(interval_s=3_600, history_changes=history_changes)
        settings = SqliteSettings(reader=reader, maintenance=upkeep)
        return open_store(path, REGISTRY, SEALER, ports=ports, settings=settings)
