"""``remuda restore``: a store from a backup, into a data directory that no process uses.

The copy is laid beside the place where it will be, looked through, and opened with the keys before anything else is
touched. It takes its place in one step: a crash leaves the store that was there, or the new one. Keys that take the
place of others do so just before, and the others are kept: after a crash in between, the command is run again.

``remuda backup``: a copy of the store, while a process runs and while none does.
"""

import asyncio
import contextlib
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import apsw
from cyclopts import Parameter

from remuda.app import registry
from remuda.cli.commands.config import loaded
from remuda.cli.output import say
from remuda.datadir import DataDirectory
from remuda.identity.kinds.tokens import SigningKey
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import Invalid, NotFound, StoreDamaged, Unsealable
from remuda.kernel.files import check_format, move_over, write_private
from remuda.kernel.sealing import Sealer, load_keyring
from remuda.store.sqlite.backup import inspected
from remuda.store.sqlite.file import take_lock
from remuda.store.sqlite.store import open_store

_DONE = "{file} is a copy of {store}, looked through and whole."
_KEYS_APART = "It has no keys: without a copy of {keys}, kept in another place, its secrets open nowhere."
_KEYS_TOO = "The keys are in {beside}: keep them in another place, for who has both can read every secret."


def backup(
    file: Path,
    /,
    *,
    with_keys: Annotated[bool, Parameter(negative=())] = False,
    data: Path | None = None,
    config: Path | None = None,
) -> None:
    """Write a copy of the store to a file that is not there yet.

    The copy is one moment of the store, also while a process writes to it. Simulated clouds are not in it, as no cloud
    is; nor are the keys, without which its secrets cannot be read.

    Parameters
    ----------
    file
        Where to write the copy to.
    with_keys
        Copy the keys, too, to FILE.keys.json.
    data
        The data directory, as for remuda up.
    config
        The configuration, as for remuda up.

    """
    directory = DataDirectory(loaded(config, data, None).configuration.server.data)
    if not directory.store.exists():
        remedy = "name the directory that remuda up was given"
        raise Invalid("--data", f"{directory.path} holds no store", remedy=remedy)
    directory.check_store()
    if not file.parent.is_dir():
        raise Invalid("The backup", f"would be in {file.parent}, which is not there", remedy="make it first")
    beside = keys_beside(file)
    if with_keys:
        load_keyring(directory.keys)
        if beside.exists():
            raise Invalid("The backup", f"would overwrite {beside}", remedy="choose a name that is not taken")
    _copy(directory.store, file)
    if with_keys:
        _copy_keys(directory.keys, beside)
    apart = _KEYS_TOO if with_keys else _KEYS_APART
    say(_DONE.format(file=file, store=directory.store))
    say(apart.format(keys=directory.keys, beside=beside))


def keys_beside(file: Path) -> Path:
    """Return where the keys of a backup are, if they were copied, too."""
    return file.with_name(f"{file.name}.keys.json")


def _copy(store: Path, file: Path) -> None:
    """Copy a store and look through the copy: one that is damaged is worse than none, and so is the store then."""
    try:
        with inspected(store) as found:
            found.copy(file)
        with inspected(file) as copy:
            damage = copy.damage()
    except StoreDamaged as error:
        raise StoreDamaged(str(store), error.cause) from None
    if damage:
        file.unlink()
        raise StoreDamaged(str(store), damage)


def _copy_keys(keys: Path, target: Path) -> None:
    try:
        write_private(target, keys.read_bytes())
    except OSError as error:
        cause = error.strerror or type(error).__name__
        raise Invalid(
            str(target), f"cannot be written ({cause})", remedy="check the path and its permissions"
        ) from None


_PRIVATE = 0o700
_PARTS = ("-wal", "-shm")
"""What SQLite has beside a file while it is open, and after a crash."""


