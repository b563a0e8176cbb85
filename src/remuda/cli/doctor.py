"""``remuda doctor``: whether everything on this machine is as it should be."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from remuda.cli.commands.config import loaded
from remuda.cli.commands.doctor import examine
from remuda.cli.findings import as_json, as_text, worst
from remuda.cli.output import show
from remuda.kernel.clock import SystemClock


def doctor(
    *,
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
    data: Path | None = None,
    listen: str | None = None,
    config: Path | None = None,
) -> int:
    """Look whether everything on this machine is as it should be, and change nothing.

    It works while a process runs and while none does: the release, the directory and its keys, the disk, the clock,
    whether the store is whole, and what waits for an operator in it. The exit code is 1 if somebody has to act.

    Parameters
    ----------
    output
        How to print it: text for people, json for programs.
    data
        The data directory, as for remuda up.
    listen
        HOST:PORT, as for remuda up.
    config
        The configuration, as for remuda up.

    """
    findings = list(examine(loaded(config, data, listen), SystemClock()))
    show(as_json(findings) if output == "json" else as_text(findings))
    return 1 if worst(findings) == "bad" else 0
