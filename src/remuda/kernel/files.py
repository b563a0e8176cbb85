"""Private files, readable only by their owner and replaced atomically, and the format of data files.

Every SQLite file in a data directory carries its format as `user_version` in the file header, so a program can check
it before it opens the file or writes anything.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from remuda.kernel.errors import StoreTooNew, StoreTooOld

DATA_FORMAT = 4
"""The format of data files. Unreleased revisions before it wrote formats 1 to 3, which are rejected.

Increase it when data of the previous format would be misread. Until the first tag there are no migrations; the first
tag declares the number that stands here as the oldest supported format."""

_HEADER_SIZE = 100
_USER_VERSION, _APPLICATION = slice(60, 64), slice(68, 71)
_OURS = b"REM"


def write_private(path: Path, content: bytes) -> None:
    """Write a file atomically, or raise OSError. A crash leaves either the previous content or the new one."""
    with _temporary_beside(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        move_over(Path(file.name), path)


def check_format(path: Path, *, newest: int = DATA_FORMAT) -> None:
    """Raise StoreTooOld or StoreTooNew if the header of a data file has another format. Only reads.

    A missing file has no format, nor has one whose first transaction is still in the write-ahead log alone.
    """
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_SIZE)
    except OSError:
        return
    if header[_APPLICATION] == _OURS:
        require_format(path, int.from_bytes(header[_USER_VERSION]), newest=newest)


def require_format(path: Path, found: int, *, newest: int = DATA_FORMAT) -> None:
    """Raise StoreTooOld or StoreTooNew unless a program that writes format `newest` can read format `found`."""
    if 0 < found < DATA_FORMAT:
        raise StoreTooOld(path, found=found, known=newest)
    if found > newest:
        raise StoreTooNew(path, found=found, known=newest)


def move_over(source: Path, target: Path) -> None:
    """Rename a file over another one in the same directory, and flush that to disk."""
    source.replace(target)
    directory = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextmanager
def _temporary_beside(path: Path) -> Iterator[IO[bytes]]:
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            yield file
        finally:
            Path(file.name).unlink(missing_ok=True)