def restore(
    file: Path,
    /,
    *,
    keys: Path | None = None,
    move_aside: Annotated[bool, Parameter(negative=())] = False,
    data: Path | None = None,
    config: Path | None = None,
) -> None:
    """Put a backup in the place of the store, while no process runs.

    Nothing is changed before the backup has been looked through and opened with the keys.

    Parameters
    ----------
    file
        The backup, as remuda backup wrote it.
    keys
        The file with the keys of that time, if they are not in the data directory.
    move_aside
        Keep the store that is there under another name, and take its place.
    data
        The data directory, as for remuda up. It is made if it is not there.
    config
        The configuration, as for remuda up.

    """
    if not file.is_file():
        raise NotFound("backup", str(file))
    check_format(file)
    directory = DataDirectory(loaded(config, data, None).configuration.server.data)
    with _writing(directory.path), _locked(directory):
        if directory.store.exists() and not move_aside:
            remedy = "add --move-aside to keep it under another name, or name another directory"
            raise Invalid("--data", f"{directory.path} holds a store already", remedy=remedy)
        found = keys or directory.keys
        sealer = _sealer(found)
        with _staged(file, directory) as staged:
            asyncio.run(_check(staged, sealer))
            aside = _set_aside(directory) if directory.store.exists() else None
            _take_keys(found, directory)
            move_over(staged, directory.store)
    kept = "" if aside is None else f" What was there is now {aside}."
    say(f"{directory.store} is what {file} was.{kept} Start it with {_start(data, config)}.")


def _start(data: Path | None, config: Path | None) -> str:
    """Return the command that starts a process in the same directory."""
    said = {"--data": data, "--config": config}
    return shlex.join(["remuda", "up", *(word for name, path in said.items() if path for word in (name, str(path)))])


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Make a directory if it is not there; what cannot be written in it is told in a sentence."""
    try:
        path.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        yield
    except OSError as error:
        problem = f"{path} cannot be written to ({error.strerror or type(error).__name__})"
        raise Invalid("--data", problem, remedy="check the directory and its permissions") from None


@contextmanager
def _locked(directory: DataDirectory) -> Iterator[None]:
    """Keep processes away while the block runs, or raise StoreLocked if one is there."""
    lock = take_lock(directory.store)
    try:
        yield
    finally:
        os.close(lock)


def _sealer(keys: Path) -> Sealer:
    if not keys.exists():
        remedy = "name the file with the keys that its secrets were sealed with"
        raise Invalid("--keys", f"is needed, because {keys} is not there", remedy=remedy)
    return Sealer(load_keyring(keys))


@contextmanager
def _staged(file: Path, directory: DataDirectory) -> Iterator[Path]:
    """Lay a copy of the backup beside the store's place; what is left of it in the end is removed."""
    staged = directory.path / ".remuda.db.restoring"
    _remove(staged)
    try:
        with inspected(file) as backup:
            damage = backup.damage()
            if damage:
                raise StoreDamaged(str(file), damage)
            backup.copy(staged)
        yield staged
    finally:
        _remove(staged)


def _remove(staged: Path) -> None:
    for suffix in ("", *_PARTS, ".lock"):
        staged.with_name(f"{staged.name}{suffix}").unlink(missing_ok=True)


async def _check(staged: Path, sealer: Sealer) -> None:
    """Open the copy as a process would, and a secret in it: keys that do not fit are found out here, and not later."""
    store = open_store(staged, registry(), sealer)
    try:
        await store.list(SigningKey, limit=1)
    except Unsealable:
        remedy = "name the keys of the time of the backup with --keys"
        raise Invalid("The keys", "do not open the secrets in the backup", remedy=remedy) from None
    finally:
        await store.close()


def _set_aside(directory: DataDirectory) -> Path:
    """Give the store that is there another name as well, and return that. It keeps its own until it is replaced.

    What a crash left beside it must not meet the new one: it is moved into the file, or where that is damaged, aside.
    """
    store = directory.store
    with contextlib.suppress(apsw.Error), contextlib.closing(apsw.Connection(str(store))) as connection:
        connection.pragma("user_version")  # before it has read anything it does not know of a log beside the file
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    aside = _unused(store)
    for suffix in _PARTS:
        part = store.with_name(f"{store.name}{suffix}")
        if part.exists():
            part.rename(aside.with_name(f"{aside.name}{suffix}"))
    aside.hardlink_to(store)
    return aside


def _take_keys(found: Path, directory: DataDirectory) -> None:
    """Put keys into the directory. Others that are there are kept under another name: they open what they sealed."""
    content = found.read_bytes()
    if directory.keys.exists():
        if directory.keys.read_bytes() == content:
            return
        _unused(directory.keys).hardlink_to(directory.keys)
    write_private(directory.keys, content)


def _unused(path: Path) -> Path:
    now = SystemClock().now()
    return path.with_name(f"{path.name}.before-{now:%Y%m%dT%H%M%S.%fZ}")
