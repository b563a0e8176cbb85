"""Schemas of quotas and allocations."""

from typing import Annotated, Literal

import msgspec

from remuda.http.schema import Id, Moment, NamedListQuery, Parameters, Wire
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

    kind: Annotated[
        str, msgspec.Meta(min_length=1, max_length=63, description="Name of the kind.", examples=["servers"])
    ]
    quantity: Annotated[int, msgspec.Meta(description="Limit.", examples=[20])]


class QuotasWrite(Wire, frozen=True):
    """All limits; a kind that is left out has no limit of its own."""

    quotas: Annotated[
        tuple[QuotaWrite, ...],
        msgspec.Meta(description="Limits, each kind once.", examples=[[{"kind": "servers", "quantity": 20}]]),
    ]


class QuotaPatch(Wire, frozen=True):
    """Limit of a kind to set or to unset."""

    kind: Annotated[
        str, msgspec.Meta(min_length=1, max_length=63, description="Name of the kind.", examples=["servers"])
    ]
    quantity: Annotated[int | None, msgspec.Meta(description="The limit; null unsets it.", examples=[20])]


class QuotasPatch(Wire, frozen=True):
    """Limits to change; a kind that is left out keeps its limit."""

    quotas: Annotated[
        tuple[QuotaPatch, ...],
        msgspec.Meta(description="Limits, each kind once.", examples=[[{"kind": "servers", "quantity": 20}]]),
    ]


class QuotaRead(Wire, frozen=True, omit_defaults=False):
    """Limit of a kind and its usage."""

    kind: Annotated[str, msgspec.Meta(description="Name of the kind.")]
    quantity: Annotated[int, msgspec.Meta(description="Limit.")]
    used: Annotated[int, msgspec.Meta(description="Committed and reserved.")]
    free: Annotated[int, msgspec.Meta(description="Rest of the quantity.")]
    committed: Annotated[int, msgspec.Meta(description="In use.")]
    reserved: Annotated[int, msgspec.Meta(description="Reserved for future use.")]
    display_name: Annotated[str, msgspec.Meta(description="Name for users.")]
    description: Annotated[str, msgspec.Meta(description="Description for users.")]
    default: Annotated[int, msgspec.Meta(description="Default limit of an organization.")]
    format: Annotated[
        Literal["decimal", "binary"], msgspec.Meta(description="Display format: thousands, or powers of 1024.")
    ]


class QuotasRead(Wire, frozen=True):
    """Quota kinds, by name."""

    quotas: Annotated[tuple[QuotaRead, ...], msgspec.Meta(description="All kinds.")]


class AmountWire(Wire, frozen=True, omit_defaults=False):
    """Amount of a kind."""

    kind: Annotated[str, msgspec.Meta(description="Name of the kind.", examples=["servers"])]
    committed: Annotated[int, msgspec.Meta(description="Amount in use.", examples=[1])]
    reserved: Annotated[int, msgspec.Meta(description="Amount reserved for future use.", examples=[0])]


class AllocationSpecWire(Wire, frozen=True, omit_defaults=False):
    """Owner and amounts of an allocation."""

    kind: Annotated[
        str,
        msgspec.Meta(
            description="Type of the owner: plural and group.", examples=["instances.compute.unikorn-cloud.org"]
        ),
    ]
    id: Annotated[str, msgspec.Meta(description="Id of the owner.", examples=["b8d4f1a2-6c3e-4f5a-8b9c-0d1e2f3a4b01"])]
    allocations: Annotated[
        tuple[AmountWire, ...],
        msgspec.Meta(
            description="Amounts, each kind once.", examples=[[{"kind": "servers", "committed": 1, "reserved": 0}]]
        ),
    ]


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
    started: Annotated[Moment | None, msgspec.Meta(description="Time of the creation.")] = None
    ended: Annotated[Moment | None, msgspec.Meta(description="Time of the release; absent before it.")] = None


class AllocationRead(Wire, frozen=True):
    """Allocation."""

    metadata: ProjectMetadataRead
    spec: AllocationSpecWire
    status: AllocationStatusRead


class AllocationPath(ProjectPath, frozen=True, rename={"allocation": "allocationID"}):
    """Path of an allocation."""

    allocation: Annotated[Id, msgspec.Meta(description="Id of the allocation.")]


FencingToken = Annotated[int, msgspec.Meta(ge=0, le=MAX_QUANTITY)]
_CHANGED = "Fencing token of the owner. If the allocation was changed or released with a later one, 412."
_ENDED = "Fencing token of the owner. A renewal with an earlier one fails with 412."


class FencingQuery(Parameters, frozen=True, rename={"fencing_token": "fencingToken"}):
    """Fencing token of a change."""

    fencing_token: Annotated[FencingToken, msgspec.Meta(description=_CHANGED)] | None = None


class ReleaseQuery(Parameters, frozen=True, rename={"fencing_token": "fencingToken"}):
    """Fencing token of a release."""

    fencing_token: Annotated[FencingToken, msgspec.Meta(description=_ENDED)] | None = None


class UsageQuery(NamedListQuery, frozen=True, rename={"continue_": "continue", "project": "projectID"}):
    """Filter of the usage: the present one, or that of a moment or a period."""

    project: Annotated[Id, msgspec.Meta(description="Only allocations of this project.")] | None = None
    kind: Annotated[str, msgspec.Meta(description="Only allocations with an amount of this kind.")] | None = None
    at: Annotated[Moment, msgspec.Meta(description="Allocations at this time.")] | None = None
    since: Annotated[Moment, msgspec.Meta(description="Allocations at any time after this.")] | None = None
    until: Annotated[Moment, msgspec.Meta(description="Allocations at any time before this.")] | None = None
