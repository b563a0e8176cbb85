"""The ``remuda`` command.

Start-up is kept light: this package imports nothing heavy, the version is answered without the command-line library,
and every command imports what it needs when it runs. An error of ours ends the command with its one sentence and exit
code 1, or with the code that the error has of its own; what cannot be understood is code 2, and Ctrl-C, where no
command hears it itself, the shell's own 130. Anything else is a defect and keeps its traceback.
"""

import sys
from collections.abc import Sequence

from remuda.kernel.errors import RemudaError

__all__ = ["main"]

_FAILED, _MISUNDERSTOOD, _INTERRUPTED = 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default the process's own, and return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _version() if words == ["--version"] else _command(words)
    except RemudaError as error:
        print(error.sentence, file=sys.stderr)  # noqa: T201  a command line prints
        return int(getattr(error, "exit_code", _FAILED))
    except KeyboardInterrupt:
        return _INTERRUPTED


def _version() -> int:
    from remuda.cli.output import say  # noqa: PLC0415  start-up stays light
    from remuda.version import describe  # noqa: PLC0415  same

    say(str(describe()))
    return 0


def _command(words: list[str]) -> int:
    from cyclopts import CycloptsError  # noqa: PLC0415  importing cyclopts takes longer than printing the version

    from remuda.cli.app import build_app  # noqa: PLC0415  same
    from remuda.cli.mistakes import explain  # noqa: PLC0415  same

    app = build_app(words)
    try:
        code: int = app(
            words, result_action="return_int_as_exit_code_else_zero", exit_on_error=False, print_error=False
        )
    except CycloptsError as error:
        print(explain(error), file=sys.stderr)  # noqa: T201  a command line prints
        return _MISUNDERSTOOD
    return code
