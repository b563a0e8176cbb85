"""Logs: records of events, beside the objects.

Timeline, audit and idempotency records are not objects: they have no versions, watches or lifecycle. A record is
appended in the same transaction as the write it belongs to, so that neither exists without the other. Records are read
by subject, in the order they were written or latest first, and deleted when their stream's retention has passed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

import msgspec

TIMELINE = "timeline"
"""The stream of events that all readers of an object may see."""

LOGINS = "logins"
"""The stream of attempts to log in with a password."""

Retention = Mapping[str, timedelta]
"""The retention period of each stream."""

DEFAULT_RETENTION: Retention = {
    TIMELINE: timedelta(days=90),
    "audit": timedelta(days=400),
    "idempotency": timedelta(hours=24),
    LOGINS: timedelta(days=30),
}
"""The retention unless an operator configures another one. Records of other streams are kept for ever."""


class Receipt:
    """Receipt of a record: whether a write took it. A write that turns out to be unnecessary takes none."""

    __slots__ = ("is_taken",)

    def __init__(self) -> None:
        self.is_taken = False


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A record about a subject. `data` is JSON and must not contain a secret."""

    stream: str
    subject: str
    data: msgspec.Raw
    once: bool = False
    """Reject the write with AlreadyExists if the stream already has a record of this subject."""
    receipt: Receipt | None = None
    """Tells the author whether a write took the record. It is not stored."""

    def acknowledge(self) -> None:
        """Mark the receipt, when a write takes the record."""
        if self.receipt is not None:
            self.receipt.is_taken = True


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A stored record."""

    position: int
    time: datetime
    data: msgspec.Raw


@dataclass(frozen=True, slots=True)
class LogPage:
    """Entries of one subject, in the requested order."""

    entries: Sequence[Entry]
    next: int | None
    """The position for the next page; None if there are no more entries now."""


class StreamEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A stored record of a stream, with its subject."""

    position: int
    subject: str
    time: datetime
    data: msgspec.Raw


@dataclass(frozen=True, slots=True)
class StreamPage:
    """Entries of one stream in the order they were written, whatever their subjects."""

    entries: Sequence[StreamEntry]
    reached: int
    """The position up to which the stream was read, from which to continue; there may be later entries."""
    is_last: bool
    """Whether there was nothing after it."""


class StreamReader(Protocol):
    """Reader of whole streams. Positions increase over all streams, and none is used again."""

    async def read_stream(self, stream: str, *, after: int) -> StreamPage:
        """Return the entries of a stream after a position, as far as one read gets."""

    async def entry_at(self, stream: str, position: int) -> StreamEntry | None:
        """Return the entry of a stream at a position, or None if there is none."""

    async def newest_position(self) -> int:
        """Return the highest position that was ever used, or 0."""


class Log(Protocol):
    """Append-only records by stream and subject."""

    async def append(self, records: Sequence[Record]) -> None:
        """Store records that belong to no write of an object."""

    async def read(self, stream: str, subject: str, *, after: int = 0, limit: int = 100) -> LogPage:
        """Return the entries of a subject in the order they were written."""

    async def read_back(self, stream: str, subject: str, *, before: int | None = None, limit: int = 100) -> LogPage:
        """Return the entries of a subject, latest first, before a position if one is given; so is `next`."""


def subject_of(qualified_plural: str, name: str) -> str:
    """Return the subject of records; a recreated object has the same, so records should contain the uid."""
    return f"{qualified_plural}/{name}"


def timeline_event(qualified_plural: str, name: str, event: Mapping[str, Any] | msgspec.Struct) -> Record:
    """Return the record of an event in the timeline of an object. `event` is JSON that all its readers may see."""
    data = msgspec.json.encode(event, order="deterministic")
    return Record(stream=TIMELINE, subject=subject_of(qualified_plural, name), data=msgspec.Raw(data))
