"""The kinds this backend keeps for itself, beside those of its registry."""

from datetime import datetime

from remuda.store.kinds import Index, Kind
from remuda.store.objects import Resource, StoredStruct


class JournalEntry(StoredStruct, frozen=True):
    """One record. `data` is JSON as text, because its shape is not ours to declare."""

    position: int
    time: datetime
    data: str


class JournalSpec(StoredStruct, frozen=True):
    """The newest records of a subject, oldest first."""

    stream: str
    subject: str
    entries: tuple[JournalEntry, ...] = ()


class Journal(Resource, frozen=True):
    """What happened to one subject, in one stream."""

    spec: JournalSpec


JOURNAL = Kind(
    type=Journal,
    group="store.remuda",
    version="v1alpha1",
    plural="journals",
    indexes=(Index(name="stream", values=lambda journal: [journal.spec.stream]),),
    columns={"Stream": ".spec.stream", "Subject": ".spec.subject"},
)
"""The kind of journals, which every registry of this backend holds."""
