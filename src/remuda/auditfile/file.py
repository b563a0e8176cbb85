"""File of the audit log: appended to, flushed to disk, repaired after a crash, and replaced by renaming it.

An append writes whole lines, flushes them (`fsync`), and then writes the head. So after a crash the file can be ahead
of the head, never behind it: the head is corrected from the last line, and a line that was written in part is removed.
If the file is behind the head, or its last line is not authentic, it was changed by another program: the chain
continues from the head, so that the verification finds what is missing.

The file is opened for each append. An operator rotates it by renaming it; the next append creates a new one, which
continues the chain.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import structlog

from remuda.auditfile.chain import Chain, ChainLine, Link
from remuda.kernel.errors import Unavailable
from remuda.store.logs import StreamEntry

_BLOCK = 1 << 16
_CREATE = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_PRIVATE = 0o600
_LINE_FEED = b"\n"


@dataclass(frozen=True, slots=True)
class _Seen:
    """A file as the last append left it."""

    inode: int
    size: int


class AuditFile:
    """The file, and the head of its chain. Its methods block, and exclude each other."""

    def __init__(self, path: Path, head: Path, chain: Chain) -> None:
        self._path, self._head, self._chain = path, head, chain
        self._lock = threading.Lock()
        self._seen: _Seen | None = None

    def recover(self) -> Link:
        """Repair the file after a crash, and return the end of the chain."""
        with self._lock, self._opened() as file:
            size = _remove_partial_line(file)
            known = self._chain.read_head(self._head)
            head, found = known or Link(), next(self._read_back(file), None)
            self._seen = _Seen(os.fstat(file).st_ino, size)
            end = head
            if found is not None and found[1].sequence >= head.sequence:
                end = found[1]
            elif size:
                self._report(head, found)
            if known is None or end != head:
                self._chain.write_head(self._head, end)
            return end

    def last_lines(self, *, skip: int, count: int) -> Sequence[ChainLine]:
        """Return authentic lines at the end of the file, the last one first, after skipping some."""
        with self._lock, self._opened() as file:
            return [line for line, _ in islice(self._read_back(file), skip, skip + count)]

    def append(self, after: Link, entries: Sequence[StreamEntry]) -> Link:
        """Append records durably, and return the new end of the chain."""
        lines, end = self._chain.lines(after, entries)
        with self._lock, self._opened() as file:
            self._check_unchanged(file)
            _write(file, lines)
            os.fsync(file)
            self._seen = _Seen(os.fstat(file).st_ino, os.fstat(file).st_size)
            self._chain.write_head(self._head, end)
        return end

    def _check_unchanged(self, file: int) -> None:
        """Raise Unavailable if another program has written to the file. A new one, after a rotation, is empty."""
        found = os.fstat(file)
        if found.st_size and self._seen != _Seen(found.st_ino, found.st_size):
            raise Unavailable(f"The audit file {self._path} was changed by another program.")

    @contextmanager
    def _opened(self) -> Iterator[int]:
        try:
            is_new = not self._path.exists()
            file = os.open(self._path, _CREATE, _PRIVATE)
            try:
                if is_new:
                    _flush_directory(self._path.parent)
                yield file
            finally:
                os.close(file)
        except OSError as error:
            cause = error.strerror or str(error)
            raise Unavailable(f"The audit file {self._path} cannot be written ({cause}).") from None

    def _read_back(self, file: int) -> Iterator[tuple[ChainLine, Link]]:
        """Yield the lines from the end, up to the first that is not authentic."""
        for line in _lines_back(file):
            found = self._chain.read(line)
            if found is None:
                return
            yield found

    def _report(self, head: Link, found: tuple[ChainLine, Link] | None) -> None:
        structlog.get_logger().error(
            "audit file was changed",
            path=str(self._path),
            expected=head.sequence,
            found=None if found is None else found[1].sequence,
        )


def _remove_partial_line(file: int) -> int:
    """Remove what follows the last line feed, and return the size of the rest."""
    size = end = os.fstat(file).st_size
    while end:
        start = max(0, end - _BLOCK)
        at = os.pread(file, end - start, start).rfind(_LINE_FEED)
        if at >= 0:
            end = start + at + 1
            break
        end = start
    if end < size:
        os.ftruncate(file, end)
        os.fsync(file)
    return end


def _lines_back(file: int) -> Iterator[bytes]:
    """Yield the lines of a file that ends with a line feed, the last one first."""
    start, rest = os.fstat(file).st_size, b""
    while start:
        length = min(_BLOCK, start)
        start -= length
        first, *lines = (os.pread(file, length, start) + rest).split(_LINE_FEED)
        yield from (line for line in reversed(lines) if line)
        rest = first
    if rest:
        yield rest


def _write(file: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(file, left) :]


def _flush_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
