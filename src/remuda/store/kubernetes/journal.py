"""Logs without tables: a bounded journal object per subject.

An API server cannot append a row in the transaction of a write. A record that must be there first (`once`) is created
before its write, and taken back if that is not done; every other record follows its write, if need be later. Streams
that grow without bound, such as audit, go to a sink instead.
"""

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TypeVar

import msgspec
import structlog

from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Conflict, Invalid, NotFound, OutcomeUnknown, RemudaError, Unavailable
from remuda.store.checks import check_limit
from remuda.store.kubernetes.backoff import Backoffs
from remuda.store.kubernetes.delivery import Delivery
from remuda.store.kubernetes.errands import Errands
from remuda.store.kubernetes.kinds import JOURNAL, Journal, JournalEntry, JournalSpec
from remuda.store.kubernetes.known import Known
from remuda.store.kubernetes.writer import Writer
from remuda.store.logs import Entry, LogPage, Record, Retention
from remuda.store.objects import Metadata
from remuda.store.parts import field_index

__all__ = ["JournalLog", "Sink"]

ResultT = TypeVar("ResultT")
Sink = Callable[[Record, datetime], None]
"""Takes the records of one stream out of the store."""

_KEPT = 200
_KEPT_BYTES = 256 << 10
_ATTEMPTS = 60
_FIRST_S, _LONGEST_S = 0.005, 0.2


class JournalLog:
    """The log port on an API server."""

    def __init__(
        self,
        known: Known,
        writer: Writer,
        delivery: Delivery,
        *,
        clock: Clock,
        backoffs: Backoffs,
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
        self._log = structlog.get_logger()

    async def append(self, records: Sequence[Record]) -> None:
        """Keep records that belong to no write of an object."""
        await self._before(records)
        for record in records:
            await self._keep(record, self._clock.now())

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
        for record in records:
            await self._keep_surely(record)
        return written

    async def _before(self, records: Iterable[Record]) -> list[Journal]:
        """Keep the records that must be there before their write; return what to take back if that is not done."""
        made: list[Journal] = []
        for record in records:
            if not record.once:
                continue
            journal = _begun(record, _entry(record, self._clock.now(), 1))
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

    async def _keep_surely(self, record: Record) -> None:
        """Keep a record of a write that is done: what happens to the record must not look like a refusal of that."""
        now = self._clock.now()
        try:
            await self._keep(record, now)
        except Unavailable as error:
            self._log.warning("record not yet kept", subject=record.subject, cause=error.sentence)
            self._errands.add(f"to keep a record of {record.subject}", lambda: self._keep(record, now))
        except Exception:  # noqa: BLE001  a sink may fail in ways of its own, and the write is done
            self.lost += 1
            self._log.exception("record lost", stream=record.stream, subject=record.subject)

    async def _keep(self, record: Record, now: datetime) -> None:
        if record.stream in self._sinks:
            self._sinks[record.stream](record, now)
        elif not record.once:
            await self._add(record, now)

    async def _add(self, record: Record, now: datetime) -> None:
        """Append to a journal that others append to as well: whoever was overtaken reads again."""
        backoff = self._backoffs.new(first_s=_FIRST_S, longest_s=_LONGEST_S)
        for _ in range(_ATTEMPTS):
            journal = await self._current(record)
            try:
                if journal is None:
                    written = await self._writer.create(_begun(record, _entry(record, now, 1)))
                else:
                    written = await self._writer.update(_grown(journal, record, now))
            except (AlreadyExists, Conflict, NotFound):
                await backoff.pause()
                continue
            with suppress(Unavailable):  # it is kept; readers see it when our informer does
                await self._delivery.shown(written)
            return
        raise Unavailable(f"Too many write to the {record.stream} log of {record.subject} at once: try again.")

    async def _current(self, record: Record) -> Journal | None:
        try:
            return await self._writer.fetch(JOURNAL, _name(record.stream, record.subject))
        except NotFound:
            return None

    async def read(self, stream: str, subject: str, *, after: int = 0, limit: int = 100) -> LogPage:
        """Return the entries of a subject in the order they were written."""
        return _page([entry for entry in self._entries(stream, subject) if entry.position > after], limit)

    async def read_back(self, stream: str, subject: str, *, before: int | None = None, limit: int = 100) -> LogPage:
        """Return the entries of a subject, the latest first."""
        latest_first = reversed(self._entries(stream, subject))
        return _page([entry for entry in latest_first if before is None or entry.position < before], limit)

    def _entries(self, stream: str, subject: str) -> Sequence[JournalEntry]:
        if stream in self._sinks:
            raise Invalid(f"the {stream} log", "is kept outside the store", remedy="read it where it is sent to")
        journal = self._known.find(JOURNAL, _name(stream, subject))
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


def _page(found: Sequence[JournalEntry], limit: int) -> LogPage:
    check_limit(limit)
    entries = [
        Entry(position=entry.position, time=entry.time, data=msgspec.Raw(entry.data.encode()))
        for entry in found[:limit]
    ]
    return LogPage(entries, entries[-1].position if len(found) > limit else None)


def _entry(record: Record, now: datetime, position: int) -> JournalEntry:
    return JournalEntry(position=position, time=now, data=bytes(record.data).decode())


def _begun(record: Record, entry: JournalEntry) -> Journal:
    spec = JournalSpec(stream=record.stream, subject=record.subject, entries=(entry,))
    return Journal(metadata=Metadata(name=_name(record.stream, record.subject)), spec=spec)


def _grown(journal: Journal, record: Record, now: datetime) -> Journal:
    """Return a journal with one more record, unless it is there already, and without the oldest that have no room."""
    entries = journal.spec.entries
    entry = _entry(record, now, entries[-1].position + 1 if entries else 1)
    if any(known.time == entry.time and known.data == entry.data for known in entries):
        return journal
    kept, room = [entry], _KEPT_BYTES - len(entry.data)
    for known in reversed(entries[-_KEPT + 1 :]):
        room -= len(known.data)
        if room < 0:
            break
        kept.append(known)
    spec = msgspec.structs.replace(journal.spec, entries=tuple(reversed(kept)))
    return msgspec.structs.replace(journal, spec=spec)


def _name(stream: str, subject: str) -> str:
    """Return the name of a journal: subjects may be any text, names may not."""
    return f"journal-{hashlib.sha256(f'{stream}/{subject}'.encode()).hexdigest()[:40]}"
