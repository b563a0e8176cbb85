"""Online backup: a consistent copy of the file while the store goes on.

The copy is one snapshot, compact, and appears under its name only when it is complete and on disk. Secrets in it are
sealed, so without the key file it shows none.
"""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import apsw

from remuda.kernel.errors import Invalid
from remuda.store.readside.storage import storage_error
from remuda.store.sqlite.executor import Lane, run_in
from remuda.store.sqlite.file import OpenFile


async def back_up(file: OpenFile, lane: Lane, target: Path) -> None:
    """Write a copy of the store to `target`, which must not exist yet."""
    await run_in(lane, lambda: copy_store(file.connect, target))


def copy_store(connect: Callable[[], apsw.Connection], target: Path) -> None:
    """Write a copy of the store that `connect` opens to `target`, which must not exist yet."""
    if target.exists():
        raise Invalid("The backup", f"would overwrite {target}", remedy="choose a name that is not taken")
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        _write(connect, unfinished)
        unfinished.rename(target)
        _flush(target.parent)
    except (apsw.Error, OSError) as error:
        raise storage_error(str(target), error) from None
    finally:
        unfinished.unlink(missing_ok=True)


def _write(connect: Callable[[], apsw.Connection], path: Path) -> None:
    path.unlink(missing_ok=True)
    path.touch(mode=0o600, exist_ok=False)  # before anything is in it: nobody else may read it meanwhile
    with contextlib.closing(connect()) as connection:
        connection.execute("VACUUM INTO ?", (str(path),))
    _flush(path)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
