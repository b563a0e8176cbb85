"""Commands ``remuda backup`` and ``remuda restore``.

A backup is a consistent copy of the store, whether or not a process runs. A restore needs the store's lock. The copy is
staged beside the store, verified, and opened with the keys before anything else is changed. It replaces the store in
one step, so a crash leaves the old store or the new one. Keys are replaced just before, and the old ones are kept:
after a crash in between, the command is run again.
"""

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
from remuda.cli.commands.config import load_configuration
from remuda.cli.options import ConfigOption, DataOption
from remuda.cli.output import echo
from remuda.datadir import DataDirectory
from remuda.identity.kinds.tokens import SigningKey
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import Invalid, NotFound, StoreDamaged, Unsealable
from remuda.kernel.files import check_format, move_over, write_private
from remuda.kernel.sealing import Sealer, load_keyring, write_keyring_file
from remuda.store.sqlite.backup import inspected
from remuda.store.sqlite.file import take_lock
from remuda.store.sqlite.store import open_store

_DONE = "The backup {file} of {store} is complete and verified."
_KEYS_APART = "It does not contain the keys: keep a copy of {keys} elsewhere, or its secrets cannot be decrypted."
_KEYS_TOO = "The keys are in {beside}: store them elsewhere, because both together reveal every secret."


