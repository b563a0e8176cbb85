"""Output of commands: tables for users, and JSON, YAML or names for programs.

A table is aligned and has no lines. If stdout cannot be written to, the command fails with one sentence.
"""

import json
import os
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, Protocol, TextIO, TypeVar
from unicodedata import combining, east_asian_width

from remuda.kernel.errors import Unusable

Format = Literal["table", "json", "yaml", "name"]

_ERASE_LINE = "\r\x1b[2K"
_WITHOUT_CURSOR = {"dumb", "unknown"}
"""Values of TERM for terminals that cannot erase a line."""
_USUAL_COLUMNS = 80


def echo(text: str, *, end: str = "\n") -> None:
    try:
        print(text, end=end, flush=True)  # noqa: T201  a command line prints
    except OSError as error:
        raise _unwritable(error) from None


def write(text: str) -> None:
    """Print a document as it is. A reader that stops early (`| head`) is no error."""
    try:
        print(text, end="", flush=True)  # noqa: T201  same
    except BrokenPipeError:
        _discard_stdout()
    except OSError as error:
        raise _unwritable(error) from None


@contextmanager
def library_output() -> Iterator[None]:
    """Treat errors of what cyclopts prints, help and versions, as `write` does."""
    try:
        yield
    except SystemExit:
        return  # how cyclopts' console ends the process when the reader closed the pipe
    except OSError as error:
        raise _unwritable(error) from None


def echo_error(text: str, *, end: str = "\n") -> None:
    """Print on stderr what is for the user at the terminal, and not for the reader of stdout."""
    print(text, end=end, file=sys.stderr, flush=True)  # noqa: T201  same


@contextmanager
def status_line() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a line on stderr: over the last one on a terminal, elsewhere each new line."""
    last, is_overwritten = "", is_terminal(sys.stderr) and os.environ.get("TERM") not in _WITHOUT_CURSOR

    def update(line: str) -> None:
        nonlocal last
        if is_overwritten:
            echo_error(_ERASE_LINE + _truncated(f"{line} …"), end="")
        elif line != last:
            echo_error(line)
        last = line

    try:
        yield update
    finally:
        if is_overwritten:
            echo_error(_ERASE_LINE, end="")


def _truncated(line: str) -> str:
    """Return as much of a line as one row of the terminal holds: the rest of a longer line would not be erased."""
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


def terminal_width() -> int | None:
    """Return the width of the terminal; None if stdout is not one: programs get lines as they are."""
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether a stream is a terminal. A stream that was closed before the start is None."""
    return stream is not None and stream.isatty()


def writes_unicode() -> bool:
    """Tell whether stdout can encode every character."""
    return sys.stdout is None or sys.stdout.encoding.lower().startswith("utf")


def _unwritable(error: OSError) -> Unusable:
    _discard_stdout()
    cause = error.strerror or str(error)
    return Unusable(f"The output cannot be written ({cause}): redirect stdout to where it can.")


def _discard_stdout() -> None:
    """Send the rest to nowhere, because Python complains about it at exit otherwise."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def as_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [tuple(headings), *(tuple(map(_one_line, row)) for row in rows)]
    return as_rows(lines, [max(map(len, column)) for column in zip(*lines, strict=True)])


def as_rows(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> str:
    """Return rows as text, with columns of at least these widths."""
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows
    )


def as_facts(facts: Mapping[str, str]) -> str:
    """Return a line for each fact that has a value, with its heading."""
    known = [(_titled(heading), _one_line(value)) for heading, value in facts.items() if value]
    return as_rows(known, [max((len(heading) for heading, _ in known), default=0), 0])


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str) -> None:
    """Print a table, or the text for an empty one."""
    write(as_table(headings, rows) if rows else f"{empty}\n")


def _one_line(text: str) -> str:
    """Return a text in one line, without characters that move the cursor."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _titled(heading: str) -> str:
    """Return a heading in lower case with an initial capital. Acronyms stay as they are."""
    first, *rest = heading.split(" ")
    if first == "CPUS":
        first = "CPUs"
    return " ".join([first if first in _ACRONYMS else first.capitalize(), *(_lower(word) for word in rest)])


def _lower(word: str) -> str:
    return word if word in _ACRONYMS else word.lower()


_ACRONYMS = {"CA", "CPUs", "DNS", "GPU", "ID", "IP", "MAC", "SSH"}


class HasMetadata(Protocol):
    """A resource as the API returns it."""

    @property
    def metadata(self) -> Any:
        """Its metadata, with id and name."""


ItemT = TypeVar("ItemT")
ResourceT = TypeVar("ResourceT", bound=HasMetadata)
Columns = Mapping[str, Callable[[ItemT], str]]
"""Columns of a table by their headings, each with the function that returns its cell."""

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")


def show_many(
    items: Sequence[ResourceT], columns: Columns[ResourceT], output: Format, *, empty: str, is_sorted: bool = False
) -> None:
    """Print resources by name, or in the given order if it is sorted by something else.

    With the output `name`, those that share a name are printed as ids, which other commands take.
    """
    ordered = items if is_sorted else sorted(items, key=_name)
    if output == "name":
        ids = _ids_by_name(ordered)
        write("".join(f"{_name(each) if len(ids[_name(each)]) == 1 else each.metadata.id}\n" for each in ordered))
    elif output != "table":
        write(dump(ordered, output))
    elif not ordered:
        write(f"{empty}\n")
    else:
        write(as_table([*columns], [[cell(each) for cell in columns.values()] for each in ordered]))


def _ids_by_name(items: Iterable[HasMetadata]) -> Mapping[str, set[str]]:
    ids = defaultdict[str, set[str]](set)
    for each in items:
        ids[_name(each)].add(each.metadata.id)
    return ids


def show_one(item: ResourceT, columns: Columns[ResourceT], output: Format, others: Iterable[HasMetadata] = ()) -> None:
    """Print one resource; as a table, a line for each fact.

    With the output `name`, its id is printed if one of the others has the same name, as `show_many` does.
    """
    if output == "name":
        is_shared = len(_ids_by_name([item, *others])[_name(item)]) > 1
        write(f"{item.metadata.id if is_shared else _name(item)}\n")
    elif output != "table":
        write(dump(item, output))
    else:
        write(as_facts({heading: cell(item) for heading, cell in columns.items()}))


def dump(value: Any, output: Format) -> str:
    """Return schema structs, or plain values, as JSON or YAML."""
    import msgspec  # noqa: PLC0415  the version is printed without it

    from remuda.kernel.secrets import reveal  # noqa: PLC0415  same

    if output == "yaml":
        import yaml  # noqa: PLC0415  only needed here

        plain = msgspec.to_builtins(value, enc_hook=reveal)
        return str(yaml.safe_dump(plain, sort_keys=False, allow_unicode=writes_unicode()))
    return json_text(msgspec.json.format(msgspec.json.encode(value, enc_hook=reveal), indent=2)) + "\n"


def json_text(document: bytes) -> str:
    """Return a JSON document as stdout can encode it, with escapes for other characters."""
    text = document.decode()
    return text if writes_unicode() else _BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _name(item: HasMetadata) -> str:
    return str(item.metadata.name)
