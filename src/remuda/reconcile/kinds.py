"""The kinds that reconciling keeps for itself. Every registry whose services use them holds them."""

from datetime import datetime
from typing import Annotated

from remuda.store.kinds import Index, Kind, keyed
from remuda.store.objects import Resource, StoredStruct

_GROUP, _VERSION = "core.remuda", "v1alpha1"


class LeaseSpec(StoredStruct, frozen=True):
    """Who controls, and how often that was confirmed."""

    holder: str = ""
    """The process that leads; empty when the last one has let go."""
    duration_s: float = 0.0
    """For how long after a renewal nobody else takes over."""
    renewals: int = 0
    """Moves with every renewal: whoever sees it stand still for the duration may take over."""
    transitions: int = 0
    """How often the holder has changed."""
    acquired: datetime | None = None
    """When the holder began, by its own clock: for people, never compared."""


class LeaseRecord(Resource, frozen=True):
    """The right to control, held by one process at a time."""

    spec: LeaseSpec = LeaseSpec()


LEASE = Kind(
    type=LeaseRecord,
    group=_GROUP,
    version=_VERSION,
    plural="leases",
    columns={"Holder": ".spec.holder", "Transitions": ".spec.transitions"},
)
"""One lease for each service that is to have one controlling process."""


EVERYTHING = "*"
"""The group of a breaker that stands for all groups together: no label can have this value."""


class Destruction(StoredStruct, frozen=True):
    """Something that was let go at a provider although no user had asked for it."""

    uid: str
    time: datetime


class BreakerSpec(StoredStruct, frozen=True):
    """What one controller has destroyed in one group lately, and whether that was too much."""

    controller: str = ""
    group: str = ""
    """The value of a label, empty for objects without it, or `EVERYTHING`."""
    destroyed: Annotated[tuple[Destruction, ...], keyed("uid")] = ()
    tripped: datetime | None = None
    """Since when nothing more is destroyed; None while it may be."""


class BreakerRecord(Resource, frozen=True):
    """The state of a mass-destruction breaker. It is stored so that no restart can reset it."""

    spec: BreakerSpec = BreakerSpec()


BREAKER = Kind(
    type=BreakerRecord,
    group=_GROUP,
    version=_VERSION,
    plural="breakers",
    indexes=(Index(name="tripped", values=lambda record: [record.spec.controller] if record.spec.tripped else []),),
    columns={"Controller": ".spec.controller", "Group": ".spec.group", "Tripped": ".spec.tripped"},
)
"""Those of a controller that have tripped are found by `("tripped", controller)`."""
