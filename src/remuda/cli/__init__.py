"""Command-line interface ``remuda``.

Start-up is light: this package imports nothing heavy, the version is printed without the command-line library, and each
command imports what it needs. An error of ours ends the command with its message and exit code 1, or the error's own
code. A usage error is exit code 2, and Ctrl-C 130, as in a shell. Any other exception is a defect and keeps its
traceback.
"""

import atexit
import gc
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from remuda.kernel.errors import RemudaError

_FAILED, _USAGE, _INTERRUPTED = 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, by default that of the process, and return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _escape_unencodable_output()
    if (invalid := _invalid_text(words)) is not None:
        return _usage_error(f"The argument {invalid} is not valid UTF-8: correct it, or check what produced it.")
    try:
        return _version() if words == ["--version"] else _command(words)
    except RemudaError as error:
        print(error.message, file=sys.stderr)  # noqa: T201  a command line prints
        return int(getattr(error, "exit_code", _FAILED))
    except KeyboardInterrupt:
        return _INTERRUPTED


def _escape_unencodable_output() -> None:
    """Print characters that a stream cannot encode as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError):  # a replaced stream may not know its position
                stream.reconfigure(errors="backslashreplace")


def _invalid_text(words: Sequence[str]) -> str | None:
    """Return the first word that is not valid text, with escapes. Python has surrogates for its invalid bytes."""
    for word in words:
        raw = word.encode(errors="surrogateescape")
        if word != (shown := raw.decode(errors="backslashreplace")):
            return shown
    return None


def _usage_error(message: str) -> int:
    print(message, file=sys.stderr)  # noqa: T201  a command line prints
    return _USAGE


def _version() -> int:
    from remuda.cli.output import echo  # noqa: PLC0415  start-up stays light
    from remuda.version import describe  # noqa: PLC0415  same

    echo(str(describe()))
    return 0


@contextmanager
def _without_collection() -> Iterator[None]:
    """Run the block without garbage collection: imports create many objects, and nearly all of them stay."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _command(words: list[str]) -> int:
    from inspect import iscoroutine  # noqa: PLC0415  start-up stays light

    with _without_collection():
        from cyclopts import App, CycloptsError  # noqa: PLC0415  it takes longer to import than printing the version

        from remuda.cli.app import build_app, usage_message  # noqa: PLC0415  same
        from remuda.cli.output import library_output  # noqa: PLC0415  same

    result: Any = None
    atexit.register(gc.freeze)  # or the collection at exit would visit every object
    try:
        with _without_collection():
            command, bound, _ = build_app(words).parse_args(words, exit_on_error=False, print_error=False)
        is_of_cyclopts = isinstance(getattr(command, "__self__", None), App)
        with library_output() if is_of_cyclopts else nullcontext():
            result = command(*bound.args, **bound.kwargs)
    except CycloptsError as error:
        return _usage_error(usage_message(error))
    if iscoroutine(result):
        import asyncio  # noqa: PLC0415  help is printed without it

        result = asyncio.run(result)
    return result or 0
