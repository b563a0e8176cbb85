"""Which records a query means, and how one is read."""

import msgspec

from remuda.http.audit import AuditRecord
from remuda.identity.auditing.wire import AuditQuery, EntryRead
from remuda.store.logs import Entry

_DECODE = msgspec.json.Decoder(AuditRecord).decode


def read_entry(entry: Entry) -> EntryRead:
    """Return a record as clients read it."""
    record = _DECODE(entry.data)
    return EntryRead(
        time=entry.time,
        actor=record.actor,
        operation=record.operation,
        resource=record.resource,
        result=record.result,
        scope=record.scope,
        component=record.component,
        trace_id=record.trace_id,
    )


def is_wanted(read: EntryRead, query: AuditQuery) -> bool:
    """Tell whether a record is one that a query means."""
    return (
        (query.actor is None or query.actor in {read.actor.subject, read.actor.actor, read.actor.service})
        and (query.resource is None or query.resource == read.resource.type)
        and (query.resource_id is None or query.resource_id == read.resource.id)
        and (query.until is None or read.time <= query.until)
        and (query.status is None or _has_status(read.result.status, query.status))
    )


def is_too_old(entry: Entry, query: AuditQuery) -> bool:
    """Tell whether a record, and so every one before it, is from before the time that a query means."""
    return query.since is not None and entry.time < query.since


def _has_status(status: int, wanted: str) -> bool:
    return str(status)[0] == wanted[0] if wanted.endswith("xx") else str(status) == wanted
