"""Schemas of quotas and allocations."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from remuda.http.schema import Id, ListQuery, Parameters, Wire
from remuda.identity.names import ProjectPath
from remuda.kernel.ids import derived_id
from remuda.resources.schema import MetadataWrite, ProjectMetadataRead

MAX_QUANTITY = 2**53 - 1
"""The largest integer that every JSON parser reads exactly."""

_ALLOCATIONS = "b7f0c6f2-6d0f-4a53-9a7b-0f5f0b0c7d11"


def allocation_id(subject: str, operation: str) -> str:
    """Return the id of the allocation that a caller creates with this idempotency key."""
    return derived_id(_ALLOCATIONS, msgspec.json.encode((subject, operation)).decode())


class QuotaWrite(Wire, frozen=True):
    """Limit of a kind."""

    kind: Annotated[str, msgspec.Meta(min_length=1, max_length=63)]
    quantity: int


class QuotasWrite(Wire, frozen=True):
    """All limits; a kind that is left out has no limit of its own."""

    quotas: tuple[QuotaWrite, ...]


class QuotaRead(Wire, frozen=True, omit_defaults=False):
    """Limit of a kind and its usage."""

    kind: str
    quantity: int
    used: Annotated[int, msgspec.Meta(description="Committed and reserved.")]
    free: Annotated[int, msgspec.Meta(description="Rest of the quantity.")]
    committed: Annotated[int, msgspec.Meta(description="In use.")]
    reserved: Annotated[int, msgspec.Meta(description="Reserved for future use.")]
    display_name: str
    description: str
    default: Annotated[int, msgspec.Meta(description="Default limit of an organization.")]
    format: Annotated[
        Literal["decimal", "binary"], msgspec.Meta(description="Display format: thousands, or powers of 1024.")
    ]


class QuotasRead(Wire, frozen=True):
    """Quota kinds, by name."""

    quotas: tuple[QuotaRead, ...]


class AmountWire(Wire, frozen=True, omit_defaults=False):
    """Amount of a kind."""

    kind: str
    committed: int
    reserved: int


class AllocationSpecWire(Wire, frozen=True, omit_defaults=False):
    """Owner and amounts of an allocation."""

    kind: Annotated[str, msgspec.Meta(description="Type of the owner: plural and group.")]
    id: Annotated[str, msgspec.Meta(description="Id of the owner.")]
    allocations: tuple[AmountWire, ...]


class AllocationWrite(Wire, frozen=True):
    """Requested allocation."""

    metadata: MetadataWrite
    spec: AllocationSpecWire


class AllocationStatusRead(Wire, frozen=True):
    """State of an allocation."""

    state: Annotated[
        Literal["unconfirmed", "confirmed", "released"],
        msgspec.Meta(description="An unconfirmed one is released after a deadline; a released one uses no quota."),
    ]
    started: datetime | None = None
    ended: datetime | None = None


class AllocationRead(Wire, frozen=True):
    """Allocation."""

    metadata: ProjectMetadataRead
    spec: AllocationSpecWire
    status: AllocationStatusRead


class AllocationPath(ProjectPath, frozen=True, rename={"allocation": "allocationID"}):
    """Path of an allocation."""

    allocation: Id


FencingToken = Annotated[int, msgspec.Meta(ge=0, le=MAX_QUANTITY)]
_CHANGED = "Fencing token of the owner. If the allocation was changed or released with a later one, 412."
_ENDED = "Fencing token of the owner. A renewal with an earlier one fails with 412."


class FencingQuery(Parameters, frozen=True, rename={"fencing_token": "fencingToken"}):
    """Fencing token of a change."""

    fencing_token: Annotated[FencingToken, msgspec.Meta(description=_CHANGED)] | None = None


class ReleaseQuery(Parameters, frozen=True, rename={"fencing_token": "fencingToken"}):
    """Fencing token of a release."""

    fencing_token: Annotated[FencingToken, msgspec.Meta(description=_ENDED)] | None = None


Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class UsageQuery(ListQuery, frozen=True, rename={"continue_": "continue", "project": "projectID"}):
    """Filter of the usage: the present one, or that of a moment or a period."""

    project: Annotated[Id, msgspec.Meta(description="Only allocations of this project.")] | None = None
    kind: Annotated[str, msgspec.Meta(description="Only allocations with an amount of this kind.")] | None = None
    at: Annotated[Moment, msgspec.Meta(description="Allocations at this time.")] | None = None
    since: Annotated[Moment, msgspec.Meta(description="Allocations at any time after this.")] | None = None
    until: Annotated[Moment, msgspec.Meta(description="Allocations at any time before this.")] | None = None
