"""Server-sent events: writing changes to a stream, and reading them from one.

An event has a type, data on one line, and an id if a reader may resume after it. Comments keep an idle connection alive
and have no meaning.
"""

from collections.abc import Iterator, Sequence
from typing import cast

import msgspec

HEARTBEAT = b":\n\n"
"""A comment that shows that the stream is alive."""

_LONGEST = 16 << 20
"""Largest accepted event in bytes: many times the largest object."""


def sse_event(kind: str, data: bytes, *, cursor: str | None = None) -> bytes:
    """Return an event. An empty `cursor` clears the reader's cursor; None leaves it unchanged."""
    resume = "" if cursor is None else f"id: {cursor}\n"
    return b"event: %b\n%bdata: %b\n\n" % (kind.encode(), resume.encode(), _one_line(data))


def added_events(items: Sequence[bytes]) -> bytes:
    """Return many present objects. They have no id: a reader that is interrupted among them has to start over."""
    before, after = b"event: added\ndata: ", b"\n\n"
    return before + (after + before).join(map(_one_line, items)) + after if items else b""


def _one_line(data: bytes) -> bytes:
    return data.replace(b"\n", b" ") if b"\n" in data else data


class Received(msgspec.Struct, frozen=True):
    """An event as it was read."""

    type: str
    data: bytes
    id: str | None
    """Cursor to resume from: None if the event has none, empty if the reader has to start over."""


class EventReader:
    """Parser of an event stream, fed with chunks of any size. Comments are skipped."""

    def __init__(self) -> None:
        self._rest = b""
        self._type, self._id = "message", cast("str | None", None)
        self._data: list[bytes] = []

    def _begin(self) -> None:
        self._type, self._id, self._data = "message", None, []

    def feed(self, chunk: bytes) -> Iterator[Received]:
        """Take a chunk; yield the events that are complete."""
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
                pass  # comments, and fields of later releases
