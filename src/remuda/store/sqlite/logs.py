"""Log records as rows, written in the commit of the change they belong to."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import apsw
import msgspec

from remuda.store.logs import Entry, LogPage, Record
from remuda.store.readside.sql import Sql
from remuda.store.validation import check_limit

_AFTER_ALL = 2**63 - 1


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
        """Tell whether a stream has a record of this subject."""
        rows = self._run("SELECT 1 FROM logs WHERE stream = ? AND subject = ? LIMIT 1", stream, subject)
        return bool(rows)

    def read(self, stream: str, subject: str, *, after: int, limit: int) -> LogPage:
        """Return entries of a subject in the order they were written."""
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
        """Return entries of a subject, the latest first."""
        check_limit(limit)
        rows = self._run(
            "SELECT position, time, data FROM logs WHERE stream = ? AND subject = ? AND position < ?"
            " ORDER BY position DESC LIMIT ?",
            stream,
            subject,
            _AFTER_ALL if before is None else before,
            limit + 1,
        )
        return _page(rows, limit)

    def trim(self, stream: str, age: timedelta, now: datetime, *, limit: int) -> int:
        """Drop up to `limit` records older than `age`; return how many went."""
        rows = self._run(
            "DELETE FROM logs WHERE position IN (SELECT position FROM logs WHERE stream = ? AND time < ?"
            " ORDER BY time LIMIT ?) RETURNING position",
            stream,
            (now - age).timestamp(),
            limit,
        )
        return len(rows)


def _page(rows: Sequence[tuple[Any, ...]], limit: int) -> LogPage:
    entries = [
        Entry(position=position, time=datetime.fromtimestamp(time, UTC), data=msgspec.Raw(data))
        for position, time, data in rows[:limit]
    ]
    return LogPage(entries, entries[-1].position if len(rows) > limit else None)
