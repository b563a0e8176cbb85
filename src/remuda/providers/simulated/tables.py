"""The cloud's tables.

What is looked for stands in columns; the rest of a thing is one document. `state`, `next` and `due` say that a thing is
in one state until that moment, and in the other from then on. `changes` is what happened, for whoever else has the file
open; its sequence numbers are the versions of servers.
"""

APPLICATION_ID = 0x52454D43
"""Marks a file as a simulated cloud ('REMC' in the SQLite header)."""
SCHEMA_VERSION = 1
"""Which tables the file has."""

SCHEMA = """
CREATE TABLE changes (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    time REAL NOT NULL,
    subject TEXT NOT NULL,
    tenancy TEXT NOT NULL,
    name TEXT NOT NULL
) STRICT;

CREATE TABLE tenancies (name TEXT PRIMARY KEY, document BLOB NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE networks (
    tenancy TEXT NOT NULL,
    name TEXT NOT NULL,
    vlan INTEGER UNIQUE,
    document BLOB NOT NULL,
    PRIMARY KEY (tenancy, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE groups (
    tenancy TEXT NOT NULL,
    name TEXT NOT NULL,
    document BLOB NOT NULL,
    PRIMARY KEY (tenancy, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE addresses (
    tenancy TEXT NOT NULL,
    network TEXT NOT NULL,
    address TEXT NOT NULL,
    holder TEXT NOT NULL,
    PRIMARY KEY (tenancy, network, address)
) STRICT, WITHOUT ROWID;

CREATE TABLE public_addresses (
    position INTEGER PRIMARY KEY,
    address TEXT NOT NULL UNIQUE,
    tenancy TEXT,
    holder TEXT,
    is_offered INTEGER NOT NULL
) STRICT;
CREATE INDEX free_public_addresses ON public_addresses (position) WHERE holder IS NULL AND is_offered;
CREATE UNIQUE INDEX held_public_addresses ON public_addresses (tenancy, holder) WHERE holder IS NOT NULL;

CREATE TABLE ports (
    tenancy TEXT NOT NULL,
    name TEXT NOT NULL,
    document BLOB NOT NULL,
    PRIMARY KEY (tenancy, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE memberships (
    tenancy TEXT NOT NULL,
    member TEXT NOT NULL,
    port TEXT NOT NULL,
    PRIMARY KEY (tenancy, member, port)
) STRICT, WITHOUT ROWID;

CREATE TABLE hosts (
    flavor TEXT NOT NULL,
    host TEXT NOT NULL,
    size INTEGER NOT NULL,
    used INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (flavor, host)
) STRICT, WITHOUT ROWID;
CREATE INDEX hosts_with_room ON hosts (flavor, used, host);

CREATE TABLE servers (
    number INTEGER PRIMARY KEY,
    tenancy TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    next TEXT,
    due REAL,
    created REAL NOT NULL,
    launched REAL,
    flavor TEXT NOT NULL,
    image TEXT NOT NULL,
    port TEXT NOT NULL,
    host TEXT NOT NULL,
    fault TEXT NOT NULL DEFAULT '',
    boot_s REAL NOT NULL,
    boots BLOB NOT NULL,
    document BLOB NOT NULL,
    UNIQUE (tenancy, name),
    UNIQUE (tenancy, port)
) STRICT;
CREATE INDEX servers_due ON servers (due) WHERE due IS NOT NULL;
CREATE INDEX servers_by_image ON servers (image);

CREATE TABLE consoles (digest BLOB PRIMARY KEY, server TEXT NOT NULL, until REAL NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE images (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    next TEXT,
    due REAL,
    created REAL NOT NULL,
    size_gib INTEGER NOT NULL,
    digest TEXT NOT NULL,
    document BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX images_due ON images (due) WHERE due IS NOT NULL;

CREATE TABLE balancers (
    tenancy TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    next TEXT,
    due REAL,
    document BLOB NOT NULL,
    PRIMARY KEY (tenancy, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX balancers_due ON balancers (due) WHERE due IS NOT NULL;

CREATE TABLE storages (
    name TEXT PRIMARY KEY,
    used_bytes INTEGER NOT NULL DEFAULT 0,
    document BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE attachments (
    tenancy TEXT NOT NULL,
    network TEXT NOT NULL,
    storage TEXT NOT NULL,
    PRIMARY KEY (tenancy, network, storage)
) STRICT, WITHOUT ROWID;
CREATE INDEX attachments_by_storage ON attachments (storage);
"""
"""All of them, for an empty file."""
