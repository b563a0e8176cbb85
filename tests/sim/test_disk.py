"""The simulated disk loses what it may lose and nothing else, and SQLite on it behaves as on a real one."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw
import pytest

from remuda.kernel.randomness import SeededRandomness
from tests.kit.simulation.disk import SimDisk, memory_directory
from tests.kit.simulation.faults import FaultMenu
from tests.kit.simulation.platter import SECTOR, Change, Keep, Platter

ROWS = 12
NewDisk = Callable[..., SimDisk]


@pytest.fixture
def root() -> Iterator[Path]:
    with memory_directory() as path:
        yield path


@pytest.fixture
def new_disk(root: Path) -> Iterator[NewDisk]:
    disks: list[SimDisk] = []

    def make(name: str, *, seed: int = 0, faults: FaultMenu | None = None) -> SimDisk:
        (root / name).mkdir()
        disks.append(SimDisk(root / name, faults or FaultMenu(seed), SeededRandomness(seed)))
        return disks[-1]

    yield make
    for disk in disks:
        disk.close()


@contextmanager
def opened(disk: SimDisk, synchronous: str = "FULL", *, journal: str = "wal") -> Iterator[apsw.Connection]:
    # Closed even when the first statement fails: a dropped connection would close itself where no error can be caught.
    with closing(apsw.Connection(str(disk.directory / "plane.db"), vfs=disk.vfs_name)) as connection:
        connection.pragma("journal_mode", journal)
        connection.pragma("synchronous", synchronous)
        # A small limit lets checkpoints, with their own syncs, fall among the commits.
        connection.pragma("wal_autocheckpoint", 5)
        connection.execute("create table if not exists thing (id integer primary key, body blob)")
        yield connection


def insert(connection: apsw.Connection, row: int) -> None:
    connection.execute("insert into thing values (?, ?)", (row, bytes([row]) * 2000))


def insert_all(connection: apsw.Connection) -> None:
    for row in range(ROWS):
        insert(connection, row)


def commit_until_cut(disk: SimDisk, synchronous: str, *, journal: str) -> list[int]:
    """Commit one row after the other until all are in or the power goes; return those that were acknowledged."""
    acknowledged: list[int] = []
    with suppress(apsw.Error), opened(disk, synchronous, journal=journal) as connection:
        for row in range(ROWS):
            insert(connection, row)
            acknowledged.append(row)
    return acknowledged


def cut_at_every_sync(new_disk: NewDisk, synchronous: str, *, journal: str, keep: Keep, tear: bool) -> list[bool]:
    """Cut the power at sync 1, 2, 3 until a run ends before it; say of each cut whether it left all commits."""
    kept: list[bool] = []
    while True:
        disk = new_disk(f"disk-{len(kept)}", seed=len(kept))
        left = disk.directory.with_name(f"left-{len(kept)}")
        disk.cut_at_sync(len(kept) + 1, left, keep=keep, tear=tear)
        acknowledged = commit_until_cut(disk, synchronous, journal=journal)
        if not disk.is_cut:
            return kept
        # The commit in flight was not acknowledged, so it may be there or not.
        kept.append(recovered(left) in (acknowledged, [*acknowledged, len(acknowledged)]))


def recovered(directory: Path) -> list[int]:
    """Open what the power cut left, on the plain unix VFS, and read it."""
    with closing(apsw.Connection(str(directory / "plane.db"))) as connection:
        assert connection.pragma("integrity_check") == "ok"
        known = connection.execute("select count(*) from sqlite_schema where name = 'thing'").get
        return [row for (row,) in connection.execute("select id from thing order by id")] if known else []


@pytest.mark.parametrize("tear", [False, True])
@pytest.mark.parametrize("keep", ["none", "some", "all"])
@pytest.mark.parametrize(("journal", "synchronous"), [("wal", "FULL"), ("delete", "EXTRA")])
def test_synced_commits_survive_a_power_cut_at_every_sync(
    new_disk: NewDisk, journal: str, synchronous: str, keep: Keep, *, tear: bool
) -> None:
    kept = cut_at_every_sync(new_disk, synchronous, journal=journal, keep=keep, tear=tear)
    assert len(kept) > ROWS
    assert all(kept)


def test_a_rollback_journal_deleted_without_a_directory_sync_takes_a_commit_back(new_disk: NewDisk) -> None:
    assert not all(cut_at_every_sync(new_disk, "FULL", journal="delete", keep="none", tear=False))


@pytest.mark.parametrize("seed", range(5))
def test_a_torn_write_leaves_old_and_new_sectors(root: Path, seed: int) -> None:
    (root / "disk").mkdir()
    platter = Platter(root / "disk", SeededRandomness(seed))
    (root / "disk" / "file").write_bytes(b"o" * 4096)
    platter.opened("file", existed=True)
    platter.changed("file", Change(100, b"o" * 2000, 4096, b"n" * 2000))
    (root / "disk" / "file").write_bytes(b"o" * 100 + b"n" * 2000 + b"o" * 1996)
    platter.power_cut(root / "left", "none", tear=True)
    left = (root / "left" / "file").read_bytes()
    assert len(left) == 4096
    assert 0 < left.count(b"n") < 2000
    assert all(len(set(left[start : start + SECTOR])) == 1 for start in range(SECTOR, 2048 - SECTOR, SECTOR))


@pytest.mark.parametrize(("synchronous", "loses"), [("FULL", False), ("OFF", True)])
def test_only_without_syncs_a_commit_can_be_lost(
    new_disk: NewDisk, root: Path, synchronous: str, *, loses: bool
) -> None:
    disk = new_disk("disk")
    lost = 0
    with opened(disk) as connection:
        connection.pragma("synchronous", synchronous)
        for row in range(ROWS):
            insert(connection, row)
            disk.power_cut(root / f"left-{row}")
            lost += row + 1 - len(recovered(root / f"left-{row}"))
    assert (lost > 0) == loses


def test_without_syncs_some_seed_loses_or_corrupts(new_disk: NewDisk, root: Path) -> None:
    def survives(seed: int) -> bool:
        disk = new_disk(f"disk-{seed}", seed=seed)
        with opened(disk, "OFF") as connection:
            insert_all(connection)
            disk.power_cut(root / f"left-{seed}", "some")
        try:
            return len(recovered(root / f"left-{seed}")) == ROWS
        except (apsw.Error, AssertionError):
            return False

    assert not all(survives(seed) for seed in range(10))


def test_the_same_seed_leaves_the_same_image(new_disk: NewDisk, root: Path) -> None:
    def sizes(name: str, seed: int) -> list[tuple[str, int]]:
        disk = new_disk(name, seed=seed)
        with opened(disk, "OFF") as connection:
            insert_all(connection)
            disk.power_cut(root / f"left-{name}", "some")
        return sorted((path.name, path.stat().st_size) for path in (root / f"left-{name}").iterdir())

    assert sizes("first", 7) == sizes("second", 7)
    assert len({tuple(sizes(f"other-{seed}", seed)) for seed in range(8)}) > 1


def test_the_shared_memory_of_wal_is_never_copied(new_disk: NewDisk, root: Path) -> None:
    disk = new_disk("disk")
    with opened(disk) as connection:
        insert_all(connection)
        disk.power_cut(root / "left", "all")
        assert (disk.directory / "plane.db-shm").exists()
    assert sorted(path.name for path in (root / "left").iterdir()) == ["plane.db", "plane.db-wal"]


def test_an_unsynced_delete_is_undone_and_a_synced_one_is_not(new_disk: NewDisk, root: Path) -> None:
    disk = new_disk("disk")
    vfs = disk._vfs
    (disk.directory / "old").write_bytes(b"here before")
    (disk.directory / "older").write_bytes(b"here before")
    vfs.xDelete(str(disk.directory / "old"), False)  # noqa: FBT003  SQLite's signature
    vfs.xDelete(str(disk.directory / "older"), True)  # noqa: FBT003  SQLite's signature
    disk.power_cut(root / "none")
    disk.power_cut(root / "all", "all")
    assert [path.read_bytes() for path in (root / "none").iterdir()] == [b"here before"]
    assert not list((root / "all").iterdir())


def test_a_full_disk_rejects_and_works_again_when_freed(new_disk: NewDisk) -> None:
    disk = new_disk("disk")
    with opened(disk) as connection:
        disk.fill()
        with pytest.raises(apsw.FullError):
            insert_all(connection)
        disk.free()
        before = connection.execute("select count(*) from thing").get
        insert(connection, 100)
        assert connection.execute("select count(*) from thing").get == before + 1
        assert connection.pragma("integrity_check") == "ok"


@pytest.mark.parametrize(
    ("fault", "error", "code"),
    [
        ("disk.write_error.wal", apsw.IOError, apsw.SQLITE_IOERR_WRITE),
        ("disk.sync_error.wal", apsw.IOError, apsw.SQLITE_IOERR_FSYNC),
        ("disk.full", apsw.FullError, apsw.SQLITE_FULL),
    ],
)
def test_a_failed_commit_is_reported_and_the_next_one_works(
    new_disk: NewDisk, fault: str, error: type[apsw.Error], code: int
) -> None:
    menu = FaultMenu(0)
    with opened(new_disk("disk", faults=menu)) as connection:
        menu.at(fault, menu.counts[fault].asked + 1)
        with pytest.raises(error) as caught:
            insert(connection, 1)
        assert getattr(caught.value, "extendedresult", None) == code
        insert(connection, 2)
        assert connection.execute("select group_concat(id) from thing").get == "2"


@pytest.mark.parametrize("fault", ["disk.read_error.main", "disk.short_read.main"])
def test_a_bad_read_is_not_taken_for_data(new_disk: NewDisk, fault: str) -> None:
    menu = FaultMenu(0)
    disk = new_disk("disk", faults=menu)
    with opened(disk) as connection:
        insert_all(connection)
    with closing(apsw.Connection(str(disk.directory / "plane.db"), vfs=disk.vfs_name)) as connection:
        connection.pragma("user_version")
        menu.at(fault, menu.counts[fault].asked + 1)
        with pytest.raises((apsw.IOError, apsw.CorruptError, apsw.NotADBError)):
            connection.execute("select sum(length(body)) from thing").get  # noqa: B018  reading it runs the query
        assert menu.counts[fault].fired == 1


def test_calls_are_counted_by_kind_of_file(new_disk: NewDisk) -> None:
    disk = new_disk("disk")
    with opened(disk) as connection:
        insert_all(connection)
    assert disk.calls["wal", "sync"] >= ROWS
    assert disk.calls["main", "write"] > 0
    assert disk.syncs == sum(count for (_, operation), count in disk.calls.items() if operation == "sync")
