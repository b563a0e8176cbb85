"""Logs without tables: a bounded journal object per subject.

An API server cannot append a row in the transaction of a write. A record that must be there first (`once`) is created
before its write, and taken back if that is not done; every other record follows its write, if need be later. Streams
that grow without bound, such as audit, go to a sink instead.

What is in a journal: records in the order in which they came, and no more of them than it has room for.
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
from remuda.store.kubernetes.mirror import Known
from remuda.store.kubernetes.writer import Delivery, Errands, Writer, Written
from remuda.store.logs import Entry, LogPage, Record, Retention
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


ResultT = TypeVar("ResultT")
Sink = Callable[[Record, datetime], None]
"""Takes the records of one stream out of the store."""

_ATTEMPTS = 60
_FIRST_S, _LONGEST_S = 0.005, 0.2


@dataclass(slots=True, weakref_slot=True)
class _Turn:
    """Who of this process writes to a journal, for as long as anybody does."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    journal: Journal | None = None
    """As the one before left it: our informer may not have shown it yet."""


class JournalLog:
    """The log port on an API server."""

    def __init__(
        self,
        known: Known,
        writer: Writer,
        delivery: Delivery,
        *,
        clock: Clock,
        backoffs: RetryTimers,
        errands: Errands,
        sinks: Mapping[str, Sink],
    ) -> None:
        self.lost = 0
        """Records that could not be kept although their write was done."""
        self._known = known
        self._writer = writer
        self._delivery = delivery
        self._clock = clock
        self._backoffs = backoffs
        self._errands = errands
        self._sinks = sinks
        self._turns: WeakValueDictionary[str, _Turn] = WeakValueDictionary()
        self._log = structlog.get_logger()

    async def append(self, records: Sequence[Record]) -> None:
        """Keep records that belong to no write of an object."""
        await self._before(records)
        for part in self._parts(records):
            await self._keep(part, self._clock.now())

    async def around(self, write: Callable[[], Awaitable[ResultT]], records: Sequence[Record]) -> ResultT:
        """Do a write with its records: those that come first, then the write, then the others."""
        made = await self._before(records)
        try:
            written = await write()
        except OutcomeUnknown:
            raise  # it may be done, so its records stay
        except Exception:
            await self._take_back(made)
            raise
        for part in self._parts(records):
            await self._keep_surely(part)
        return written

    def _parts(self, records: Iterable[Record]) -> list[Sequence[Record]]:
        """Return what is kept after a write: for a sink record by record, for a journal all that goes there at once."""
        parts: dict[object, list[Record]] = {}
        for number, record in enumerate(records):
            if record.stream in self._sinks:
                parts[number] = [record]
            elif not record.once:
                parts.setdefault((record.stream, record.subject), []).append(record)
        return list(parts.values())

    async def _before(self, records: Iterable[Record]) -> list[Journal]:
        """Keep the records that must be there before their write; return what to take back if that is not done."""
        made: list[Journal] = []
        for record in records:
            if not record.once:
                continue
            journal = grown(empty(record), [record], self._clock.now())
            try:
                await self._delivery.shown(await self._writer.create(journal))
            except AlreadyExists:
                await self._take_back(made)
                raise AlreadyExists(record.stream, record.subject) from None
            except Exception:
                await self._take_back([*made, journal])
                raise
            made.append(journal)
        return made

    async def _take_back(self, made: Iterable[Journal]) -> None:
        """Undo `_before`, now or as soon as the server answers."""
        for journal in made:
            try:
                await self._withdraw(journal)
            except RemudaError as error:
                self._log.warning("record not yet taken back", subject=journal.spec.subject, cause=error.sentence)
                self._errands.add(f"to take back a record of {journal.spec.subject}", partial(self._withdraw, journal))

    async def _withdraw(self, journal: Journal) -> None:
        """Remove a journal if it is the one we made."""
        with suppress(NotFound, Conflict):
            found = await self._writer.fetch(JOURNAL, journal.name)
            if found.spec == journal.spec:
                removed = await self._writer.remove(JOURNAL, found)
                with suppress(Unavailable):  # it is gone; that our own informer lags is no matter
                    await self._delivery.shown(removed)

    async def _keep_surely(self, part: Sequence[Record]) -> None:
        """Keep records of a write that is done: what happens to them must not look like a refusal of that."""
        now, subject = self._clock.now(), part[0].subject
        try:
            await self._keep(part, now)
        except Unavailable as error:
            self._log.warning("record not yet kept", subject=subject, cause=error.sentence)
            self._errands.add(f"to keep a record of {subject}", lambda: self._keep(part, now))
        except Exception:  # noqa: BLE001  a sink may fail in ways of its own, and the write is done
            self.lost += len(part)
            self._log.exception("record lost", stream=part[0].stream, subject=subject)

    async def _keep(self, part: Sequence[Record], now: datetime) -> None:
        first = part[0]
        if first.stream in self._sinks:
            self._sinks[first.stream](first, now)
        else:
            await self._add(part, now)

    async def _add(self, part: Sequence[Record], now: datetime) -> None:
        """Append to a journal that others append to as well: those of this process one after the other."""
        turn = self._turns.setdefault(journal_name(part[0].stream, part[0].subject), _Turn())
        async with turn.lock:
            written = await self._grow(turn.journal, part, now)
            turn.journal = written.resource
        with suppress(Unavailable):  # it is kept; readers see it when our informer does
            await self._delivery.shown(written)

    async def _grow(self, journal: Journal | None, part: Sequence[Record], now: datetime) -> Written[Journal]:
        """Write a journal with more records. Mostly it is as we know it; whoever was overtaken asks for it."""
        stream, subject = part[0].stream, part[0].subject
        journal = journal or self._known.find(JOURNAL, journal_name(stream, subject))
        backoff = self._backoffs.new(first_s=_FIRST_S, longest_s=_LONGEST_S)
        for _ in range(_ATTEMPTS):
            try:
                if journal is None:
                    return await self._writer.create(grown(empty(part[0]), part, now))
                return await self._writer.update(grown(journal, part, now))
            except (AlreadyExists, Conflict, NotFound):
                await backoff.pause()
                journal = await self._current(stream, subject)
        raise Unavailable(f"Too many write to the {stream} log of {subject} at once: try again.")

    async def _current(self, stream: str, subject: str) -> Journal | None:
        try:
            return await self._writer.fetch(JOURNAL, journal_name(stream, subject))
        except NotFound:
            return None

    async def read(self, stream: str, subject: str, *, after: int = 0, limit: int = 100) -> LogPage:
        """Return the entries of a subject in the order they were written."""
        return page_of([entry for entry in self._entries(stream, subject) if entry.position > after], limit)

    async def read_back(self, stream: str, subject: str, *, before: int | None = None, limit: int = 100) -> LogPage:
        """Return the entries of a subject, the latest first."""
        latest_first = reversed(self._entries(stream, subject))
        return page_of([entry for entry in latest_first if before is None or entry.position < before], limit)

    def _entries(self, stream: str, subject: str) -> Sequence[JournalEntry]:
        if stream in self._sinks:
            raise Invalid(f"the {stream} log", "is kept outside the store", remedy="read it where it is sent to")
        journal = self._known.find(JOURNAL, journal_name(stream, subject))
        return journal.spec.entries if journal else ()

    async def trim(self, retention: Retention) -> None:
        """Drop the journals whose last record is older than their stream's retention."""
        for stream, age in retention.items():
            oldest = self._clock.now() - age
            async for journal in self._known.under(JOURNAL, field_index("stream"), stream):
                if all(entry.time < oldest for entry in journal.spec.entries):
                    await self._drop(journal)

    async def _drop(self, journal: Journal) -> None:
        """Remove a journal unless somebody has just written to it. What cannot be removed now has time."""
        try:
            with suppress(Conflict, NotFound):
                await self._writer.remove(JOURNAL, journal)
        except RemudaError as error:
            self._log.warning("old records not dropped", subject=journal.spec.subject, cause=error.sentence)
