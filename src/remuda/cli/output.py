"""What a command prints. Where stdout cannot be written to, it is one sentence like every other failure.

How commands show what they found: tables for people, JSON, YAML and names for everybody else.

Tables that a person likes: aligned, without lines, and as wide as they have to be.

What was found, in the format that was asked for.
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, TextIO
from unicodedata import combining, east_asian_width

from remuda.kernel.errors import Unusable

Format = Literal["table", "json", "yaml", "name"]
"""How something is shown."""

_ERASE_LINE = "\r\x1b[2K"
_WITHOUT_CURSOR = {"dumb", "unknown"}
"""Values of TERM for terminals that cannot erase a line."""
_USUAL_COLUMNS = 80


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
        return  # how cyclopts' console ends the process when the reader closed the pipe
    except OSError as error:
        raise _unwritable(error) from None


def note(text: str, *, end: str = "\n") -> None:
    """Print on stderr what is for whoever sits there, and not for whoever reads stdout."""
    print(text, end=end, file=sys.stderr, flush=True)  # noqa: T201  same


@contextmanager
def status_line() -> Iterator[Callable[[str], None]]:
    """Give a function that shows a line on stderr: in place on a terminal, otherwise each line that is new."""
    last, is_in_place = "", is_terminal(sys.stderr) and os.environ.get("TERM") not in _WITHOUT_CURSOR

    def update(line: str) -> None:
        nonlocal last
        if is_in_place:
            note(_ERASE_LINE + _fitted(f"{line} …"), end="")
        elif line != last:
            note(line)
        last = line

    try:
        yield update
    finally:
        if is_in_place:
            note(_ERASE_LINE, end="")


def _fitted(line: str) -> str:
    """Return as much of a line as one row of the terminal holds: a longer line would not be erased as a whole."""
    encoding = sys.stderr.encoding or "ascii"
    written = _one_line(line).encode(encoding, "backslashreplace").decode(encoding)
    columns = 0
    with suppress(OSError):  # not a real terminal
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    left = (columns or _USUAL_COLUMNS) - 1  # a character in the last column moves some cursors to the next row
    for index, letter in enumerate(written):
        left -= 0 if combining(letter) else 2 if east_asian_width(letter) in {"F", "W"} else 1
        if left < 0:
            return written[:index]
    return written


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


def as_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as text."""
    lines = [tuple(headings), *(tuple(map(_one_line, row)) for row in rows)]
    return as_rows(lines, [max(map(len, column)) for column in zip(*lines, strict=True)])


def as_rows(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> str:
    """Return rows as text, with columns of at least these widths."""
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows
    )


def as_facts(facts: Mapping[str, str]) -> str:
    """Return a line for each fact that there is, with its heading before it."""
    known = [(_titled(heading), _one_line(value)) for heading, value in facts.items() if value]
    return as_rows(known, [max((len(heading) for heading, _ in known), default=0), 0])


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str) -> None:
    """Print a table, or what to say where there is nothing to put into it."""
    show(as_table(headings, rows) if rows else f"{empty}\n")


def _one_line(text: str) -> str:
    """Return what somebody else wrote as it can stand in a line: nothing in it moves the cursor."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _titled(heading: str) -> str:
    """Return a heading as the beginning of a line: what stands for words stays as it is."""
    first, *rest = heading.split(" ")
    if first == "CPUS":
        first = "CPUs"
    return " ".join([first if first in _INITIALS else first.capitalize(), *(_lower(word) for word in rest)])


def _lower(word: str) -> str:
    return word if word in _INITIALS else word.lower()


_INITIALS = {"CA", "CPUs", "DNS", "GPU", "ID", "IP", "MAC", "SSH"}


Columns = Mapping[str, Callable[[Any], str]]
"""The columns of a table by their headings, each with what it shows of a thing."""

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")


def show_many(things: Sequence[Any], columns: Columns, output: Format, *, empty: str) -> None:
    """Show several things, in the order of their names."""
    ordered = sorted(things, key=_name)
    if output == "name":
        show("".join(f"{_name(each)}\n" for each in ordered))
    elif output != "table":
        show(dump(ordered, output))
    elif not ordered:
        show(f"{empty}\n")
    else:
        show(as_table([*columns], [[cell(each) for cell in columns.values()] for each in ordered]))


def show_one(thing: Any, columns: Columns, output: Format) -> None:
    """Show one thing: for people, a line for each fact that there is."""
    if output == "name":
        show(f"{_name(thing)}\n")
    elif output != "table":
        show(dump(thing, output))
    else:
        show(as_facts({heading: cell(thing) for heading, cell in columns.items()}))


def dump(things: Any, output: Format) -> str:
    """Return things as JSON or YAML."""
    if output == "yaml":
        import yaml  # noqa: PLC0415  only needed here

        return str(yaml.safe_dump(things, sort_keys=False, allow_unicode=writes_unicode()))
    import msgspec  # noqa: PLC0415  the version is printed without it

    return json_text(msgspec.json.format(msgspec.json.encode(things), indent=2)) + "\n"


def json_text(document: bytes) -> str:
    """Return a document of JSON as stdout takes it: if that has not every letter, with escapes that mean the same."""
    text = document.decode()
    return text if writes_unicode() else _BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _name(thing: Any) -> str:
    return str(thing["metadata"]["name"])
