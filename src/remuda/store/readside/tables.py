"""Tables of the read side: all SQL that knows them.

Two connections use it: the writer's, and the event loop's own for reads. Every statement runs to its end before the
method returns.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import apsw
import msgspec

from remuda.store.readside.index import NumberedEntry
from remuda.store.readside.sql import Sql

ChangeCode = Literal[1, 2, 3]
"""The kind of change of a revision, as stored in the tables."""

_MAX_MERGED = 100
"""Scans in one statement. SQLite allows 500."""
_AFTER_ALL = "~"
"""Sorts after every name."""

ADDED: ChangeCode = 1
MODIFIED: ChangeCode = 2
DELETED: ChangeCode = 3


class Current(msgspec.Struct, frozen=True, gc=False):
    """The current state of one object."""

    version: int
    document: bytes


class Revision(msgspec.Struct, frozen=True, gc=False):
    """One change of one object. `before` is the previous document, stored only if `Kind.is_reindexed` by the change."""

    version: int
    name: str
    change: ChangeCode
    document: bytes
    before: bytes | None


class IndexRead(NamedTuple):
    """The objects under all of some index entries; those under the first are scanned."""

    entries: Sequence[NumberedEntry]
    names: Sequence[str] | None = None
    """If given, only objects with these names, which are scanned instead."""


class Tables:
    """Typed statements over one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self._run = Sql(connection)

    def horizon(self) -> tuple[int, int]:
        """Return the newest version, and the one below which history is compacted."""
        ((version, floor),) = self._run("SELECT version, floor FROM horizon")
        return version, floor

    def set_version(self, version: int) -> None:
        self._run("UPDATE horizon SET version = ?", version)

    def set_floor(self, floor: int) -> None:
        self._run("UPDATE horizon SET floor = ?", floor)

    def find(self, kind: int, name: str) -> Current | None:
        rows = self._run(
            "SELECT o.version, r.document FROM objects o JOIN revisions r ON r.version = o.version"
            " WHERE o.kind = ? AND o.name = ?",
            kind,
            name,
        )
        return Current(*rows[0]) if rows else None

    def find_many(self, kind: int, names: Sequence[str]) -> Sequence[tuple[str, bytes]]:
        """Return the names and documents of those of these objects that exist, in any order, by one statement."""
        return self._run(
            "SELECT o.name, r.document FROM objects o JOIN revisions r ON r.version = o.version"
            " WHERE o.kind = ? AND o.name IN (SELECT value FROM json_each(?))",
            kind,
            msgspec.json.encode(names).decode(),
        )

    def names(self, kind: int, *, after: str, limit: int) -> Sequence[str]:
        return [
            row[0]
            for row in self._run(
                "SELECT name FROM objects WHERE kind = ? AND name > ? ORDER BY name LIMIT ?", kind, after, limit
            )
        ]

    def versions(self, kind: int, *, after: str, upto: str | None, limit: int) -> Sequence[tuple[str, int]]:
        sql = "SELECT name, version FROM objects WHERE kind = ? AND name > ? AND name <= ? ORDER BY name LIMIT ?"
        return self._run(sql, kind, after, upto or _AFTER_ALL, limit)

    def names_under(
        self, entries: Sequence[NumberedEntry], *, after: str, upto: str | None = None, limit: int
    ) -> Sequence[str]:
        """Return, in order, the names under all these index entries. It reads those under the first."""
        return self.names_of_any(0, [IndexRead(entries)], after=after, upto=upto, limit=limit)

    def names_of_any(
        self, kind: int, reads: Sequence[IndexRead], *, after: str, upto: str | None = None, limit: int
    ) -> Sequence[str]:
        """Return, in order and each once, the names that any of these reads finds. They are merged, not collected."""
        found = set[str]()
        for start in range(0, len(reads), _MAX_MERGED):
            parts, bindings = [], list[object]()
            for read in reads[start : start + _MAX_MERGED]:
                sql, bound = _index_read_sql(kind, read, after, upto or _AFTER_ALL)
                parts.append(sql)
                bindings += bound
            rows = self._run(f"{' UNION '.join(parts)} ORDER BY 1 LIMIT ?", *bindings, limit)
            if len(reads) <= _MAX_MERGED:
                return [row[0] for row in rows]
            found.update(row[0] for row in rows)
        return sorted(found)[:limit]

    def name_at(self, entry: NumberedEntry, *, after: str, distance: int) -> str | None:
        """Return the name at this distance after another one under an index entry, or None."""
        sql = "SELECT name FROM entries WHERE index_id = ? AND value = ? AND name > ? ORDER BY name LIMIT 1 OFFSET ?"
        rows = self._run(sql, *entry, after, distance - 1)
        return rows[0][0] if rows else None

    def count_under(self, entry: NumberedEntry, *, limit: int) -> int:
        sql = "SELECT count(*) FROM (SELECT 1 FROM entries WHERE index_id = ? AND value = ? LIMIT ?)"
        ((count,),) = self._run(sql, *entry, limit)
        return int(count)

    def changes(self, kind: int, *, after: int, limit: int) -> Sequence[Revision]:
        rows = self._run(
            "SELECT version, name, change, document, before FROM revisions"
            " WHERE kind = ? AND version > ? ORDER BY version LIMIT ?",
            kind,
            after,
            limit,
        )
        return [Revision(*row) for row in rows]

    def add_revision(self, kind: int, revision: Revision, *, time: float) -> None:
        self._run(
            "INSERT INTO revisions (version, kind, name, change, time, document, before) VALUES (?, ?, ?, ?, ?, ?, ?)",
            revision.version,
            kind,
            revision.name,
            revision.change,
            time,
            revision.document,
            revision.before,
        )

    def point(self, kind: int, name: str, version: int) -> None:
        self._run("INSERT OR REPLACE INTO objects (kind, name, version) VALUES (?, ?, ?)", kind, name, version)

    def remove(self, kind: int, name: str) -> None:
        self._run("DELETE FROM objects WHERE kind = ? AND name = ?", kind, name)
        self._run("DELETE FROM renderings WHERE kind = ? AND name = ?", kind, name)

    def renderings(self, kind: int, names: Sequence[str], *, form: str) -> Sequence[tuple[str, int, bytes, bytes]]:
        """Return name, version, labels and body of the renderings of present states, in any order."""
        return self._run(
            "SELECT r.name, r.version, r.labels, r.body FROM renderings r"
            " JOIN objects o ON o.kind = r.kind AND o.name = r.name AND o.version = r.version"
            " WHERE r.kind = ? AND r.name IN (SELECT value FROM json_each(?)) AND r.form = ?",
            kind,
            msgspec.json.encode(names).decode(),
            form,
        )

    def put_renderings(self, kind: int, renderings: Iterable[tuple[str, int, bytes, bytes]], *, form: str) -> None:
        """Store those that are of present states, each in place of the object's earlier one."""
        self._run.each(
            "INSERT OR REPLACE INTO renderings (kind, name, version, form, labels, body)"
            " SELECT kind, name, version, ?4, ?5, ?6 FROM objects WHERE kind = ?1 AND name = ?2 AND version = ?3",
            [(kind, name, version, form, labels, body) for name, version, labels, body in renderings],
        )

    def forget_revision(self, version: int) -> None:
        """Remove a superseded revision that no watch can read any more."""
        self._run("DELETE FROM revisions WHERE version = ?", version)

    def add_entries(self, name: str, entries: Iterable[NumberedEntry]) -> None:
        sql = "INSERT OR REPLACE INTO entries (index_id, value, name) VALUES (?, ?, ?)"
        self._run.each(sql, [(index, value, name) for index, value in entries])

    def remove_entries(self, name: str, entries: Iterable[NumberedEntry]) -> None:
        sql = "DELETE FROM entries WHERE index_id = ? AND value = ? AND name = ?"
        self._run.each(sql, [(index, value, name) for index, value in entries])

    def clear_index(self, index: int) -> None:
        """Remove all entries of an index before it is rebuilt."""
        self._run("DELETE FROM entries WHERE index_id = ?", index)

    def compact(self, *, after: int, upto: int, limit: int) -> int:
        """Remove superseded revisions in (after, upto] among `limit` rows; return the last version examined."""
        ((last, seen),) = self._run(
            "SELECT max(version), count(*) FROM (SELECT version FROM revisions WHERE version > ? AND version <= ?"
            " ORDER BY version LIMIT ?)",
            after,
            upto,
            limit,
        )
        reached: int = upto if seen < limit else last
        self._run(
            "DELETE FROM revisions WHERE version > ? AND version <= ? AND NOT EXISTS (SELECT 1 FROM objects o"
            " WHERE o.kind = revisions.kind AND o.name = revisions.name AND o.version = revisions.version)",
            after,
            reached,
        )
        return reached

    def sizes(self, *, after: int, upto: int, limit: int) -> Sequence[tuple[int, int, int]]:
        """Return the version and the lengths of the documents of changes, in the order of versions."""
        return self._run(
            "SELECT version, length(document), ifnull(length(before), 0) FROM revisions"
            " WHERE version > ? AND version <= ? ORDER BY version LIMIT ?",
            after,
            upto,
            limit,
        )

    def version_at(self, time: float, *, after: int, limit: int) -> int:
        """Return the last version not younger than `time` among `limit` rows after `after`."""
        ((found,),) = self._run(
            "SELECT max(version) FROM (SELECT version, time FROM revisions WHERE version > ? ORDER BY version LIMIT ?)"
            " WHERE time <= ?",
            after,
            limit,
            time,
        )
        return after if found is None else int(found)

    def version_upto(self, version: int, *, after: int, limit: int) -> int:
        """Return the last version up to this one among `limit` rows after `after`."""
        ((found,),) = self._run(
            "SELECT max(version) FROM (SELECT version FROM revisions WHERE version > ? AND version <= ?"
            " ORDER BY version LIMIT ?)",
            after,
            version,
            limit,
        )
        return after if found is None else int(found)


def _index_read_sql(kind: int, read: IndexRead, after: str, upto: str) -> tuple[str, list[object]]:
    """Return the statement of a scan of the names in (after, upto], and its bindings."""
    bindings: list[object]
    if read.names is None:
        first, *others = read.entries
        start, bindings = "SELECT e.name FROM entries e WHERE e.index_id = ? AND e.value = ?", [*first]
    else:
        others = list(read.entries)
        start = "SELECT e.name FROM objects e WHERE e.kind = ? AND e.name IN (SELECT value FROM json_each(?))"
        bindings = [kind, msgspec.json.encode(read.names).decode()]
    bindings += [after, upto]
    for entry in others:
        bindings += entry
    also = " AND EXISTS (SELECT 1 FROM entries x WHERE x.index_id = ? AND x.value = ? AND x.name = e.name)"
    return f"{start} AND e.name > ? AND e.name <= ?{also * len(others)}", bindings
