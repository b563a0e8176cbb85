"""Journal log: the log port on an API server, as one bounded journal object per subject.

An API server cannot append a record in the transaction of a write. A record that must be unique (`once`) is created
before its write and removed if the write fails; every other record follows its write, with retries if necessary.
Streams that grow without bound, such as audit, go to a sink instead.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TypeVar
from weakref import WeakValueDictionary

import msgspec
import structlog
from msgspec.structs import replace

from remuda.kernel.backoff import RetryTimers
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Conflict, Invalid, NotFound, OutcomeUnknown, RemudaError, Unavailable
from remuda.store.contract import field_index
from remuda.store.kubernetes.kinds import JOURNAL, Journal, JournalEntry, JournalSpec
from remuda.store.kubernetes.mirror import InformerCache
from remuda.store.kubernetes.writer import DeliveryBarrier, RetryQueue, Writer, Written
from remuda.store.logs import Entry, LogPage, Record, Retention
from remuda.store.objects import Metadata
from remuda.store.validation import check_limit

_MAX_ENTRIES = 200
_MAX_BYTES = 256 << 10


def page_of(found: Sequence[JournalEntry], limit: int) -> LogPage:
    check_limit(limit)
    entries = [
        Entry(position=entry.position, time=entry.time, data=msgspec.Raw(entry.data.encode()))
        for entry in found[:limit]
    ]
    return LogPage(entries, entries[-1].position if len(found) > limit else None)


def new_journal(record: Record) -> Journal:
    spec = JournalSpec(stream=record.stream, subject=record.subject)
    return Journal(metadata=Metadata(name=journal_name(record.stream, record.subject)), spec=spec)


def with_records(journal: Journal, records: Sequence[Record], now: datetime) -> Journal:
    """Return a journal with these records, unless it has them already, without the oldest ones beyond its limits."""
    entries = journal.spec.entries
    next_position = entries[-1].position + 1 if entries else 1
    new = [
        JournalEntry(position=position, time=now, data=bytes(record.data).decode())
        for position, record in enumerate(records, next_position)
    ]
    if any(known.time == now and known.data == new[0].data for known in entries):
        return journal
    kept: list[JournalEntry] = []
    free_bytes = _MAX_BYTES
    for entry in reversed([*entries, *new][-_MAX_ENTRIES:]):
        free_bytes -= len(entry.data)
        if free_bytes < 0 and kept:
            break
        kept.append(entry)
    return replace(journal, spec=replace(journal.spec, entries=tuple(reversed(kept))))


def journal_name(stream: str, subject: str) -> str:
    """Return the name of a journal, a hash: subjects may be any text, names may not."""
    return f"journal-{hashlib.sha256(f'{stream}/{subject}'.encode()).hexdigest()[:40]}"


ResultT = TypeVar("ResultT")
Sink = Callable[[Record, datetime], None]
"""Sends the records of one stream out of the store."""

_ATTEMPTS = 60
_FIRST_S, _MAX_S = 0.005, 0.2


@dataclass(slots=True, weakref_slot=True)
class _JournalLock:
    """The lock of a journal within this process, for as long as it is in use."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    journal: Journal | None = None
    """The journal as the previous writer left it: our informer may not have it yet."""


