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

What a plan is made from: an instance, as it was wanted before and as it is wanted now.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal, TypeVar, get_args

import msgspec
from msgspec.structs import replace

from remuda.compute.kinds import Protection
from remuda.region.servers.schema import NetworkingWire, ServerCreate
from remuda.resources.schema import FlavorRead, ImageRead

StructT = TypeVar("StructT", bound=msgspec.Struct)

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
    "metadata.description": ("metadata.description", "in-place"),
    "metadata.tags": ("metadata.tags", "in-place"),
    "spec.networking.securityGroups": ("spec.networking.security_groups", "in-place"),
    "spec.networking.publicIP": ("spec.networking.public_ip", "in-place"),
    "spec.networking.allowedSourceAddresses": ("spec.networking.allowed_source_addresses", "in-place"),
    "spec.userData": ("spec.user_data", "deferred"),
    "spec.imageId": ("spec.image_id", "rebuild"),
    "spec.flavorId": ("spec.flavor_id", "replace"),
    "spec.sshCertificateAuthorityId": ("spec.ssh_certificate_authority_id", "replace"),
}
"""The attribute of `ServerCreate` for each field, and the step that changes it alone."""

_READ = {field: attrgetter(attribute) for field, (attribute, _) in FIELDS.items()}

_DISRUPTIVE: tuple[StepKind, ...] = ("rebuild", "replace")


def changed_fields(before: ServerCreate, after: ServerCreate) -> tuple[Field, ...]:
    """Return the fields in which two specifications of a server differ."""
    return tuple(field for field, read in _READ.items() if read(before) != read(after))


def with_fields(server: ServerCreate, other: ServerCreate, fields: Iterable[Field]) -> ServerCreate:
    """Return the specification of a server with some fields of another one."""
    for field in fields:
        server = _with(server, FIELDS[field][0].split("."), _READ[field](other))
    return server


def _with(struct: StructT, path: Sequence[str], value: Any) -> StructT:
    name, *rest = path
    return replace(struct, **{name: _with(getattr(struct, name), rest, value) if rest else value})


def decide(
    before: ServerCreate, after: ServerCreate, *, takes_images: bool = True
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The instance, with what is known of it: that is told, and decides nothing."""

    id: str
    uid: str
    name: str
    private_ip: str = ""
    public_ip: str = ""
    mac_address: str = ""
    runs: bool = True
    """As far as anybody knows: of one that does not, nothing that runs can be lost or go on."""
    is_made_anew: bool = False
    """Its server is being made anew: the disk that it has, and what is on it, does not outlast that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What is wanted, on one side of a change."""

    server: ServerCreate
    writable: msgspec.Struct
    """All that a client may change, as its ETag covers it."""
    protection: Protection
    tags: tuple[tuple[str, str], ...] = ()
    """The instance's own: its server has others."""
    gpus: int = 0
    """How many physical ones it is charged for."""
    flavor: FlavorRead | None = None
    """None if it is not on offer any more."""
    image: ImageRead | None = None
    """Likewise."""


def networking_of(side: Side) -> NetworkingWire:
    """Return the networking of the server, or the default."""
    return side.server.spec.networking or NetworkingWire()
