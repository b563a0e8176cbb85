"""The ``remuda`` command.

Start-up is kept light: this package imports nothing heavy, the version is answered without the command-line library,
and every command imports what it needs when it runs. An error of ours ends the command with its one sentence and exit
code 1; anything else is a defect and keeps its traceback.
"""

import sys
from collections.abc import Sequence

from remuda.kernel.errors import RemudaError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default the process's own, and return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _version() if words == ["--version"] else _command(words)
    except RemudaError as error:
        print(error.sentence, file=sys.stderr)  # noqa: T201  a command line prints
        return 1


def _version() -> int:
    from remuda.version import describe  # noqa: PLC0415  start-up stays light

    print(describe())  # noqa: T201  a command line prints
    return 0


def _command(words: list[str]) -> int:
    from remuda.cli.app import build_app  # noqa: PLC0415  importing cyclopts takes longer than printing the version

    code: int = build_app(words)(words, result_action="return_int_as_exit_code_else_zero")
    return code