def backup(
    file: Path,
    /,
    *,
    with_keys: Annotated[bool, Parameter(negative=())] = False,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Write a consistent copy of the store to a new file.

    It works while a process runs. Simulated clouds are not part of it, nor are the keys, without which its secrets
    cannot be decrypted.

    Example::

        remuda backup /backups/remuda.db --data ./data

    :param file: File to write.
    :param with_keys: Copy the keys too, to FILE.keys.json.
    """
    directory = DataDirectory(load_configuration(config, data, None).configuration.server.data)
    if not directory.store.exists():
        remedy = "name the data directory of remuda up"
        raise Invalid("--data", f"{directory.path} has no store", remedy=remedy)
    directory.check_store()
    if not file.parent.is_dir():
        raise Invalid("FILE", f"{file.parent} does not exist", remedy="create the directory first")
    beside = keys_beside(file)
    if with_keys:
        load_keyring(directory.keys)
        if beside.exists():
            raise Invalid("FILE", f"{beside} exists", remedy="choose another name")
    _copy(directory.store, file)
    if with_keys:
        _copy_keys(directory.keys, beside)
    about_keys = _KEYS_TOO if with_keys else _KEYS_APART
    echo(_DONE.format(file=file, store=directory.store))
    echo(about_keys.format(keys=directory.keys, beside=beside))


def keys_beside(file: Path) -> Path:
    return file.with_name(f"{file.name}.keys.json")


def _copy(store: Path, file: Path) -> None:
    """Copy a store and verify the copy. A damaged copy is deleted: the store is damaged, too."""
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
"""Suffixes of SQLite's files beside a database that is open or was not closed."""


async def restore(
    file: Path,
    /,
    *,
    keys: Path | None = None,
    move_aside: Annotated[bool, Parameter(negative=())] = False,
    data: DataOption = None,
    config: ConfigOption = None,
) -> None:
    """Replace the store with a backup, while no process runs.

    Nothing is changed before the backup was verified and opened with the keys.

    Example::

        remuda restore /backups/remuda.db --data ./data --move-aside

    :param file: File that remuda backup wrote.
    :param keys: Read the keys of the backup from this file, if they are not in the data directory.
    :param move_aside: Keep the present store under another name.
    """
    _check_is_backup(file)
    directory = DataDirectory(load_configuration(config, data, None).configuration.server.data)
    with _writing(directory.path), _locked(directory):
        if directory.store.exists() and not move_aside:
            remedy = "add --move-aside to keep it under another name, or name another directory"
            raise Invalid("--data", f"{directory.path} already has a store", remedy=remedy)
        found = keys or directory.keys
        sealer = _sealer(found)
        with _staged(file, directory) as staged:
            await _check(staged, sealer)
            aside = _set_aside(directory) if directory.store.exists() else None
            _take_keys(found, directory)
            directory.forget_reseal()
            move_over(staged, directory.store)
    kept = "" if aside is None else f" The previous store is now {aside}."
    echo(f"{directory.store} was restored from {file}.{kept} Start it with {_start(data, config)}.")


def _start(data: Path | None, config: Path | None) -> str:
    """Return the command that starts a process in the same directory."""
    options = {"--data": data, "--config": config}
    return shlex.join(["remuda", "up", *(word for name, path in options.items() if path for word in (name, str(path)))])


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Create a directory if it does not exist, and raise Invalid for files that cannot be written in the block."""
    try:
        path.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        yield
    except OSError as error:
        problem = f"{path} cannot be written to ({error.strerror or type(error).__name__})"
        raise Invalid("--data", problem, remedy="check the directory and its permissions") from None


@contextmanager
def _locked(directory: DataDirectory) -> Iterator[None]:
    """Hold the lock of the store during the block, or raise StoreLocked if a process has it."""
    lock = take_lock(directory.store)
    try:
        yield
    finally:
        os.close(lock)


def _sealer(keys: Path) -> Sealer:
    if not keys.exists():
        remedy = "name the file with the keys of the backup"
        raise Invalid("--keys", f"is required, because {keys} does not exist", remedy=remedy)
    return Sealer(load_keyring(keys))


@contextmanager
def _staged(file: Path, directory: DataDirectory) -> Iterator[Path]:
    """Copy the backup to a file beside the store, which is removed after the block."""
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


def _check_is_backup(file: Path) -> None:
    if not file.is_file():
        raise NotFound("backup", str(file))
    check_format(file)


async def _check(staged: Path, sealer: Sealer) -> None:
    """Open the copy as a process would and decrypt a secret, so that wrong keys are found now."""
    store = open_store(staged, registry(), sealer)
    try:
        await store.list(SigningKey, limit=1)
    except Unsealable:
        remedy = "name the keys of the backup with --keys"
        raise Invalid("The keys", "do not decrypt the secrets in the backup", remedy=remedy) from None
    finally:
        await store.close()


def _set_aside(directory: DataDirectory) -> Path:
    """Link the present store under a second name, and return that name.

    Files that a crash left beside it must not be taken for those of the new store: they are merged into the present one
    or, if it is damaged, renamed too.
    """
    store = directory.store
    with contextlib.suppress(apsw.Error), contextlib.closing(apsw.Connection(str(store))) as connection:
        connection.pragma("user_version")  # a read, because SQLite looks for the log beside the file with it
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    aside = _unused(store)
    for suffix in _PARTS:
        part = store.with_name(f"{store.name}{suffix}")
        if part.exists():
            part.rename(aside.with_name(f"{aside.name}{suffix}"))
    aside.hardlink_to(store)
    return aside


def _take_keys(found: Path, directory: DataDirectory) -> None:
    """Add the keys of the backup to those of the directory, whose clouds need theirs. The present file is kept.

    If the directory belonged to another system, as its root shows, the keys of the backup come first.
    """
    if not directory.keys.exists():
        write_private(directory.keys, found.read_bytes())
        return
    present, restored = load_keyring(directory.keys), load_keyring(found)
    if {key.id for key in restored.keys} <= {key.id for key in present.keys} and present.root == restored.root:
        return
    _unused(directory.keys).hardlink_to(directory.keys)
    first, second = (present, restored) if present.root == restored.root else (restored, present)
    write_keyring_file(directory.keys, first.with_previous(second))


def _unused(path: Path) -> Path:
    now = SystemClock().now()
    return path.with_name(f"{path.name}.before-{now:%Y%m%dT%H%M%S.%fZ}")
