"""A disk that can fail, fill up and lose power, as an SQLite VFS.

Contract: a database opened with `vfs=disk.vfs_name` under `disk.directory` runs on the real unix VFS, so locks and the
shared memory of WAL are real, while every read, write, sync, truncate and delete passes through here. The disk knows
what was synced, so `power_cut` can write into another directory what a machine would find there after losing power
now. A `kill -9` cannot show that: the page cache outlives it.

The model: unsynced changes are kept or lost one by one; a sync makes its file durable whole; the first sync of a new
file is a sync of the directory too (the unix VFS does that for journals and WALs), and until then creations and
deletions may be lost. Not modelled: a failed sync after which a later one lies, decay of synced data.

Faults, asked of the menu both plain and with the kind of file appended (`disk.sync_error.wal`): see `FAULTS`.

Taking an image reads database files beside SQLite, which drops its POSIX locks; all connections here are in one
process, where SQLite keeps its own account of locks.
"""

# ruff: noqa: N802  SQLite names the methods of a VFS
import itertools
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import apsw

from remuda.kernel.randomness import Randomness
from tests.kit.simulation.faults import FaultMenu
from tests.kit.simulation.platter import Change, Keep, Platter

if TYPE_CHECKING:
    from typing_extensions import Buffer

FAULTS: Mapping[str, int] = {
    "disk.read_error": apsw.SQLITE_IOERR_READ,
    "disk.short_read": apsw.SQLITE_IOERR_SHORT_READ,
    "disk.write_error": apsw.SQLITE_IOERR_WRITE,
    "disk.full": apsw.SQLITE_FULL,
    "disk.sync_error": apsw.SQLITE_IOERR_FSYNC,
}
"""What may go wrong, and what SQLite is then told; a short read says nothing and gives zeros for the missing half."""

_KINDS = {
    apsw.SQLITE_OPEN_MAIN_DB: "main",
    apsw.SQLITE_OPEN_WAL: "wal",
    apsw.SQLITE_OPEN_MAIN_JOURNAL: "journal",
    apsw.SQLITE_OPEN_SUPER_JOURNAL: "journal",
}
_numbers = itertools.count(1)


class PowerCut(apsw.IOError):
    """The power is gone: no call on this disk works any more."""

    extendedresult = apsw.SQLITE_IOERR


@dataclass(frozen=True)
class _PlannedCut:
    sync: int
    into: Path
    keep: Keep
    tear: bool


class SimDisk:
    """One disk over one flat directory. Faults come from the menu, the fate of unsynced writes from the randomness."""

    def __init__(self, directory: Path, faults: FaultMenu, randomness: Randomness) -> None:
        # SQLite resolves links before it opens; the names below must be those it uses.
        self.directory = directory.resolve()
        self.vfs_name = f"sim-disk-{next(_numbers)}"
        self.capacity: int | None = None
        self.calls: Counter[tuple[str, str]] = Counter()
        self.syncs = 0
        self.is_cut = False
        self.platter = Platter(self.directory, randomness)
        self._faults = faults
        self._planned_cut: _PlannedCut | None = None
        self._vfs = _VFS(self)

    @property
    def used(self) -> int:
        """The bytes taken by all files; the shared memory of WAL is no disk."""
        return sum(path.stat().st_size for path in self.directory.iterdir() if not path.name.endswith("-shm"))

    def fill(self) -> None:
        """Leave no space: from now on no file can grow."""
        self.capacity = self.used

    def free(self) -> None:
        """Make space without bounds."""
        self.capacity = None

    def power_cut(self, into: Path, keep: Keep = "none", *, tear: bool = False) -> None:
        """Write to another directory what a power cut now would leave; this disk itself goes on."""
        self.platter.power_cut(into, keep, tear=tear)

    def cut_at_sync(self, n: int, into: Path, *, keep: Keep = "none", tear: bool = False) -> None:
        """Lose power when the nth sync from now arrives, before it takes effect."""
        self._planned_cut = _PlannedCut(self.syncs + n, into, keep, tear)

    def close(self) -> None:
        """Take the VFS out of SQLite's list; connections still open on it can still be closed."""
        self._vfs.unregister()

    def called(self, kind: str, operation: str) -> None:
        """Count a call, and reject it if the power is gone."""
        if self.is_cut:
            raise PowerCut("the simulated power is cut")
        self.calls[kind, operation] += 1

    def syncing(self) -> None:
        """Count a sync, and lose power if this is the one."""
        self.syncs += 1
        cut = self._planned_cut
        if cut is not None and self.syncs == cut.sync:
            self.power_cut(cut.into, cut.keep, tear=cut.tear)
            self.is_cut = True
            raise PowerCut(f"power cut at sync {self.syncs}")

    def suffers(self, fault: str, kind: str) -> bool:
        """Ask the menu for a fault by its plain name and by its name for this kind of file."""
        is_plain, is_of_kind = self._faults.fires(fault), self._faults.fires(f"{fault}.{kind}")
        return is_plain or is_of_kind

    def reject(self, fault: str, kind: str) -> None:
        """Fail the present call if the menu says so."""
        if self.suffers(fault, kind):
            raise _failure(fault)

    def take_space(self, growth: int) -> None:
        """Fail the present write if what it adds no longer fits."""
        if growth > 0 and self.capacity is not None and self.used + growth > self.capacity:
            raise _failure("disk.full")


