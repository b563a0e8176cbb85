"""Commands ``remuda keys``: the keys that seal secrets. They never print a key."""

from datetime import datetime
from typing import TYPE_CHECKING

from remuda.cli.commands.config import load_configuration
from remuda.cli.options import ConfigOption, DataOption, Output
from remuda.cli.output import dump, echo, table, write
from remuda.datadir import DataDirectory
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness

if TYPE_CHECKING:  # slow to import, and not needed for help
    from remuda.app.key_rotation import KeyUse, Rotation

_HEADINGS = ("ID", "CREATED (UTC)", "AGE", "SEALED TEXTS", "USE")
_UNKNOWN = "unknown"


def list(*, output: Output = "table", data: DataOption = None, config: ConfigOption = None) -> None:  # noqa: A001  the command's name
    """List the keys that seal secrets, and what needs each of them.

    It works whether or not a process runs.

    Example::

        remuda keys list --data ./data
    """
    from remuda.app.key_rotation import key_uses  # noqa: PLC0415  slow to import, and not needed for help

    now = SystemClock().now()
    uses = key_uses(_directory(data, config))
    if output == "name":
        write("".join(f"{use.key.id}\n" for use in uses))
    elif output == "table":
        table(_HEADINGS, [_row(use, now) for use in uses], empty="")
    else:
        write(dump([_facts(use, now) for use in uses], output))


async def rotate(*, data: DataOption = None, config: ConfigOption = None) -> None:
    """Create a key, and seal everything that is stored with it, also while a process runs.

    A running process seals, and the command waits for it. If the command is interrupted, run it again: it completes
    the rotation. Earlier keys are removed when nothing needs them any more. Copy the key file afterwards, as after the
    first start.

    Example::

        remuda keys rotate --data ./data
    """
    from remuda.app import key_rotation  # noqa: PLC0415  same

    directory = _directory(data, config)
    done = await key_rotation.rotate(directory, SystemClock(), SystemRandomness())
    echo(_summary(done, directory))


def remove(key: str, /, *, data: DataOption = None, config: ConfigOption = None) -> None:
    """Remove an earlier key now, for example because others may know it.

    It is refused if anything stored needs the key. Browsers are no longer known, and clients that read a list in
    pages start over. A backup of that time then needs the copy of its keys (remuda restore --keys).

    Example::

        remuda keys remove 4f5b0c2d9e1a --data ./data

    :param key: Id of the key, as remuda keys list shows it.
    """
    from remuda.app import key_rotation  # noqa: PLC0415  same

    key_rotation.remove(_directory(data, config), key)
    echo(f"The key {key} was removed.")


def _directory(data: DataOption, config: ConfigOption) -> DataDirectory:
    return DataDirectory(load_configuration(config, data, None).configuration.server.data)


def _row(use: "KeyUse", now: datetime) -> tuple[str, ...]:
    created = use.key.created
    known = (_UNKNOWN, _UNKNOWN) if created is None else (f"{created:%Y-%m-%d %H:%M}", f"{(now - created).days}d")
    return use.key.id, *known, str(use.stored), _purpose(use, now)


def _purpose(use: "KeyUse", now: datetime) -> str:
    if use.is_current:
        return "seals"
    if use.stored and use.is_replaced:
        return "opens the history of the store, of 30 minutes"
    if use.stored:
        return "opens what is stored: run remuda keys rotate"
    until = use.kept_until
    if not use.is_needed(now):
        return "none: the next rotation removes it"
    return "opens cookies" if until is None else f"opens cookies until {until:%Y-%m-%d}"


def _facts(use: "KeyUse", now: datetime) -> dict[str, object]:
    created = use.key.created
    return {
        "id": use.key.id,
        "created": None if created is None else created.isoformat(),
        "isCurrent": use.is_current,
        "sealedTexts": use.stored,
        "isNeeded": use.is_needed(now),
    }


def _summary(done: "Rotation", directory: DataDirectory) -> str:
    key = f"The new key is {done.current.id}." if done.is_new else "The rotation that was interrupted is complete."
    texts = [key, f"{done.resealed} stored objects were sealed with {done.current.id}."]
    if done.is_beside_process:
        texts.append("The process seals with it. The history of its store keeps earlier seals for 30 minutes.")
    if done.removed:
        texts.append(f"Removed: {', '.join(done.removed)}.")
    if done.previous:
        texts.append(f"Earlier keys that open what clients keep: {', '.join(done.previous)}.")
    texts.append(f"Copy {directory.keys} to where you keep its copy, and keep the earlier copies for earlier backups.")
    return " ".join(texts)
