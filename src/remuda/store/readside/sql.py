"""Running statements so that none is left open.

A statement that was not read to its end pins the snapshot it reads, so rows always come as a list.
"""

from collections.abc import Iterable
from typing import Any

import apsw


class Sql:
    """One connection's statements: call it with SQL and bindings, get all rows."""

    __slots__ = ("_cursor", "_execute")

    def __init__(self, connection: apsw.Connection) -> None:
        # One plan for all bindings: else SQLite plans anew for each, which doubles the cost of a point get.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        self._cursor = connection.cursor()
        self._execute = self._cursor.execute

    def __call__(self, sql: str, *bindings: object) -> list[Any]:
        """Run a statement to its end and return its rows."""
        try:
            return self._execute(sql, bindings).fetchall()
        except UnicodeDecodeError:  # SQLite hands on whatever bytes it finds where a text should be
            raise apsw.CorruptError("a stored text is not UTF-8") from None

    def each(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Run a statement that returns nothing once for each row of bindings."""
        self._cursor.executemany(sql, rows)
