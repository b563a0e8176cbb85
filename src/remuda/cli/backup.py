"""``remuda backup``: a copy of the store, while a process runs and while none does."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from remuda.cli.commands.config import loaded
from remuda.cli.output import say
from remuda.datadir import DataDirectory
from remuda.kernel.errors import Invalid, StoreDamaged
from remuda.kernel.files import write_private
from remuda.kernel.sealing import load_keyring
from remuda.store.sqlite.backup import inspected

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
