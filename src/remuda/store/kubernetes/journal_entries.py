"""What is in a journal: records in the order in which they came, and no more of them than it has room for."""

import hashlib
from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from remuda.store.kubernetes.kinds import Journal, JournalEntry, JournalSpec
from remuda.store.logs import Entry, LogPage, Record
from remuda.store.objects import Metadata
from remuda.store.validation import check_limit

_KEPT = 200
_KEPT_BYTES = 256 << 10


def page_of(found: Sequence[JournalEntry], limit: int) -> LogPage:
    """Return the first entries, and where those begin that are left."""
    check_limit(limit)
    entries = [
        Entry(position=entry.position, time=entry.time, data=msgspec.Raw(entry.data.encode()))
        for entry in found[:limit]
    ]
    return LogPage(entries, entries[-1].position if len(found) > limit else None)


def _entry(record: Record, now: datetime, position: int) -> JournalEntry:
    return JournalEntry(position=position, time=now, data=bytes(record.data).decode())


def empty(record: Record) -> Journal:
    """Return a journal for a record and others of its subject."""
    spec = JournalSpec(stream=record.stream, subject=record.subject)
    return Journal(metadata=Metadata(name=journal_name(record.stream, record.subject)), spec=spec)


def grown(journal: Journal, records: Sequence[Record], now: datetime) -> Journal:
    """Return a journal with more records, unless they are there already, and without the oldest that have no room."""
    entries = journal.spec.entries
    next_position = entries[-1].position + 1 if entries else 1
    new = [_entry(record, now, position) for position, record in enumerate(records, next_position)]
    if any(known.time == now and known.data == new[0].data for known in entries):
        return journal
    kept: list[JournalEntry] = []
    room = _KEPT_BYTES
    for entry in reversed([*entries, *new][-_KEPT:]):
        room -= len(entry.data)
        if room < 0 and kept:
            break
        kept.append(entry)
    return replace(journal, spec=replace(journal.spec, entries=tuple(reversed(kept))))


def journal_name(stream: str, subject: str) -> str:
    """Return the name of a journal: subjects may be any text, names may not."""
    return f"journal-{hashlib.sha256(f'{stream}/{subject}'.encode()).hexdigest()[:40]}"
