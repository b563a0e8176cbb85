"""Logs without tables: a bounded journal object per subject.

An API server cannot append a row in the transaction of a write. A record that must be there first (`once`) is created
before its write and taken back if the write is refused; every other record follows its write. Streams that grow without
bound, such as audit, go to a sink instead.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Conflict, Invalid, NotFound
from remuda.store.kubernetes.kinds import JOURNAL, Journal, JournalEntry, JournalSpec
from remuda.store.kubernetes.writer import Writer
from remuda.store.logs import Entry, LogPage, Record, Retention
from remuda.store.objects import Metadata
from remuda.store.readside.reader import Reader
from remuda.store.readside.terms import field_index

__all__ = ["JournalLog", "Sink"]

Sink = Callable[[Record, datetime], None]
"""Takes the records of one stream out of the store."""

_KEPT = 200
_ATTEMPTS = 20


class JournalLog:
    """The log port on an API server."""

    def __init__(self, reader: Reader, writer: Writer, clock: Clock, *, sinks: Mapping[str, Sink]) -> None:
        self._reader = reader
        self._writer = writer
        self._clock = clock
        self._sinks = sinks

    async def append(self, records: Sequence[Record]) -> None:
        """Keep records that belong to no write of an object."""
        await self.before(records)
        await self.after(records)

    async def before(self, records: Iterable[Record]) -> list[Journal]:
        """Keep the records that must be there before their write; return what to take back if it is refused."""
        made: list[Journal] = []
        for record in records:
            if record.once:
                try:
                    made.append(await self._writer.create(self._begun(record)))
                except AlreadyExists:
                    await self.take_back(made)
                    raise AlreadyExists(record.stream, record.subject) from None
        return made

    async def take_back(self, made: Iterable[Journal]) -> None:
        """Undo `before`: the write it belongs to was refused."""
        for journal in made:
            await self._writer.remove(JOURNAL, journal)

    async def after(self, records: Iterable[Record]) -> None:
        """Keep the records of a write that is done."""
        for record in records:
            if record.stream in self._sinks:
                self._sinks[record.stream](record, self._clock.now())
            elif not record.once:
                await self._add(record)

    async def read(self, stream: str, subject: str, *, after: int = 0, limit: int = 100) -> LogPage:
        """Return the entries of a subject in the order they were written."""
        if stream in self._sinks:
            raise Invalid(f"the {stream} log", "is kept outside the store", remedy="read it where it is sent to")
        journal = self._reader.find(JOURNAL, _name(stream, subject))
        later = [entry for entry in journal.spec.entries if entry.position > after] if journal else []
        entries = [
            Entry(position=entry.position, time=entry.time, data=msgspec.Raw(entry.data.encode()))
            for entry in later[:limit]
        ]
        return LogPage(entries, entries[-1].position if len(later) > limit else None)

    async def trim(self, retention: Retention) -> None:
        """Drop the journals whose last record is older than their stream's retention."""
        for stream, age in retention.items():
            oldest = self._clock.now() - age
            for journal in self._reader.under(JOURNAL, field_index("stream"), stream):
                if all(entry.time < oldest for entry in journal.spec.entries):
                    await self._writer.remove(JOURNAL, journal)

    async def _add(self, record: Record) -> None:
        """Append to a journal that others append to as well: whoever was overtaken reads again."""
        for _ in range(_ATTEMPTS):
            journal = await self._current(record)
            try:
                if journal is None:
                    await self._writer.create(self._begun(record))
                else:
                    await self._writer.update(self._grown(journal, record))
            except (AlreadyExists, Conflict, NotFound):
                continue
            return
        raise Conflict(JOURNAL.name, record.subject)

    async def _current(self, record: Record) -> Journal | None:
        try:
            return await self._writer.fetch(JOURNAL, _name(record.stream, record.subject))
        except NotFound:
            return None

    def _begun(self, record: Record) -> Journal:
        spec = JournalSpec(stream=record.stream, subject=record.subject, entries=(self._entry(record, 1),))
        return Journal(metadata=Metadata(name=_name(record.stream, record.subject)), spec=spec)

    def _grown(self, journal: Journal, record: Record) -> Journal:
        entries = journal.spec.entries
        entry = self._entry(record, entries[-1].position + 1 if entries else 1)
        spec = msgspec.structs.replace(journal.spec, entries=(*entries, entry)[-_KEPT:])
        return msgspec.structs.replace(journal, spec=spec)

    def _entry(self, record: Record, position: int) -> JournalEntry:
        return JournalEntry(position=position, time=self._clock.now(), data=bytes(record.data).decode())


def _name(stream: str, subject: str) -> str:
    """Return the name of a journal: subjects may be any text, names may not."""
    return f"journal-{hashlib.sha256(f'{stream}/{subject}'.encode()).hexdigest()[:40]}"
