"""What clients send and read about quotas and allocations."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from remuda.http.schema import Id, ListQuery, Parameters, Wire
from remuda.identity.quotas.quota_state import MOST
from remuda.resources.schema import MetadataWrite, ProjectMetadataRead


class QuotaWrite(Wire, frozen=True):
    """How much of a kind there may be."""

    kind: Annotated[str, msgspec.Meta(min_length=1, max_length=63)]
    quantity: int


class QuotasWrite(Wire, frozen=True):
    """All limits; a kind that is left out has none of its own."""

    quotas: tuple[QuotaWrite, ...]


class QuotaRead(Wire, frozen=True, omit_defaults=False):
    """How much of a kind there may be, and how much of that is used."""

    kind: str
    quantity: int
    used: Annotated[int, msgspec.Meta(description="What is committed and what is reserved.")]
    free: Annotated[int, msgspec.Meta(description="What is left of the quantity.")]
    committed: Annotated[int, msgspec.Meta(description="In use.")]
    reserved: Annotated[int, msgspec.Meta(description="Kept for what may come to be used.")]
    display_name: str
    description: str
    default: Annotated[int, msgspec.Meta(description="What everybody has to begin with.")]
    format: Annotated[
        Literal["decimal", "binary"],
        msgspec.Meta(description="How to show numbers: in thousands, or in powers of 1024."),
    ]


class QuotasRead(Wire, frozen=True):
    """The kinds of quota, in the order of their names."""

    quotas: tuple[QuotaRead, ...]


class AmountWire(Wire, frozen=True, omit_defaults=False):
    """How much of a kind."""

    kind: str
    committed: int
    reserved: int


class AllocationSpecWire(Wire, frozen=True, omit_defaults=False):
    """What an allocation is for, and what it holds."""

    kind: Annotated[str, msgspec.Meta(description="What it is for: plural and group.")]
    id: Annotated[str, msgspec.Meta(description="What it is for: its id.")]
    allocations: tuple[AmountWire, ...]


class AllocationWrite(Wire, frozen=True):
    """An allocation as it is asked for."""

    metadata: MetadataWrite
    spec: AllocationSpecWire


class AllocationStatusRead(Wire, frozen=True):
    """How an allocation stands."""

    life: Annotated[
        Literal["unconfirmed", "confirmed", "released"],
        msgspec.Meta(description="An unconfirmed one is taken back after a while; a released one holds nothing."),
    ]
    started: datetime | None = None
    ended: datetime | None = None


class AllocationRead(Wire, frozen=True):
    """An allocation."""

    metadata: ProjectMetadataRead
    spec: AllocationSpecWire
    status: AllocationStatusRead


class AllocationPath(
    Parameters,
    frozen=True,
    rename={"organization": "organizationID", "project": "projectID", "allocation": "allocationID"},
):
    """An allocation."""

    organization: Id
    project: Id
    allocation: Id


Turn = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
_CHANGED = "Of what it is for, as its service counts them: if it was changed or ended in a later one, 412."
_ENDED = "Of what it is for, as its service counts them: who renews it in an earlier one is answered 412."


class TurnQuery(Parameters, frozen=True):
    """When a change was made up."""

    turn: Annotated[Turn, msgspec.Meta(description=_CHANGED)] | None = None


class LastTurnQuery(Parameters, frozen=True):
    """Since when an allocation is not needed."""

    turn: Annotated[Turn, msgspec.Meta(description=_ENDED)] | None = None


Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class UsageQuery(ListQuery, frozen=True, rename={"continue_": "continue", "project": "projectID"}):
    """Which usage: what is held now, or what was held at or during a time."""

    project: Annotated[Id, msgspec.Meta(description="Only what this project uses.")] | None = None
    kind: Annotated[str, msgspec.Meta(description="Only what uses something of this kind.")] | None = None
    at: Annotated[Moment, msgspec.Meta(description="What was held at this time.")] | None = None
    since: Annotated[Moment, msgspec.Meta(description="What was held at any time after this.")] | None = None
    until: Annotated[Moment, msgspec.Meta(description="What was held at any time before this.")] | None = None
