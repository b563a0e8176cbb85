"""Running statements so that none is left open.

A statement that was not read to its end pins the snapshot it reads, so rows always come as a list.
"""

from typing import Any

import apsw

__all__ = ["Sql"]


class Sql:
    """One connection's statements: call it with SQL and bindings, get all rows."""

    __slots__ = ("_execute",)

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.cursor().execute

    def __call__(self, sql: str, *bindings: object) -> list[Any]:
        """Run a statement to its end and return its rows."""
        return self._execute(sql, bindings).fetchall()
