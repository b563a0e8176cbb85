"""What a command prints. Where stdout cannot be written to, it is one sentence like every other failure."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from remuda.kernel.errors import Unusable


def say(text: str, *, end: str = "\n") -> None:
    """Print what somebody has to hear, now."""
    try:
        print(text, end=end, flush=True)  # noqa: T201  a command line prints
    except OSError as error:
        raise _unwritable(error) from None


def show(text: str) -> None:
    """Print a document as it is. Whoever stops reading it (`| head`) has what they wanted."""
    try:
        print(text, end="", flush=True)  # noqa: T201  same
    except BrokenPipeError:
        _write_no_more()
    except OSError as error:
        raise _unwritable(error) from None


@contextmanager
def shown() -> Iterator[None]:
    """Have what cyclopts prints, help and versions, end as what `show` does."""
    try:
        yield
    except SystemExit:
        return  # how rich tells that nobody reads on
    except OSError as error:
        raise _unwritable(error) from None


def note(text: str, *, end: str = "\n") -> None:
    """Print on stderr what is for whoever sits there, and not for whoever reads stdout."""
    print(text, end=end, file=sys.stderr, flush=True)  # noqa: T201  same


def room() -> int | None:
    """Return how many letters fit into a line, where somebody reads along; a program gets lines as they are."""
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether somebody sits at the other end; of a stream that was closed before we began, there is none."""
    return stream is not None and stream.isatty()


def writes_unicode() -> bool:
    """Tell whether stdout can take every letter that there is."""
    return sys.stdout is None or sys.stdout.encoding.lower().startswith("utf")


def _unwritable(error: OSError) -> Unusable:
    _write_no_more()
    cause = error.strerror or str(error)
    return Unusable(f"The terminal cannot be written to ({cause}): let stdout go where it can be read.")


def _write_no_more() -> None:
    """Let what is left go nowhere, or Python complains when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