class JournalLog:
    """The log port on an API server."""

    def __init__(
        self,
        known: InformerCache,
        writer: Writer,
        barrier: DeliveryBarrier,
        *,
        clock: Clock,
        backoffs: RetryTimers,
        retry_queue: RetryQueue,
        sinks: Mapping[str, Sink],
    ) -> None:
        self.lost = 0
        """Records that could not be stored although their write succeeded."""
        self._known, self._writer, self._barrier = known, writer, barrier
        self._clock, self._backoffs, self._retry_queue = clock, backoffs, retry_queue
        self._sinks = sinks
        self._locks: WeakValueDictionary[str, _JournalLock] = WeakValueDictionary()
        self._log = structlog.get_logger()

    async def append(self, records: Sequence[Record]) -> None:
        await self._store_first(records)
        for part in self._parts(records):
            await self._store(part, self._clock.now())
        for record in records:
            record.acknowledge()

    async def around(self, write: Callable[[], Awaitable[ResultT]], records: Sequence[Record]) -> ResultT:
        """Run a write with its records: first those that must precede it, then the write, then the others."""
        created = await self._store_first(records)
        try:
            written = await write()
        except OutcomeUnknown:
            raise  # the write may have succeeded, so its records stay
        except Exception:
            await self._roll_back(created)
            raise
        for part in self._parts(records):
            await self._store_reliably(part)
        for record in records:
            record.acknowledge()
        return written

    def _parts(self, records: Iterable[Record]) -> list[Sequence[Record]]:
        """Return the records to store after a write: for a sink one by one, for a journal all at once."""
        parts: dict[object, list[Record]] = {}
        for number, record in enumerate(records):
            if record.stream in self._sinks:
                parts[number] = [record]
            elif not record.once:
                parts.setdefault((record.stream, record.subject), []).append(record)
        return list(parts.values())

    async def _store_first(self, records: Iterable[Record]) -> list[Journal]:
        """Store the records that must precede their write; return the journals to remove if it fails."""
        created: list[Journal] = []
        for record in records:
            if not record.once:
                continue
            journal = with_records(new_journal(record), [record], self._clock.now())
            try:
                await self._barrier.wait(await self._writer.create(journal))
            except AlreadyExists:
                await self._roll_back(created)
                raise AlreadyExists(record.stream, record.subject) from None
            except Exception:
                await self._roll_back([*created, journal])
                raise
            created.append(journal)
        return created

    async def _roll_back(self, created: Iterable[Journal]) -> None:
        """Undo `_store_first`, now or as soon as the server responds."""
        for journal in created:
            try:
                await self._remove_if_ours(journal)
            except RemudaError as error:
                self._log.warning("log record not rolled back yet", subject=journal.spec.subject, cause=error.message)
                self._retry_queue.add(
                    f"roll back a log record of {journal.spec.subject}", partial(self._remove_if_ours, journal)
                )

    async def _remove_if_ours(self, journal: Journal) -> None:
        with suppress(NotFound, Conflict):
            found = await self._writer.fetch(JOURNAL, journal.name)
            if found.spec == journal.spec:
                removed = await self._writer.remove(JOURNAL, found)
                with suppress(Unavailable):  # it is removed; the lag of our informer does not matter
                    await self._barrier.wait(removed)

    async def _store_reliably(self, part: Sequence[Record]) -> None:
        """Store the records of a successful write, without raising: an error would look like a failed write."""
        now, subject = self._clock.now(), part[0].subject
        try:
            await self._store(part, now)
        except Unavailable as error:
            self._log.warning("log record not stored yet", subject=subject, cause=error.message)
            self._retry_queue.add(f"store a log record of {subject}", lambda: self._store(part, now))
        except Exception:  # noqa: BLE001  a sink may raise anything, and the write is done
            self.lost += len(part)
            self._log.exception("log record lost", stream=part[0].stream, subject=subject)

    async def _store(self, part: Sequence[Record], now: datetime) -> None:
        first = part[0]
        if first.stream in self._sinks:
            self._sinks[first.stream](first, now)
        else:
            await self._add(part, now)

    async def _add(self, part: Sequence[Record], now: datetime) -> None:
        """Append to a journal, one writer of this process after the other."""
        lock = self._locks.setdefault(journal_name(part[0].stream, part[0].subject), _JournalLock())
        async with lock.lock:
            written = await self._append(lock.journal, part, now)
            lock.journal = written.resource
        with suppress(Unavailable):  # it is stored; readers see it when our informer does
            await self._barrier.wait(written)

    async def _append(self, journal: Journal | None, part: Sequence[Record], now: datetime) -> Written[Journal]:
        """Write a journal with more records. Usually our copy is current; after a conflict it is read again."""
        stream, subject = part[0].stream, part[0].subject
        journal = journal or self._known.find(JOURNAL, journal_name(stream, subject))
        backoff = self._backoffs.new(first_s=_FIRST_S, longest_s=_MAX_S)
        for _ in range(_ATTEMPTS):
            try:
                if journal is None:
                    return await self._writer.create(with_records(new_journal(part[0]), part, now))
                return await self._writer.update(with_records(journal, part, now))
            except (AlreadyExists, Conflict, NotFound):
                await backoff.pause()
                journal = await self._current(stream, subject)
        raise Unavailable(f"The {stream} log of {subject} has too many concurrent writers: try again.")

    async def _current(self, stream: str, subject: str) -> Journal | None:
        try:
            return await self._writer.fetch(JOURNAL, journal_name(stream, subject))
        except NotFound:
            return None

    async def read(self, stream: str, subject: str, *, after: int = 0, limit: int = 100) -> LogPage:
        return page_of([entry for entry in self._entries(stream, subject) if entry.position > after], limit)

    async def read_back(self, stream: str, subject: str, *, before: int | None = None, limit: int = 100) -> LogPage:
        latest_first = reversed(self._entries(stream, subject))
        return page_of([entry for entry in latest_first if before is None or entry.position < before], limit)

    def _entries(self, stream: str, subject: str) -> Sequence[JournalEntry]:
        if stream in self._sinks:
            raise Invalid(f"the {stream} log", "is not stored here", remedy="read it at its destination")
        journal = self._known.find(JOURNAL, journal_name(stream, subject))
        return journal.spec.entries if journal else ()

    async def trim(self, retention: Retention) -> None:
        """Delete the journals whose last record is older than their stream's retention."""
        for stream, age in retention.items():
            oldest = self._clock.now() - age
            async for journal in self._known.under(JOURNAL, field_index("stream"), stream):
                if all(entry.time < oldest for entry in journal.spec.entries):
                    await self._drop(journal)

    async def _drop(self, journal: Journal) -> None:
        """Remove a journal unless it was just written to. A failure is retried at the next interval."""
        try:
            with suppress(Conflict, NotFound):
                await self._writer.remove(JOURNAL, journal)
        except RemudaError as error:
            self._log.warning("old journal not deleted", subject=journal.spec.subject, cause=error.message)
