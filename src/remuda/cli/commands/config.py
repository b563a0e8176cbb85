"""Commands ``remuda config``: print and check the effective configuration."""

import os
import sys
from pathlib import Path

from remuda.cli.options import ConfigOption, DataOption
from remuda.cli.output import echo, write
from remuda.config import settings
from remuda.config.loader import LoadedConfiguration, Misconfigured, load
from remuda.config.show import as_toml


def load_configuration(
    config: Path | None, data: Path | None, listen: str | None, **flags: str | None
) -> LoadedConfiguration:
    """Return the configuration with the options of a command, by setting; those without a dot are of the server."""
    flags = {name if "." in name else f"server.{name}": value for name, value in flags.items()}
    flags |= {"server.data": None if data is None else str(data), "server.listen": listen}
    return load(os.environ, file=config, flags=flags)


def show(*, config: ConfigOption = None, data: DataOption = None, listen: str | None = None) -> None:
    """Print the effective configuration as TOML, with the origin of each value and without secrets.

    Example::

        remuda config show --data /var/lib/remuda

    :param listen: Listen on this HOST:PORT, as for remuda up.
    """
    write(as_toml(load_configuration(config, data, listen)))


def check(*, config: ConfigOption = None, data: DataOption = None, listen: str | None = None) -> int:
    """Check the configuration and print every problem.

    Example::

        remuda config check --config remuda.toml

    :param listen: Listen on this HOST:PORT, as for remuda up.
    """
    try:
        found = load_configuration(config, data, listen)
        settings.check(found.configuration)
    except Misconfigured as error:
        print(*error.problems, sep="\n", file=sys.stderr)  # noqa: T201  a command line prints
        return 1
    echo(f"The configuration is valid. File: {found.file or 'none'}.")
    return 0
