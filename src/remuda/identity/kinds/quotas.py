"""The quota ledger as it is stored: a head for each organization, and a row for each allocation.

The head is the organization's `Quota` object, named after the organization: limits, totals and intents lie in one
object, so that one compare-and-swap settles a race between an allocation and a lower limit. A row is an `Allocation`,
named after the operation that took it.

The law: a total is the sum of what the intents hold and of what the living rows without an intent hold.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal

from remuda.identity.kinds.common import SHARED, VERSION
from remuda.kernel.tags import Tag
from remuda.resources.conventions import ORGANIZATION, PROJECT, RESOURCE_ID, RESOURCE_KIND, UNINDEXED
from remuda.store.kinds import Index, Kind, keyed
from remuda.store.objects import Resource, StoredStruct

KEEPS_LEDGER = f"{SHARED}/ledger"
"""Keeps a head until nothing is held from it, even while its organization goes."""

HELD = f"{SHARED}/held"
"""Keeps a row until it is released, whoever deletes it."""

Life = Literal["unconfirmed", "confirmed", "released"]
"""How a row stands: its owner has yet to say that it is there, it has, or nothing is held any more."""


Action = Literal["take", "change", "release"]
"""What is under way with a row."""


class Amount(StoredStruct, frozen=True, omit_defaults=False):
    """How much of one kind: in use for sure, and maybe in use."""

    kind: str
    committed: int = 0
    reserved: int = 0


Amounts = Annotated[tuple[Amount, ...], keyed("kind")]
"""How much of each kind."""


class Limit(StoredStruct, frozen=True, omit_defaults=False):
    """How much of one kind there may be."""

    kind: str
    quantity: int


Limits = Annotated[tuple[Limit, ...], keyed("kind")]
"""How much of each kind there may be."""


class ProjectLedger(StoredStruct, frozen=True):
    """What one project may use, beside what its organization may, and what it does use."""

    project: str
    quotas: Limits = ()
    totals: Amounts = ()
    is_closed: bool = False
    """The project goes: nothing can be held in it any more."""


class Intent(StoredStruct, frozen=True):
    """A change that is not settled yet: a row being taken, changed or released."""

    allocation: str
    """The row's name."""
    project: str
    owner: str
    """`owner_value` of what it is for."""
    action: Action
    holds: Amounts
    """What the totals hold for the row while this intent is open."""
    deadline: datetime
    wants: Amounts = ()
    """What a change makes of the row."""
    turn: int = 0
    """In which turn of what the row is for, as `AllocationSpec` has it."""


class QuotaSpec(StoredStruct, frozen=True):
    """The head: limits, totals, and the intents in flight."""

    quotas: Limits = ()
    totals: Amounts = ()
    projects: Annotated[tuple[ProjectLedger, ...], keyed("project")] = ()
    intents: Annotated[tuple[Intent, ...], keyed("allocation")] = ()


class Quota(Resource, frozen=True):
    """The head of one organization's ledger. Kinds without a limit here have that of their metadata."""

    spec: QuotaSpec = QuotaSpec()


class QuotaMetadataSpec(StoredStruct, frozen=True, omit_defaults=False):
    """What one kind of quota is, and how much of it everybody has to begin with."""

    display_name: str = ""
    description: str = ""
    default: int = 0
    format: Literal["decimal", "binary"] = "decimal"


class QuotaMetadata(Resource, frozen=True):
    """One kind of quota, which is the name of this object."""

    spec: QuotaMetadataSpec = QuotaMetadataSpec()


class AllocationSpec(StoredStruct, frozen=True):
    """What a row holds, and from when to when."""

    allocations: Amounts = ()
    life: Life = "unconfirmed"
    started: datetime | None = None
    ended: datetime | None = None
    taken_under: datetime | None = None
    """The deadline of the intent under which it was taken, or renewed last: what it settles when it is confirmed."""
    tags: tuple[Tag, ...] = ()
    turn: int = 0
    """The last turn of what it is for in which it was changed, or ended: who comes with an earlier one is late."""


class Allocation(Resource, frozen=True):
    """A row. Labels say who pays and what it is for. A released one stays, for those who ask what was used when.

    Nobody owns it: what it is for may outlive the wish to delete its project for long, and what was used is asked for
    when the organization is gone. While it is living its head counts it, and stays.
    """

    spec: AllocationSpec = AllocationSpec()


def owner_value(kind: str, name: str) -> str:
    """Return the value of the index `owner` for the rows of one owner."""
    return f"{kind}/{name}"


def charge_value(organization: str, kind: str) -> str:
    """Return the value of the index `charge` for an organization's rows that hold, or held, something of a kind."""
    return f"{organization}/{kind}"


def _owner(row: Allocation) -> Iterator[str]:
    if row.spec.life != "released":
        yield owner_value(row.metadata.labels[RESOURCE_KIND], row.metadata.labels[RESOURCE_ID])


def _living(row: Allocation) -> Iterator[str]:
    if row.spec.life != "released":
        yield row.metadata.labels[ORGANIZATION]
        yield row.metadata.labels[PROJECT]


def _charge(row: Allocation) -> Iterator[str]:
    for amount in row.spec.allocations:
        yield charge_value(row.metadata.labels[ORGANIZATION], amount.kind)


def _ended(row: Allocation) -> Iterator[str]:
    if row.spec.life == "released" and row.spec.ended is not None:
        yield row.spec.ended.date().isoformat()


QUOTA_METADATA = Kind(type=QuotaMetadata, group=SHARED, version=VERSION, plural="quotametadata")
"""The kinds of quota: those that are built in are written at each start, an operator may add others."""

QUOTA = Kind(type=Quota, group=SHARED, version=VERSION, plural="quotas")
"""Heads, named after their organizations."""

ALLOCATION = Kind(
    type=Allocation,
    group=SHARED,
    version=VERSION,
    plural="allocations",
    indexes=(
        Index(name="owner", values=_owner),
        Index(name="living", values=_living),
        Index(name="charge", values=_charge),
        Index(name="ended", values=_ended),
    ),
    unindexed=UNINDEXED | {RESOURCE_ID, RESOURCE_KIND},
    columns={"Life": ".spec.life"},
)
"""Rows. Living ones are found by what they are for, and by organization or project; released ones by the day they
ended; all by what they charge."""
