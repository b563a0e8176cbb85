"""Online backup: a consistent copy of the file while the store goes on.

The copy is one snapshot, compact, and appears under its name only when it is complete and on disk. Secrets in it are
sealed, so without the key file it shows none.
"""

import os
from pathlib import Path

from remuda.kernel.errors import Invalid
from remuda.store.sqlite.file import OpenFile
from remuda.store.sqlite.lanes import Lane, run_in

__all__ = ["back_up"]


async def back_up(file: OpenFile, lane: Lane, target: Path) -> None:
    """Write a copy of the store to `target`, which must not exist yet."""
    await run_in(lane, lambda: _copy(file, target))


def _copy(file: OpenFile, target: Path) -> None:
    if target.exists():
        raise Invalid("the backup", f"would overwrite {target}", remedy="choose a name that is not taken")
    unfinished = target.with_name(f".{target.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    connection = file.connect()
    try:
        connection.execute("VACUUM INTO ?", (str(unfinished),))
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    finally:
        connection.close()
    _flush(unfinished)
    unfinished.chmod(0o600)
    unfinished.rename(target)
    _flush(target.parent)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
