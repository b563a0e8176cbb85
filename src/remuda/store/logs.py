"""Logs: what happened, beside what is.

Timeline, audit and idempotency records are not objects: they have no versions, no watch and no lifecycle of their own.
A record is appended with the write it belongs to, so that neither exists without the other; it is read by subject, in
the order it was written or from the latest back, and dropped when its stream's retention has passed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

Retention = Mapping[str, timedelta]
"""How long the records of each stream are kept."""

DEFAULT_RETENTION: Retention = {
    "timeline": timedelta(days=90),
    "audit": timedelta(days=400),
    "idempotency": timedelta(hours=24),
}
"""What is kept unless an operator says otherwise; the records of a stream that is not named here are kept for ever."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Something to remember about a subject. `data` is JSON and must hold no secret."""

    stream: str
    subject: str
    data: msgspec.Raw
    once: bool = False
    """Refuse the write with AlreadyExists if the stream has a record of this subject already."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A record as it was kept."""

    position: int
    time: datetime
    data: msgspec.Raw


@dataclass(frozen=True, slots=True)
class LogPage:
    """Some entries of one subject, in the order that was asked for."""

    entries: Sequence[Entry]
    next: int | None
    """Hand this to the next call to go on; None when there is no more for now."""


class Log(Protocol):
    """Append-only records by stream and subject."""

    async def append(self, records: Sequence[Record]) -> None:
        """Keep records that belong to no write of an object."""
        ...

    async def read(self, stream: str, subject: str, *, after: int = 0, limit: int = 100) -> LogPage:
        """Return the entries of a subject in the order they were written."""
        ...

    async def read_back(self, stream: str, subject: str, *, before: int | None = None, limit: int = 100) -> LogPage:
        """Return the entries of a subject, the latest first, or from before a position on; `next` is such a one."""
        ...


def subject_of(qualified_plural: str, name: str) -> str:
    """Return the subject under which what happens to an object is kept, by its kind's qualified plural and its name.

    An object that is made again under an old name continues there, so its records should say which uid they mean.
    """
    return f"{qualified_plural}/{name}"
