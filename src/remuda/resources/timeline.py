"""What somebody's request did to an object, told in the object's timeline.

Controllers tell theirs (`reconcile.run`), and so do operations (`operations.reporter`). This is for what a request does
by itself: hand the record over with the write, so that neither is kept without the other.
"""

from typing import Any

import msgspec

from remuda.access.principal import Context
from remuda.store.kinds import Kind
from remuda.store.logs import Record, subject_of
from remuda.store.objects import ResourceT

_encode = msgspec.json.Encoder(order="deterministic").encode


def requested(context: Context, kind: Kind[ResourceT], found: ResourceT, event: str, **facts: Any) -> Record:
    """Return the entry for what a caller did to an object.

    `event` is for programs: one CamelCase word that says what was done, such as `DeletionRequested`. Facts are JSON,
    for everybody's eyes.
    """
    said = {
        **facts,
        "event": event,
        "uid": found.uid,
        "generation": found.metadata.generation,
        "actor": context.principal.who,
        "traceId": context.trace_id,
    }
    return Record(stream="timeline", subject=subject_of(kind.qualified, found.name), data=msgspec.Raw(_encode(said)))
