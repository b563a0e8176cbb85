"""Stored kinds of the quota ledger: a quota record for each organization, and its allocations.

The quota record is the `Quota` object named after the organization. It has limits, totals and intents in one object, so
that one compare-and-swap decides a race between a reservation and a lower limit. An `Allocation` is named after the
operation that created it.

Invariant: a total is the sum of the amounts of all intents, and of all active allocations without an intent.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal

from remuda.identity.kinds.common import SHARED, shared_kind
from remuda.kernel.tags import Tag
from remuda.resources.conventions import NAME, ORGANIZATION, PROJECT, RESOURCE_ID, RESOURCE_KIND, UNINDEXED
from remuda.store.kinds import Index, keyed
from remuda.store.objects import Resource, StoredStruct

LEDGER_FINALIZER = f"{SHARED}/ledger"
"""Finalizer of a quota record until nothing is counted in it."""

ALLOCATION_FINALIZER = f"{SHARED}/allocation"
"""Finalizer of an allocation until it is released."""

AllocationState = Literal["unconfirmed", "confirmed", "released"]
"""State of an allocation: its owner has yet to confirm it, has confirmed it, or it is released."""


Action = Literal["reserve", "update", "release"]
"""Change that an intent is for."""


class Amount(StoredStruct, frozen=True, omit_defaults=False):
    """Committed and reserved amount of one kind."""

    kind: str
    committed: int = 0
    reserved: int = 0


Amounts = Annotated[tuple[Amount, ...], keyed("kind")]


class Limit(StoredStruct, frozen=True, omit_defaults=False):
    """Limit of one kind."""

    kind: str
    quantity: int


Limits = Annotated[tuple[Limit, ...], keyed("kind")]


class ProjectTotals(StoredStruct, frozen=True):
    """Limits of a project, beside those of its organization, and its usage."""

    project: str
    quotas: Limits = ()
    totals: Amounts = ()
    is_closed: bool = False
    """The project is being removed and accepts no allocations."""


class Intent(StoredStruct, frozen=True):
    """Change of an allocation that is not complete."""

    allocation: str
    project: str
    owner: str
    """Owner of the allocation, by `owner_value`."""
    action: Action
    amounts: Amounts
    """Amounts that the totals have for the allocation while this intent is open."""
    deadline: datetime
    new_amounts: Amounts = ()
    """Amounts of the allocation after an update."""
    fencing_token: int = 0
    """Fencing token of the change, as in `AllocationSpec`."""


class QuotaSpec(StoredStruct, frozen=True):
    """Limits, totals and open intents."""

    quotas: Limits = ()
    totals: Amounts = ()
    projects: Annotated[tuple[ProjectTotals, ...], keyed("project")] = ()
    intents: Annotated[tuple[Intent, ...], keyed("allocation")] = ()


class Quota(Resource, frozen=True):
    """Quota record of an organization. Kinds without a limit here have the default of their metadata."""

    spec: QuotaSpec = QuotaSpec()


class QuotaMetadataSpec(StoredStruct, frozen=True, omit_defaults=False):
    """Description and default limit of a quota kind."""

    display_name: str = ""
    description: str = ""
    default: int = 0
    format: Literal["decimal", "binary"] = "decimal"


class QuotaMetadata(Resource, frozen=True):
    """Quota kind, by the name of the object."""

    spec: QuotaMetadataSpec = QuotaMetadataSpec()


class AllocationSpec(StoredStruct, frozen=True):
    """Amounts and period of an allocation."""

    allocations: Amounts = ()
    state: AllocationState = "unconfirmed"
    started: datetime | None = None
    ended: datetime | None = None
    intent_deadline: datetime | None = None
    """Deadline of the intent under which it was last reserved or renewed; confirming it completes this intent."""
    tags: tuple[Tag, ...] = ()
    fencing_token: int = 0
    """Last fencing token with which it was changed or released. Requests with an earlier one are rejected."""


class Allocation(Resource, frozen=True):
    """Quota used by one object. Labels name the payer and the owner. Released ones are kept as usage records.

    It has no owner reference: the object may outlive the request to delete its project, and usage is read after the
    organization was deleted. While it is active, the quota record counts it and remains.
    """

    spec: AllocationSpec = AllocationSpec()


def owner_value(kind: str, name: str) -> str:
    return f"{kind}/{name}"


def charge_value(organization: str, kind: str) -> str:
    """Return the value of the index `charge`: allocations of an organization with an amount of a kind."""
    return f"{organization}/{kind}"


def _owner(allocation: Allocation) -> Iterator[str]:
    if allocation.spec.state != "released":
        yield owner_value(allocation.metadata.labels[RESOURCE_KIND], allocation.metadata.labels[RESOURCE_ID])


def _active(allocation: Allocation) -> Iterator[str]:
    if allocation.spec.state != "released":
        yield allocation.metadata.labels[ORGANIZATION]
        yield allocation.metadata.labels[PROJECT]


def _charge(allocation: Allocation) -> Iterator[str]:
    for amount in allocation.spec.allocations:
        yield charge_value(allocation.metadata.labels[ORGANIZATION], amount.kind)


def _ended(allocation: Allocation) -> Iterator[str]:
    if allocation.spec.state == "released" and allocation.spec.ended is not None:
        yield allocation.spec.ended.date().isoformat()


QUOTA_METADATA = shared_kind(QuotaMetadata, "quotametadata", uncounted="created by the operator")
"""Quota kinds. Built-in ones are created at each start; an operator may add others."""

QUOTA = shared_kind(Quota, "quotas", uncounted="one for each organization")
"""Quota records, named after their organizations."""

ALLOCATION = shared_kind(
    Allocation,
    "allocations",
    uncounted="one for each object of a kind with a quota",
    indexes=(
        Index(name="owner", values=_owner),
        Index(name="active", values=_active),
        Index(name="charge", values=_charge),
        Index(name="ended", values=_ended),
    ),
    unindexed=UNINDEXED | {NAME, RESOURCE_ID, RESOURCE_KIND},
    columns={"State": ".spec.state"},
)
"""Allocations, indexed by quota kinds; active ones by owner and project, released ones by the day of their end."""
