"""Files that only their owner may read, written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def write_private(path: Path, content: bytes) -> None:
    """Write a file; raise OSError if that cannot be. A crash leaves the one that was there, or the new one."""
    with _temporary_beside(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        move_over(Path(file.name), path)


def move_over(source: Path, target: Path) -> None:
    """Give a file the name of another one in its directory, which it replaces, and keep that over a power cut."""
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
