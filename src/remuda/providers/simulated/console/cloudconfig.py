"""A cloud-config, or an archive of several, read so that no text of a stranger costs more than a bounded effort.

YAML's own loaders recurse as deep as a document says, the C one until the process dies, and unfold aliases and merge
keys without bound. So only the parser is used, which does neither: its events become lists, mappings and texts here,
and an alias stays nothing. Scalars are texts, whatever YAML would make of them.
"""

from collections.abc import Iterator
from typing import Any

import yaml

_DEEPEST = 16
_MOST_EVENTS = 2000


class Unreadable(Exception):  # noqa: N818  it says what the document is
    """Raised when there is nothing to be read; its sentence quotes nothing of it."""


def read_cloud_config(document: bytes) -> dict[str, Any]:
    """Return what the first document says, or raise Unreadable."""
    value = _read(document)
    if value is not None and not isinstance(value, dict):
        raise Unreadable("it is not a mapping")
    return value or {}


def read_archive(document: bytes) -> list[dict[str, Any]]:
    """Return the entries of an archive, each with its `content`, or raise Unreadable; what is no entry is left out."""
    value = _read(document)
    if value is not None and not isinstance(value, list):
        raise Unreadable("it is not a list")
    entries = [{"content": each} if isinstance(each, str) else each for each in value or ()]
    return [each for each in entries if isinstance(each, dict) and isinstance(each.get("content"), str)]


def _read(document: bytes) -> Any:
    try:
        text = document.decode()
    except UnicodeDecodeError:
        raise Unreadable("it is not UTF-8") from None
    try:
        return _value(_events(text), None, 0)
    except yaml.YAMLError:
        raise Unreadable("it is not valid YAML") from None


def _events(text: str) -> Iterator[yaml.Event]:
    found = yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    for number, event in enumerate(found):
        if number > _MOST_EVENTS:
            raise Unreadable("it has too many entries")
        if isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
            yield event
    yield yaml.StreamEndEvent()


def _value(events: Iterator[yaml.Event], event: yaml.Event | None, depth: int) -> Any:
    """Return the value that an event begins, by default the next one."""
    event = next(events) if event is None else event
    if depth > _DEEPEST:
        raise Unreadable("it is nested too deep")
    if isinstance(event, yaml.ScalarEvent):
        return event.value
    if isinstance(event, yaml.SequenceStartEvent):
        return [_value(events, each, depth + 1) for each in _inside(events)]
    if isinstance(event, yaml.MappingStartEvent):
        found = {}
        for each in _inside(events):
            key, value = _value(events, each, depth + 1), _value(events, None, depth + 1)
            if isinstance(key, str):
                found[key] = value
        return found
    return None


def _inside(events: Iterator[yaml.Event]) -> Iterator[yaml.Event]:
    """Yield the events that begin the values of a collection."""
    while not isinstance(event := next(events), yaml.CollectionEndEvent):
        yield event
