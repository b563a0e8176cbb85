"""The ``remuda`` command.

Start-up is kept light: this package imports nothing heavy, the version is answered without the command-line library,
and every command imports what it needs when it runs. An error of ours ends the command with its one sentence and exit
code 1, or with the code that the error has of its own; what cannot be understood is code 2, and Ctrl-C, where no
command hears it itself, the shell's own 130. Anything else is a defect and keeps its traceback.
"""

import io
import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress

from remuda.kernel.errors import RemudaError

__all__ = ["main"]

_FAILED, _MISUNDERSTOOD, _INTERRUPTED = 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default the process's own, and return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _let_every_letter_be_written()
    if (garbled := _garbled(words)) is not None:
        return _misunderstood(f"The argument {garbled} is no text in UTF-8: type it again, or look what wrote it.")
    try:
        return _version() if words == ["--version"] else _command(words)
    except RemudaError as error:
        print(error.message, file=sys.stderr)  # noqa: T201  a command line prints
        return int(getattr(error, "exit_code", _FAILED))
    except KeyboardInterrupt:
        return _INTERRUPTED


def _let_every_letter_be_written() -> None:
    """Have letters that a stream cannot write be written as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError):  # where it was put in the place of another, it may not know its position
                stream.reconfigure(errors="backslashreplace")


def _garbled(words: Sequence[str]) -> str | None:
    """Return the first word that is no text, as it can be shown: bytes that mean no letter are surrogates in it."""
    for word in words:
        raw = word.encode(errors="surrogateescape")
        if word != (shown := raw.decode(errors="backslashreplace")):
            return shown
    return None


def _misunderstood(sentence: str) -> int:
    print(sentence, file=sys.stderr)  # noqa: T201  a command line prints
    return _MISUNDERSTOOD


def _version() -> int:
    from remuda.cli.output import say  # noqa: PLC0415  start-up stays light
    from remuda.version import describe  # noqa: PLC0415  same

    say(str(describe()))
    return 0


def _command(words: list[str]) -> int:
    from cyclopts import App, CycloptsError  # noqa: PLC0415  importing cyclopts takes longer than printing the version

    from remuda.cli.app import build_app, explain  # noqa: PLC0415  same
    from remuda.cli.output import shown  # noqa: PLC0415  same

    code: int | None = None
    try:
        command, bound, _ = build_app(words).parse_args(words, exit_on_error=False, print_error=False)
        is_of_cyclopts = isinstance(getattr(command, "__self__", None), App)
        with shown() if is_of_cyclopts else nullcontext():
            code = command(*bound.args, **bound.kwargs)
    except CycloptsError as error:
        return _misunderstood(explain(error))
    return code or 0
