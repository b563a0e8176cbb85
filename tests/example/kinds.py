"""What the livery keeps: yards, the mounts that stand in them, and who has which stall.

A yard owns its mounts and its ledger, and the ledger owns its rows. The quota ledger is design section 5 in small: one
head per yard with the total and the intents in flight, and a row per allocation, named after the operation that took
it.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal

from remuda.kernel.conditions import Condition
from remuda.kernel.secrets import Secret
from remuda.kernel.tags import Tag
from remuda.store.kinds import Index, Kind, keyed
from remuda.store.objects import Metadata, Resource, StoredStruct

GROUP = "livery.remuda"

ORGANIZATION = "unikorn-cloud.org/organization"
PROJECT = "unikorn-cloud.org/project"
NAME = "unikorn-cloud.org/name"
YARD_LABEL = f"{GROUP}/yard"
CREATOR = "unikorn-cloud.org/creator"

IN_PASTURE = f"{GROUP}/pasture"
"""Keeps a mount until the pasture no longer has it and its stall is free."""
IN_CARE = f"{GROUP}/yard"
"""Keeps a yard until its controller has seen everything in it go."""
KEEPS_LEDGER = f"{GROUP}/ledger"
"""Keeps a ledger until nobody holds a stall of it, even while its yard goes."""
HELD = f"{GROUP}/held"
"""Keeps a row for as long as its stall is taken, even while its yard goes."""

Life = Literal["unconfirmed", "confirmed", "released"]


class YardSpec(StoredStruct, frozen=True):
    stalls: int = 0
    description: str = ""
    tags: tuple[Tag, ...] = ()


class YardStatus(StoredStruct, frozen=True):
    conditions: Annotated[tuple[Condition, ...], keyed("type")] = ()
    observed_generation: int = 0


class Yard(Resource, frozen=True):
    spec: YardSpec = YardSpec()
    status: YardStatus = YardStatus()


class MountSpec(StoredStruct, frozen=True):
    yard: str = ""
    breed: str = ""
    paddock: str = ""
    description: str = ""
    tags: tuple[Tag, ...] = ()
    operation: str = ""
    """The operation that made it, under whose name it holds its stall."""
    brand: Secret | None = None


class MountStatus(StoredStruct, frozen=True):
    conditions: Annotated[tuple[Condition, ...], keyed("type")] = ()
    observed_generation: int = 0
    pasture_id: str = ""
    """What the pasture calls it; empty until it was seen there."""
    paddock: str = ""
    """Where it was last seen."""


class Mount(Resource, frozen=True):
    spec: MountSpec = MountSpec()
    status: MountStatus = MountStatus()


class Intent(StoredStruct, frozen=True):
    """A change of the total that is not settled yet: a stall being taken, or being given back."""

    operation: str
    deadline: datetime
    is_release: bool = False


class LedgerSpec(StoredStruct, frozen=True):
    limit: int = 0
    used: int = 0
    intents: tuple[Intent, ...] = ()


class Ledger(Resource, frozen=True):
    """The head: as many stalls are used as there are living rows, and intents to take one that have no row yet."""

    spec: LedgerSpec = LedgerSpec()


class StallSpec(StoredStruct, frozen=True):
    yard: str = ""
    life: Life = "unconfirmed"
    released_at: datetime | None = None


class Stall(Resource, frozen=True):
    """A row. A released one stays for a while and keeps its name from whoever was asleep."""

    spec: StallSpec = StallSpec()


YARD = Kind(type=Yard, group=GROUP, version="v1alpha1", plural="yards", columns={"Stalls": ".spec.stalls"})


def _operation_of(mount: Mount) -> Iterable[str]:
    return [mount.spec.operation] if mount.spec.operation else []


MOUNT = Kind(
    type=Mount,
    group=GROUP,
    version="v1alpha1",
    plural="mounts",
    indexes=(Index(name="operation", values=_operation_of),),
    columns={"Breed": ".spec.breed", "Yard": ".spec.yard"},
)
LEDGER = Kind(type=Ledger, group=GROUP, version="v1alpha1", plural="ledgers", columns={"Used": ".spec.used"})
STALL = Kind(
    type=Stall,
    group=GROUP,
    version="v1alpha1",
    plural="stalls",
    indexes=(Index(name="released", values=lambda row: [row.spec.yard] if row.spec.life == "released" else []),),
    columns={"Life": ".spec.life"},
)
KINDS: tuple[Kind[Any], ...] = (YARD, MOUNT, LEDGER, STALL)
"""All kinds of the livery's own."""


def scope_of(resource: Resource) -> tuple[str, str]:
    """Return the organization and the project of an object."""
    return resource.metadata.labels[ORGANIZATION], resource.metadata.labels[PROJECT]


def scope_labels(metadata: Metadata) -> dict[str, str]:
    """Return the labels that a child takes over from its yard."""
    return {key: metadata.labels[key] for key in (ORGANIZATION, PROJECT)}
