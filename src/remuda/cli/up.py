"""``remuda up``: everything in one process, on one file."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import uvloop
from cyclopts import Parameter

from remuda.http.edge.server import Address
from remuda.kernel.errors import Invalid
from remuda.process import Settings, run

__all__ = ["up"]


def up(
    *,
    data: Annotated[Path | None, Parameter(env_var="REMUDA_DATA")] = None,
    listen: Annotated[str, Parameter(env_var="REMUDA_LISTEN")] = "127.0.0.1:8080",
) -> None:
    """Run everything in one process until it is told to stop, by Ctrl-C or SIGTERM.

    The log goes to stderr, one JSON object a line.

    Parameters
    ----------
    data
        The directory that holds everything: the store and its keys. It is made if it is not there.
        By default $XDG_DATA_HOME/remuda, which is ~/.local/share/remuda unless set otherwise.
    listen
        HOST:PORT to answer on. Port 0 takes one that is free.

    """
    settings = Settings(data=data or _default_data(), listen=Address.parse(listen))

    def announce(address: Address) -> None:
        where = f"http://{address} (data in {settings.data.resolve()})"
        print(f"Remuda is ready at {where}. Stop it with Ctrl-C.", flush=True)  # noqa: T201  a command line prints

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(settings, announce=announce))


def _default_data() -> Path:
    base = os.environ.get("XDG_DATA_HOME")
    if base:
        return Path(base) / "remuda"
    try:
        return Path.home() / ".local" / "share" / "remuda"
    except RuntimeError:
        raise Invalid("--data", "is not given, and there is no home directory", remedy="name a directory") from None
