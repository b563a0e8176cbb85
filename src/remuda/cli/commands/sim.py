"""``remuda sim``: what happens in a simulated cloud without our asking.

The commands work on the clouds' own files, `clouds/NAME.db` in the data directory, whether or not a process has them
open: they are for whoever wants to see how a Remuda takes it.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from remuda.cli.commands.config import loaded
from remuda.cli.output import say, show
from remuda.datadir import DataDirectory
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import Invalid, NotFound, Unusable
from remuda.providers.contract.common import NoCapacity, WrongState, id_in
from remuda.providers.contract.servers import CloudServer
from remuda.providers.simulated.operator import Operator, open_operator

_HEADINGS: tuple[str, ...] = ("CLOUD", "SERVER", "HOSTNAME", "STATE", "HOST", "FAULT")
_LOOK = "look with remuda sim list"
_STILL: Mapping[str, str] = {
    "stopped": "is stopped already: start it before its power can be cut again",
    "failed": "has failed and has no power to cut: have it rebuilt or removed",
    "removing": f"is being removed: choose another, {_LOOK}",
}
"""Why nothing can be done to a server in a state that does not pass, and what can be done about it."""


def list(*, cloud: str | None = None, data: Path | None = None, config: Path | None = None) -> None:  # noqa: A001  the command's name
    """Print the servers that the simulated clouds have, whether or not our store knows of them.

    Parameters
    ----------
    cloud
        The name of one cloud; by default all.
    data
        The data directory, as for remuda up.
    config
        The configuration, as for remuda up.

    """
    rows = [_HEADINGS]
    for path in _files(cloud, data, config):
        with open_operator(path, SystemClock()) as operator:
            rows.extend(_row(path, operator, server) for server in operator.servers())
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    show("".join(f"{line}\n" for line in lines))


def stop(server: str, /, *, cloud: str | None = None, data: Path | None = None, config: Path | None = None) -> None:
    """Cut the power of a server.

    Parameters
    ----------
    server
        The server's id, its id or name in the cloud, or its host name.
    cloud
        The name of the cloud, if more than one has such a server.
    data
        The data directory, as for remuda up.
    config
        The configuration, as for remuda up.

    """
    _act(server, _files(cloud, data, config), lambda operator: operator.stop(server), "is stopped")


def fail(
    server: str,
    /,
    *,
    why: str = "the host died",
    cloud: str | None = None,
    data: Path | None = None,
    config: Path | None = None,
) -> None:
    """Break a server.

    Parameters
    ----------
    server
        The server's id, its id or name in the cloud, or its host name.
    why
        What the cloud gives as the reason.
    cloud
        The name of the cloud, if more than one has such a server.
    data
        The data directory, as for remuda up.
    config
        The configuration, as for remuda up.

    """
    _act(server, _files(cloud, data, config), lambda operator: operator.fail(server, why), "has failed")


def migrate(server: str, /, *, cloud: str | None = None, data: Path | None = None, config: Path | None = None) -> None:
    """Have a server run on another host.

    Parameters
    ----------
    server
        The server's id, its id or name in the cloud, or its host name.
    cloud
        The name of the cloud, if more than one has such a server.
    data
        The data directory, as for remuda up.
    config
        The configuration, as for remuda up.

    """
    _act(server, _files(cloud, data, config), lambda operator: operator.migrate(server), "runs on another host")


def vanish(server: str, /, *, cloud: str | None = None, data: Path | None = None, config: Path | None = None) -> None:
    """Have a server be gone, as if it had never been.

    Parameters
    ----------
    server
        The server's id, its id or name in the cloud, or its host name.
    cloud
        The name of the cloud, if more than one has such a server.
    data
        The data directory, as for remuda up.
    config
        The configuration, as for remuda up.

    """
    _act(server, _files(cloud, data, config), lambda operator: operator.vanish(server), "is gone")


def _files(cloud: str | None, data: Path | None, config: Path | None) -> Iterator[Path]:
    """Yield the files of the clouds that are meant."""
    directory = DataDirectory(loaded(config, data, None).configuration.server.data)
    found = sorted(directory.clouds.glob("*.db"))
    if not found:
        remedy = "name the directory that remuda up was given"
        raise Invalid("--data", f"{directory.path} holds no simulated cloud", remedy=remedy)
    if cloud is not None and cloud not in [path.stem for path in found]:
        remedy = f"use one of {', '.join(path.stem for path in found)}"
        raise Invalid("--cloud", "names no simulated cloud that is there", remedy=remedy)
    yield from (path for path in found if cloud in {None, path.stem})


def _act(server: str, files: Iterator[Path], act: Callable[[Operator], object], done: str) -> None:
    meant = [*files]
    having = [path for path in meant if _has(path, server)]
    if not having:
        clouds = " or ".join(path.stem for path in meant)
        raise Unusable(f"There is no server {server} in {clouds}: {_LOOK}, and check --cloud and --data.")
    if len(having) > 1:
        remedy = f"say which with --cloud: {', '.join(path.stem for path in having)}"
        raise Invalid(f"The name {server}", "is that of servers in several clouds", remedy=remedy)
    named = f"The server {server} of {having[0].stem}"
    try:
        with open_operator(having[0], SystemClock()) as operator:
            act(operator)
    except WrongState as error:
        why = _STILL.get(error.state, f"is {error.state}: wait until it runs, {_LOOK}")
        raise Unusable(f"{named} {why}.") from None
    except NoCapacity:
        raise Unusable(f"{named} stays where it is, as no other host has room for it: remove something.") from None
    say(f"{named} {done}.")


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
