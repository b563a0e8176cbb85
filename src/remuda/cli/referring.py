"""Names where tables would have ids: people know what they called things."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from remuda.cli.lookup import Asked
from remuda.cli.naming import looks_like_id
from remuda.cli.resources import REGION, Noun
from remuda.cli.showing.formats import Columns
from remuda.kernel.errors import RemudaError


def named(columns: Columns, names: Mapping[str, str]) -> Columns:
    """Return columns that show names; where none is known, and of the thing itself, the id."""
    return {heading: cell if heading == "ID" else _named(cell, names) for heading, cell in columns.items()}


def names_of(asked: Asked, noun: Noun, things: Sequence[Any], columns: Columns) -> dict[str, str]:
    """Return the names of what these columns of these things name by id, without those that cannot be read."""
    unknown = {
        word
        for heading, cell in columns.items()
        for thing in things
        for word in cell(thing).split(", ")
        if heading != "ID" and looks_like_id(word)
    }
    names: dict[str, str] = {}
    for each in noun.refers:
        if unknown - names.keys():
            names |= _names(asked, each)
    return names


def _named(cell: Callable[[Any], str], names: Mapping[str, str]) -> Callable[[Any], str]:
    return lambda thing: ", ".join(names.get(word, word) for word in cell(thing).split(", "))


def _names(asked: Asked, noun: Noun) -> dict[str, str]:
    try:
        found = asked.session.get_all(noun.service, noun.path, None if noun is REGION else asked.place.query)
    except RemudaError:
        return {}
    return {each["metadata"]["id"]: each["metadata"]["name"] for each in found}
