"""What was found, in the format that was asked for."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from remuda.cli.options import Format
from remuda.cli.output import show, writes_unicode
from remuda.cli.showing.tables import as_facts, as_table

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
    return json_text(msgspec.json.format(msgspec.json.encode(things), indent=2)) + "\n"


def json_text(document: bytes) -> str:
    """Return a document of JSON as stdout takes it: if that has not every letter, with escapes that mean the same."""
    text = document.decode()
    return text if writes_unicode() else _BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _name(thing: Any) -> str:
    return str(thing["metadata"]["name"])