class _Quiet:
    """Where SQLite has no way to pass on an error it goes on without; neither is that worth a warning."""

    def excepthook(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> bool:
        return True


class _VFS(_Quiet, apsw.VFS):
    def __init__(self, disk: SimDisk) -> None:
        self._disk = disk
        super().__init__(disk.vfs_name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        kind = next((kind for flag, kind in _KINDS.items() if flags[0] & flag), None)
        if name is None or kind is None:
            return apsw.VFSFile("", name, flags)
        self._disk.called(kind, "open")
        return _File(self._disk, name, kind=kind, flags=flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001  SQLite's signature
        self._disk.called(_kind_of_name(filename), "delete")
        if Path(filename).exists():
            self._disk.platter.deleting(Path(filename).name, durable=syncdir)
        super().xDelete(filename, syncdir)

    def xAccess(self, pathname: str, flags: int) -> bool:
        self._disk.called(_kind_of_name(pathname), "access")
        return super().xAccess(pathname, flags)

    def xSleep(self, microseconds: int) -> int:
        # With one thread nobody else can release a lock meanwhile, so real waiting would prove nothing.
        return microseconds


class _File(_Quiet, apsw.VFSFile):
    def __init__(self, disk: SimDisk, name: str | apsw.URIFilename, *, kind: str, flags: list[int]) -> None:
        path = Path(name if isinstance(name, str) else name.filename())
        existed = path.exists()
        super().__init__("", name, flags)
        self._disk, self._kind, self._name = disk, kind, path.name
        disk.platter.opened(path.name, existed=existed)

    def xRead(self, amount: int, offset: int) -> bytes:
        self._disk.called(self._kind, "read")
        self._disk.reject("disk.read_error", self._kind)
        content = super().xRead(amount, offset)
        return content[: amount // 2] if self._disk.suffers("disk.short_read", self._kind) else content

    def xWrite(self, data: "Buffer", offset: int) -> None:
        self._disk.called(self._kind, "write")
        self._disk.reject("disk.write_error", self._kind)
        self._disk.reject("disk.full", self._kind)
        after, size = bytes(data), super().xFileSize()
        self._disk.take_space(offset + len(after) - size)
        change = Change(offset, self._content(offset, min(size, offset + len(after))), size, after)
        super().xWrite(after, offset)
        self._disk.platter.changed(self._name, change)

    def xTruncate(self, newsize: int) -> None:
        self._disk.called(self._kind, "truncate")
        size = super().xFileSize()
        change = Change(newsize, self._content(newsize, size), size, None)
        super().xTruncate(newsize)
        self._disk.platter.changed(self._name, change)

    def xSync(self, flags: int) -> None:  # noqa: ARG002  every sync here is a full one
        self._disk.called(self._kind, "sync")
        self._disk.syncing()
        self._disk.reject("disk.sync_error", self._kind)
        self._disk.platter.synced(self._name)

    def xFileSize(self) -> int:
        self._disk.called(self._kind, "size")
        return super().xFileSize()

    def _content(self, start: int, end: int) -> bytes:
        return super().xRead(end - start, start) if end > start else b""


def _kind_of_name(name: str) -> str:
    endings = {"-wal": "wal", "-journal": "journal"}
    return next((kind for ending, kind in endings.items() if name.endswith(ending)), "main")


def _failure(fault: str) -> Exception:
    error = apsw.exception_for(FAULTS[fault])
    error.args = (f"simulated {fault}",)
    return error


@contextmanager
def memory_directory() -> Iterator[Path]:
    """Give a fresh directory in memory where the machine has one, and remove it afterwards."""
    memory = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(prefix="remuda-sim-", dir=memory if memory.is_dir() else None))
    try:
        yield path
    finally:
        shutil.rmtree(path)
