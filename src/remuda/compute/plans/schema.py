"""Schema of plans."""

from typing import Annotated, Literal

import msgspec

from remuda.compute.plans.fields import Field, StepKind
from remuda.http.errors import ErrorBody
from remuda.http.schema import Wire

Attribute = Literal["id", "name", "privateIP", "macAddress", "publicIP", "rootDisk", "sshHostKeys", "memory"]
"""Attributes of an instance that an update could lose."""

Extent = Literal["none", "seconds", "unknown"]
"""Extent of a downtime."""

PlanHash = Annotated[
    str,
    msgspec.Meta(
        pattern="^[0-9a-f]{32}$",
        description="Identifies the plan: it covers the instance, its writable fields and the number of its rebuilds, "
        "before and after, and the flavors and images involved, and no observed state.",
    ),
]


class PlanChangeRead(Wire, frozen=True, kw_only=True):
    """A changed field."""

    field: Annotated[Field, msgspec.Meta(description="The field, by its path in the request.")]
    message: Annotated[str, msgspec.Meta(description="The change, for users. User data is not shown.")]


class PlanStepRead(Wire, frozen=True, kw_only=True):
    """A step of a plan."""

    kind: Annotated[
        StepKind,
        msgspec.Meta(
            description="in-place: applied while the instance runs. deferred: stored, and applied at the next rebuild "
            "or replacement. reboot: not used at present. rebuild: a new disk from the image, on the same server. "
            "replace: another server behind the same port."
        ),
    ]
    message: Annotated[str, msgspec.Meta(description="The step, for users.")]
    changes: Annotated[tuple[PlanChangeRead, ...], msgspec.Meta(description="Changed fields that need this step.")]


class PlanAttributeRead(Wire, frozen=True, kw_only=True):
    """An attribute that is lost or preserved."""

    attribute: Annotated[Attribute, msgspec.Meta(description="The attribute.")]
    value: Annotated[str, msgspec.Meta(description="The present value, if it is known.")] = ""
    message: Annotated[str, msgspec.Meta(description="What becomes of it, for users.")]


class DowntimeRead(Wire, frozen=True, kw_only=True):
    """The downtime of an instance."""

    extent: Annotated[
        Extent, msgspec.Meta(description="none, the duration of a start (seconds), or not known in advance (unknown).")
    ]
    message: Annotated[str, msgspec.Meta(description="The downtime, for users.")]


class QuotaChangeRead(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """The use of one kind of quota before and after an update."""

    kind: Annotated[str, msgspec.Meta(description="Kind of the quota.")]
    before: Annotated[int, msgspec.Meta(description="Amount that the instance uses now.")]
    after: Annotated[int, msgspec.Meta(description="Amount that it will use.")]
    delta: Annotated[int, msgspec.Meta(description="Difference of the two.")]


class BlockerRead(Wire, frozen=True, kw_only=True):
    """A reason for which the update would be rejected."""

    reason: Annotated[Literal["QuotaExceeded"], msgspec.Meta(description="The reason, for programs.")]
    message: Annotated[str, msgspec.Meta(description="The reason and its remedy, for users.")]


class PlanRead(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """The plan of an update that is not executed yet."""

    hash: PlanHash
    is_destructive: Annotated[bool, msgspec.Meta(description="Whether something is lost.")]
    message: Annotated[str, msgspec.Meta(description="Summary, for users.")]
    steps: Annotated[tuple[PlanStepRead, ...], msgspec.Meta(description="In their order; none if nothing changes.")]
    destroyed: Annotated[tuple[PlanAttributeRead, ...], msgspec.Meta(description="Attributes that are lost.")]
    preserved: Annotated[tuple[PlanAttributeRead, ...], msgspec.Meta(description="Attributes that stay as they are.")]
    downtime: DowntimeRead
    quota: Annotated[
        tuple[QuotaChangeRead, ...], msgspec.Meta(description="Change of the quota that the instance uses, by kind.")
    ]
    blockers: Annotated[
        tuple[BlockerRead, ...],
        msgspec.Meta(description="With dryRun: why the update would be rejected now. Not part of the hash."),
    ] = ()


class PlanErrorBody(ErrorBody, frozen=True, kw_only=True, omit_defaults=True):
    """The body of an error that may contain a plan."""

    plan: Annotated[
        PlanRead | msgspec.UnsetType, msgspec.Meta(description="With plan_required and plan_changed: the present plan.")
    ] = msgspec.UNSET
