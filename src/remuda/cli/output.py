"""What a command prints. Where stdout cannot be written to, it is one sentence like every other failure."""

import os
import shutil
import sys

from remuda.kernel.errors import Unusable

__all__ = ["note", "room", "say", "show"]


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
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it ends
    except OSError as error:
        raise _unwritable(error) from None


def note(text: str, *, end: str = "\n") -> None:
    """Print on stderr what is for whoever sits there, and not for whoever reads stdout."""
    print(text, end=end, file=sys.stderr, flush=True)  # noqa: T201  same


def room() -> int | None:
    """Return how many letters fit into a line, where somebody reads along; a program gets lines as they are."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _unwritable(error: OSError) -> Unusable:
    cause = error.strerror or str(error)
    return Unusable(f"The terminal cannot be written to ({cause}): let stdout go where it can be read.")
