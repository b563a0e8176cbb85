"""Server-sent events: how changes are written to a stream, and how they are read from one.

An event has a type, some data on one line, and an id where a reader may resume after it. Comments keep an idle
connection alive and mean nothing.
"""

from collections.abc import Iterator, Sequence
from typing import cast

import msgspec

HEARTBEAT = b":\n\n"
"""A comment: the stream is alive."""

_LONGEST = 16 << 20
"""Bytes of one event that are taken: many times the largest object."""


def event(kind: str, data: bytes, *, place: str | None = None) -> bytes:
    """Return an event. An empty place makes the reader forget where it was; none leaves it there."""
    resume = "" if place is None else f"id: {place}\n"
    return b"event: %b\n%bdata: %b\n\n" % (kind.encode(), resume.encode(), _one_line(data))


def added_events(items: Sequence[bytes]) -> bytes:
    """Return many present objects. They have no id: who is cut off among them has to begin anew."""
    before, after = b"event: added\ndata: ", b"\n\n"
    return before + (after + before).join(map(_one_line, items)) + after if items else b""


def _one_line(data: bytes) -> bytes:
    return data.replace(b"\n", b" ") if b"\n" in data else data


class Received(msgspec.Struct, frozen=True):
    """An event as it was read."""

    type: str
    data: bytes
    id: str | None
    """Where to resume: None if the event does not say, empty if nowhere."""


class EventReader:
    """Puts events together from the bytes of a stream, however they are cut. Comments are silence."""

    def __init__(self) -> None:
        self._rest = b""
        self._type, self._id = "message", cast("str | None", None)
        self._data: list[bytes] = []

    def _begin(self) -> None:
        self._type, self._id, self._data = "message", None, []

    def feed(self, chunk: bytes) -> Iterator[Received]:
        """Take some bytes; yield the events that are complete."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > _LONGEST:
            raise ValueError("a line of the event stream has no end")
        for line in lines:
            if line.rstrip(b"\r"):
                self._take(line.rstrip(b"\r"))
            elif self._data:
                yield Received(self._type, b"\n".join(self._data), self._id)
                self._begin()
            else:
                self._begin()

    def _take(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"event":
                self._type = value.decode()
            case b"data":
                self._data.append(value)
            case b"id":
                self._id = value.decode()
            case _:
                pass  # comments, and what a later release may add
