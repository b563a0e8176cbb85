"""Tables of the logs: all SQL that knows them."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import apsw
import msgspec

from remuda.store.logs import Entry, LogPage, Record, StreamEntry, StreamPage
from remuda.store.readside.sql import Sql
from remuda.store.validation import check_limit

_AFTER_EVERY_POSITION = 2**63 - 1
_SLICE = 500
"""Rows that one read of a stream examines on the event loop."""


class LogTables:
    """The SQL of the logs, over one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._run = Sql(connection)

    def append(self, records: Iterable[Record], now: datetime) -> None:
        time = now.timestamp()
        self._run.each(
            "INSERT INTO logs (stream, subject, time, data) VALUES (?, ?, ?, ?)",
            [(record.stream, record.subject, time, bytes(record.data)) for record in records],
        )

    def has(self, stream: str, subject: str) -> bool:
        rows = self._run("SELECT 1 FROM logs WHERE stream = ? AND subject = ? LIMIT 1", stream, subject)
        return bool(rows)

    def read(self, stream: str, subject: str, *, after: int, limit: int) -> LogPage:
        check_limit(limit)
        rows = self._run(
            "SELECT position, time, data FROM logs WHERE stream = ? AND subject = ? AND position > ?"
            " ORDER BY position LIMIT ?",
            stream,
            subject,
            after,
            limit + 1,
        )
        return _page(rows, limit)

    def read_back(self, stream: str, subject: str, *, before: int | None, limit: int) -> LogPage:
        check_limit(limit)
        rows = self._run(
            "SELECT position, time, data FROM logs WHERE stream = ? AND subject = ? AND position < ?"
            " ORDER BY position DESC LIMIT ?",
            stream,
            subject,
            _AFTER_EVERY_POSITION if before is None else before,
            limit + 1,
        )
        return _page(rows, limit)

    def read_stream(self, stream: str, *, after: int) -> StreamPage:
        """Return the entries of a stream among the next rows of all streams."""
        rows = self._run(
            "SELECT position, stream, subject, time, data FROM logs NOT INDEXED WHERE position > ?"
            " ORDER BY position LIMIT ?",
            after,
            _SLICE,
        )
        found = [_entry(row[0], *row[2:]) for row in rows if row[1] == stream]
        return StreamPage(found, rows[-1][0] if rows else after, is_last=len(rows) < _SLICE)

    def entry_at(self, stream: str, position: int) -> StreamEntry | None:
        rows = self._run(
            "SELECT position, subject, time, data FROM logs WHERE position = ? AND stream = ?", position, stream
        )
        return _entry(*rows[0]) if rows else None

    def newest_position(self) -> int:
        rows = self._run("SELECT seq FROM sqlite_sequence WHERE name = 'logs'")
        return int(rows[0][0]) if rows else 0

    def trim(self, stream: str, age: timedelta, now: datetime, *, limit: int) -> int:
        """Delete up to `limit` records older than `age`; return their number."""
        rows = self._run(
            "DELETE FROM logs WHERE position IN (SELECT position FROM logs WHERE stream = ? AND time < ?"
            " ORDER BY time LIMIT ?) RETURNING position",
            stream,
            (now - age).timestamp(),
            limit,
        )
        return len(rows)


def _entry(position: int, subject: str, time: float, data: bytes) -> StreamEntry:
    return StreamEntry(
        position=position, subject=subject, time=datetime.fromtimestamp(time, UTC), data=msgspec.Raw(data)
    )


def _page(rows: Sequence[tuple[Any, ...]], limit: int) -> LogPage:
    entries = [
        Entry(position=position, time=datetime.fromtimestamp(time, UTC), data=msgspec.Raw(data))
        for position, time, data in rows[:limit]
    ]
    return LogPage(entries, entries[-1].position if len(rows) > limit else None)
