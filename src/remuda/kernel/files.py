"""Private files: readable only by their owner, and replaced atomically."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def write_private(path: Path, content: bytes) -> None:
    """Write a file atomically, or raise OSError. A crash leaves either the previous content or the new one."""
    with _temporary_beside(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        move_over(Path(file.name), path)


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
