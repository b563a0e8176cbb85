"""What clients read of a plan."""

from typing import Annotated, Literal

import msgspec

from remuda.http.errors import ErrorBody
from remuda.http.schema import Wire

StepKind = Literal["in-place", "deferred", "reboot", "rebuild", "replace"]
"""What is done to the server, from the least to the most."""
Field = Literal[
    "metadata.description",
    "metadata.tags",
    "spec.flavorId",
    "spec.imageId",
    "spec.networking.securityGroups",
    "spec.networking.publicIP",
    "spec.networking.allowedSourceAddresses",
    "spec.sshCertificateAuthorityId",
    "spec.userData",
    "spec.protection",
]
"""What can be changed of an instance. Protection, and its own tags, are no server's business."""

Thing = Literal["id", "name", "privateIP", "macAddress", "publicIP", "rootDisk", "sshHostKeys", "memory"]
"""What an instance has that a change could take away."""

Extent = Literal["none", "seconds", "unknown"]
"""How long an instance is down."""

PlanHash = Annotated[
    str,
    msgspec.Meta(
        pattern="^[0-9a-f]{32}$",
        description="Tells this plan from every other one: it covers which instance it is about, all that a client may "
        "change of it before and after, and the flavors and images involved; never what is only observed.",
    ),
]
"""What a plan is named by."""


class ChangeRead(Wire, frozen=True, kw_only=True):
    """One thing that is wanted otherwise."""

    field: Field
    sentence: Annotated[str, msgspec.Meta(description="What changes, for people; never what user data says.")]


class StepRead(Wire, frozen=True, kw_only=True):
    """One step of a plan."""

    kind: Annotated[
        StepKind,
        msgspec.Meta(
            description="in-place: done as it runs. deferred: stored, and effective when it is next rebuilt or "
            "replaced. reboot: restarted; nothing needs that at present. rebuild: another image on the same server. "
            "replace: another server behind the same port."
        ),
    ]
    sentence: str
    changes: tuple[ChangeRead, ...]


class ThingRead(Wire, frozen=True, kw_only=True):
    """Something that is lost, or that stays as it is."""

    thing: Thing
    value: Annotated[str, msgspec.Meta(description="What it is now, where that is known.")] = ""
    sentence: str


class DowntimeRead(Wire, frozen=True, kw_only=True):
    """For how long it is down."""

    extent: Annotated[
        Extent, msgspec.Meta(description="none, as long as a start takes (seconds), or nobody can say (unknown).")
    ]
    sentence: str


class QuotaChangeRead(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What an instance costs of one kind of quota, before and after."""

    kind: str
    before: int
    after: int
    delta: int


class BlockerRead(Wire, frozen=True, kw_only=True):
    """Something for which the change would be refused now."""

    reason: Annotated[Literal["QuotaExceeded"], msgspec.Meta(description="Why, in one word for programs.")]
    sentence: Annotated[str, msgspec.Meta(description="Why, and what can be done about it, for people.")]


class PlanRead(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """What a change would do. Nothing has been done yet."""

    hash: PlanHash
    is_destructive: Annotated[bool, msgspec.Meta(description="Something is lost.")]
    sentence: Annotated[str, msgspec.Meta(description="All of it, in a few words.")]
    steps: Annotated[tuple[StepRead, ...], msgspec.Meta(description="In their order; none if nothing changes.")]
    lost: tuple[ThingRead, ...]
    survives: tuple[ThingRead, ...]
    downtime: DowntimeRead
    quota: tuple[QuotaChangeRead, ...]
    blockers: Annotated[
        tuple[BlockerRead, ...],
        msgspec.Meta(description="With dryRun: why the change would be refused now. It is not in the hash."),
    ] = ()


class PlanRefusal(ErrorBody, frozen=True, kw_only=True, omit_defaults=True):
    """The body of an error that may be about a plan."""

    plan: Annotated[
        PlanRead | msgspec.UnsetType,
        msgspec.Meta(description="With plan_required and plan_changed: the plan as it is now."),
    ] = msgspec.UNSET
