"""What it takes to make a server what is wanted now.

What was wanted before is compared with what is wanted now, field by field, never with what is observed: a server that
somebody else has resized or moved is drift, which is shown, and destroys nothing. The plan and the controller both ask
here, so that what is done is what was told.

================  ====================================================================================
`in-place`        done to the server as it runs
`deferred`        stored, and without effect until the server next starts from a new disk: user data
`reboot`          nothing needs it now: what cloud-init is told it reads on its first start alone, and no
                  provider of ours changes a running server in a way that waits for a power cycle. The word
                  is there because one that does (a resize in place, say) must not be called `in-place`
`rebuild`         another image is put on the same server: every provider that keeps servers can do that, unless
                  the server never came up, has failed, or waits for room to be replaced
`replace`         another server is put behind the same port
================  ====================================================================================
"""

from collections.abc import Mapping
from typing import Literal, get_args

from remuda.compute.seen import ServerFacts

StepKind = Literal["in-place", "deferred", "reboot", "rebuild", "replace"]
"""What is done to the server, from the least to the most."""

KINDS: tuple[StepKind, ...] = get_args(StepKind)
"""All of them, in the order in which they are done."""

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

FIELDS: Mapping[Field, tuple[str, StepKind]] = {
    "metadata.description": ("description", "in-place"),
    "metadata.tags": ("tags", "in-place"),
    "spec.networking.securityGroups": ("security_groups", "in-place"),
    "spec.networking.publicIP": ("public_ip", "in-place"),
    "spec.networking.allowedSourceAddresses": ("allowed_source_addresses", "in-place"),
    "spec.userData": ("user_data", "deferred"),
    "spec.imageId": ("image", "rebuild"),
    "spec.flavorId": ("flavor", "replace"),
    "spec.sshCertificateAuthorityId": ("authority", "replace"),
}
"""What each is called among the facts of a server, and what it takes to change it alone."""

_DISRUPTIVE: tuple[StepKind, ...] = ("rebuild", "replace")


def changed_fields(before: ServerFacts, after: ServerFacts) -> tuple[Field, ...]:
    """Return what is wanted of a server now that was not wanted before."""
    return tuple(field for field, (fact, _) in FIELDS.items() if getattr(before, fact) != getattr(after, fact))


def decide(
    before: ServerFacts, after: ServerFacts, *, takes_images: bool = True
) -> tuple[tuple[StepKind, tuple[Field, ...]], ...]:
    """Return what is done to a server, step by step, and which changes each step brings.

    A replacement brings what a rebuild would, and either brings user data with it. A server that takes no images is
    replaced where another would be rebuilt.
    """
    fields = changed_fields(before, after)
    most = _most(fields)
    if most == "rebuild" and not takes_images:
        most = "replace"
    steps: dict[StepKind, list[Field]] = {kind: [] for kind in KINDS}
    for field in fields:
        kind = FIELDS[field][1]
        steps[kind if kind == "in-place" else most].append(field)
    return tuple((kind, tuple(steps[kind])) for kind in KINDS if steps[kind])


def _most(fields: tuple[Field, ...]) -> StepKind:
    """Return the greatest step that these changes take, if it is more than one in place."""
    kinds = {FIELDS[field][1] for field in fields}
    return next((kind for kind in reversed(_DISRUPTIVE) if kind in kinds), "deferred")
