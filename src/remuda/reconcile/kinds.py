"""Kinds of reconciliation: leases and deletion guard records, registered with every service that uses them."""

from datetime import datetime
from typing import Annotated

from remuda.store.kinds import Index, Kind, keyed
from remuda.store.objects import Resource, StoredStruct

_GROUP, _VERSION = "core.remuda", "v1alpha1"


class LeaseSpec(StoredStruct, frozen=True):
    """The holder of a lease, and the number of its renewals."""

    holder: str = ""
    """The process that leads; empty after a release."""
    duration_s: float = 0.0
    """Time after a renewal during which no other process takes over."""
    renewals: int = 0
    """Increases with every renewal: a process that sees no change for the duration may take over."""
    transitions: int = 0
    """The number of changes of the holder."""
    acquired: datetime | None = None
    """The time when the holder acquired it, by its own clock: for humans, never compared."""


class LeaseRecord(Resource, frozen=True):
    """The right to control, held by one process at a time."""

    spec: LeaseSpec = LeaseSpec()


LEASE = Kind(
    type=LeaseRecord,
    group=_GROUP,
    version=_VERSION,
    plural="leases",
    uncounted="one for each controller",
    columns={"Holder": ".spec.holder", "Transitions": ".spec.transitions"},
)
"""One lease for each service that needs a single controlling process."""


EVERYTHING = "*"
"""The group of a deletion guard for all groups together: no label can have this value."""


class Deletion(StoredStruct, frozen=True):
    """A deletion at a provider that no user requested."""

    uid: str
    time: datetime


class DeletionGuardSpec(StoredStruct, frozen=True):
    """The recent deletions of one controller in one group, and whether they exceeded the limit."""

    controller: str = ""
    group: str = ""
    """The value of a label, empty for objects without it, or `EVERYTHING`."""
    deleted: Annotated[tuple[Deletion, ...], keyed("uid")] = ()
    tripped: datetime | None = None
    """The time since when nothing more is deleted; None while deletion is allowed."""


class DeletionGuardRecord(Resource, frozen=True):
    """The state of a deletion guard. It is stored so that a restart does not reset it."""

    spec: DeletionGuardSpec = DeletionGuardSpec()


DELETION_GUARD = Kind(
    type=DeletionGuardRecord,
    group=_GROUP,
    version=_VERSION,
    plural="deletionguards",
    uncounted="one for each controller",
    indexes=(Index(name="tripped", values=lambda record: [record.spec.controller] if record.spec.tripped else []),),
    columns={"Controller": ".spec.controller", "Group": ".spec.group", "Tripped": ".spec.tripped"},
)
"""The tripped ones of a controller are found by `("tripped", controller)`."""
