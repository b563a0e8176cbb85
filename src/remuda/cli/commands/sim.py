"""Commands ``remuda sim``: out-of-band changes in simulated clouds, to see how Remuda reacts.

They work on the database files of the clouds, `clouds/NAME.db` in the data directory, whether or not a process has
these open.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from remuda.cli.commands.config import load_configuration
from remuda.cli.options import ConfigOption, DataOption
from remuda.cli.output import as_table, echo, write
from remuda.datadir import DataDirectory
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import Invalid, NotFound, Unusable
from remuda.providers.contract.common import NoCapacity, WrongState, id_in
from remuda.providers.contract.servers import CloudServer
from remuda.providers.simulated.operator import Operator, open_operator

_HEADINGS = ("CLOUD", "SERVER", "HOSTNAME", "STATE", "HOST", "FAULT")
_LIST = "see remuda sim list"
_STATES: Mapping[str, str] = {
    "stopped": "is already stopped: start it first",
    "failed": "has failed: rebuild or delete it",
    "removing": f"is being deleted: choose another one, {_LIST}",
}
"""Reasons why a server in a lasting state cannot be changed, with the remedy."""
ServerArgument = Annotated[str, Parameter(help="Server, by its id, its id or name in the cloud, or its host name.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CloudOptions:
    """Options that choose a simulated cloud."""

    cloud: Annotated[str | None, Parameter(help="Look only in this simulated cloud. The default is all.")] = None
    data: DataOption = None
    config: ConfigOption = None

    def files(self) -> Iterator[Path]:
        directory = DataDirectory(load_configuration(self.config, self.data, None).configuration.server.data)
        found = sorted(directory.clouds.glob("*.db"))
        if not found:
            remedy = "name the data directory of remuda up"
            raise Invalid("--data", f"{directory.path} has no simulated cloud", remedy=remedy)
        if self.cloud is not None and self.cloud not in [path.stem for path in found]:
            remedy = f"use one of {', '.join(path.stem for path in found)}"
            raise Invalid("--cloud", f"{self.cloud} does not exist", remedy=remedy)
        yield from (path for path in found if self.cloud in {None, path.stem})


ALL_CLOUDS = CloudOptions()


def list(*, options: CloudOptions = ALL_CLOUDS) -> None:  # noqa: A001  the command's name
    """List the servers of the simulated clouds, whether or not Remuda manages them.

    Example::

        remuda sim list --data ./data
    """
    rows = []
    for path in options.files():
        with open_operator(path, SystemClock()) as operator:
            rows += [_row(path, operator, server) for server in operator.servers()]
    write(as_table(_HEADINGS, rows))


def stop(server: ServerArgument, /, *, options: CloudOptions = ALL_CLOUDS) -> None:
    """Cut the power of a server.

    Example::

        remuda sim stop web --data ./data
    """
    _apply(server, options, lambda operator: operator.stop(server), "was stopped")


def fail(server: ServerArgument, /, *, reason: str = "the host failed", options: CloudOptions = ALL_CLOUDS) -> None:
    """Put a server into the failed state.

    Example::

        remuda sim fail web --reason "disk error" --data ./data

    :param reason: Report this reason.
    """
    _apply(server, options, lambda operator: operator.fail(server, reason), "has failed")


def migrate(server: ServerArgument, /, *, options: CloudOptions = ALL_CLOUDS) -> None:
    """Move a server to another host.

    Example::

        remuda sim migrate web --data ./data
    """
    _apply(server, options, lambda operator: operator.migrate(server), "was moved to another host")


def vanish(server: ServerArgument, /, *, options: CloudOptions = ALL_CLOUDS) -> None:
    """Remove a server without an event, as if it were lost.

    Example::

        remuda sim vanish web --data ./data
    """
    _apply(server, options, lambda operator: operator.vanish(server), "was removed")


def _apply(server: str, options: CloudOptions, action: Callable[[Operator], object], result: str) -> None:
    files = [*options.files()]
    found = [path for path in files if _has(path, server)]
    if not found:
        clouds = " or ".join(path.stem for path in files)
        raise Unusable(f"The server {server} does not exist in {clouds}: {_LIST}, and check --cloud and --data.")
    if len(found) > 1:
        remedy = f"choose one with --cloud: {', '.join(path.stem for path in found)}"
        raise Invalid(f"The name {server}", "exists in several clouds", remedy=remedy)
    title = f"The server {server} of {found[0].stem}"
    try:
        with open_operator(found[0], SystemClock()) as operator:
            action(operator)
    except WrongState as error:
        reason = _STATES.get(error.state, f"is {error.state}: wait until it is running, {_LIST}")
        raise Unusable(f"{title} {reason}.") from None
    except NoCapacity:
        message = f"{title} cannot be moved, because no other host has capacity for it: delete another server first."
        raise Unusable(message) from None
    echo(f"{title} {result}.")


def _has(path: Path, server: str) -> bool:
    with open_operator(path, SystemClock()) as operator:
        try:
            operator.find(server)
        except NotFound:
            return False
        return True


def _row(path: Path, operator: Operator, server: CloudServer) -> tuple[str, ...]:
    ours = id_in(server.handle.name) or server.id
    return path.stem, ours, operator.hostname(server), server.state, server.host, server.fault
