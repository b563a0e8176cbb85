"""``remuda config``: the configuration in effect, and whether it can be used."""

import os
import sys
from pathlib import Path

from remuda.cli.output import say
from remuda.cli.output import show as write
from remuda.config import settings as effect
from remuda.config.loader import LoadedConfiguration, Misconfigured, load
from remuda.config.show import as_toml


def loaded(config: Path | None, data: Path | None, listen: str | None) -> LoadedConfiguration:
    """Return the configuration that a command line asks for."""
    flags = {"server.data": None if data is None else str(data), "server.listen": listen}
    return load(os.environ, file=config, flags=flags)


def show(*, config: Path | None = None, data: Path | None = None, listen: str | None = None) -> None:
    """Print the configuration in effect as TOML, with what each setting means and where its value comes from.

    Secrets are not shown.

    Parameters
    ----------
    config
        The TOML file; by default remuda.toml in the data directory, if it is there.
    data
        The data directory, as for remuda up.
    listen
        HOST:PORT, as for remuda up.

    """
    write(as_toml(loaded(config, data, listen)))


def check(*, config: Path | None = None, data: Path | None = None, listen: str | None = None) -> int:
    """Say whether the configuration can be used, and if not, everything that is wrong with it.

    Parameters
    ----------
    config
        The TOML file; by default remuda.toml in the data directory, if it is there.
    data
        The data directory, as for remuda up.
    listen
        HOST:PORT, as for remuda up.

    """
    try:
        found = loaded(config, data, listen)
        effect.check(found.configuration)
    except Misconfigured as error:
        print(*error.problems, sep="\n", file=sys.stderr)  # noqa: T201  a command line prints
        return 1
    say(f"The configuration is good. The file: {found.file or 'none was read'}.")
    return 0
