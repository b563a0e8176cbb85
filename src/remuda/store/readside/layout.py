"""The tables, and how an older file becomes a current one.

Documents live in `revisions`, one row per change, like the revisions of etcd: an object's row only points to its
current one. So a change is written once, serves both readers and watchers, and a superseded revision is history that
compaction removes.
"""

import apsw

APPLICATION_ID = 0x52454D55
"""Marks a file as ours ('REMU' in the SQLite header)."""

_FIRST = """
CREATE TABLE kinds (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    signature TEXT NOT NULL
) STRICT;

CREATE TABLE indexes (
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (kind, name)
) STRICT;

CREATE TABLE objects (
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE entries (
    index_id INTEGER NOT NULL,
    value TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (index_id, value, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE revisions (
    version INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    change INTEGER NOT NULL,
    time REAL NOT NULL,
    document BLOB NOT NULL,
    before BLOB
) STRICT;

CREATE INDEX revisions_by_kind ON revisions (kind);

CREATE TABLE horizon (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    version INTEGER NOT NULL,
    floor INTEGER NOT NULL
) STRICT;

CREATE TABLE logs (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    stream TEXT NOT NULL,
    subject TEXT NOT NULL,
    time REAL NOT NULL,
    data BLOB NOT NULL
) STRICT;

CREATE INDEX logs_by_subject ON logs (stream, subject, position);
CREATE INDEX logs_by_time ON logs (stream, time);

INSERT INTO horizon (id, version, floor) VALUES (1, 0, 0);
"""

TABLES: tuple[str, ...] = ("kinds", "indexes", "objects", "entries", "revisions", "horizon", "logs")
"""What every store has, of whatever version."""
MIGRATIONS: tuple[str, ...] = (_FIRST,)
"""Each script takes a file from the version before to its own: the first one makes version 1 from an empty file."""


def migrate(connection: apsw.Connection, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """Bring the file to the newest version, all steps in one transaction."""
    found = connection.pragma("user_version")
    if found == len(migrations):
        return
    with connection:
        for script in migrations[found:]:
            connection.execute(script)
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", len(migrations))
