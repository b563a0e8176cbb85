"""Fields of an instance that a client can update: what a change of each one takes, and its sentence in a plan.

User data is never shown.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import msgspec

from remuda.compute.kinds import Protection
from remuda.region.servers.schema import ServerCreate, ServerNetworkingWire
from remuda.resources.schema import FlavorRead, ImageRead

StepKind = Literal["in-place", "deferred", "reboot", "rebuild", "replace"]
"""Steps, from the least to the most disruptive."""

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
    "status.rebuilds",
]
"""Fields of an instance that a client can update, and the number of rebuilds, which grows with each that is requested.

Protection and the tags of the instance are not sent to its server, whose own tags name the instance.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSide:
    """The spec of an instance before or after an update."""

    server: ServerCreate
    writable: msgspec.Struct
    """The fields that a client may update, as its ETag covers them."""
    protection: Protection
    tags: tuple[tuple[str, str], ...] = ()
    """Tags of the instance; its server has others."""
    rebuilds: int = 0
    """Number of rebuilds that were requested."""
    gpus: int = 0
    """Number of physical GPUs that count against the quota."""
    flavor: FlavorRead | None = None
    """None if it is no longer offered."""
    image: ImageRead | None = None
    """None if it is no longer offered."""


def networking_of(side: PlanSide) -> ServerNetworkingWire:
    """Return the networking of the server, or the default."""
    return side.server.spec.networking or ServerNetworkingWire()


def _description(before: PlanSide, after: PlanSide) -> str:  # noqa: ARG001  one of the table
    return "The description is replaced." if after.server.metadata.description else "The description is removed."


def _tags(before: PlanSide, after: PlanSide) -> str:
    return f"The tags change: {_difference(_pairs(before), _pairs(after))}."


def _pairs(side: PlanSide) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in side.tags)


def _groups(before: PlanSide, after: PlanSide) -> str:
    difference = _difference(networking_of(before).security_groups, networking_of(after).security_groups)
    return f"The security groups change: {difference}."


def _public_ip(before: PlanSide, after: PlanSide) -> str:  # noqa: ARG001  one of the table
    return "The instance gets a public address." if networking_of(after).public_ip else "The public address is removed."


def _sources(before: PlanSide, after: PlanSide) -> str:
    old, new = networking_of(before).allowed_source_addresses, networking_of(after).allowed_source_addresses
    return f"The allowed source addresses change: {_difference(old, new)}."


def _stored_user_data(before: PlanSide, after: PlanSide) -> str:  # noqa: ARG001  one of the table
    what = "The new user data is stored" if after.server.spec.user_data else "The user data is removed"
    return f"{what}. The effects of the first start are neither repeated nor undone."


def _applied_user_data(before: PlanSide, after: PlanSide) -> str:  # noqa: ARG001  one of the table
    return f"The server starts {'with the new' if after.server.spec.user_data else 'without'} user data."


def _images(before: PlanSide, after: PlanSide) -> str:
    return f"The image changes from {_image(before)} to {_image(after)}."


def _image(side: PlanSide) -> str:
    if side.image is None:
        return f"{side.server.spec.image_id} (no longer offered)"
    system = side.image.spec.os
    return f"{side.image.metadata.name} ({system.distro} {system.version})"


def _rebuilds(before: PlanSide, after: PlanSide) -> str:  # noqa: ARG001  one of the table
    return f"The root disk is created again from image {_image(after)}."


def _flavors(before: PlanSide, after: PlanSide) -> str:
    return f"The flavor changes from {_flavor(before)} to {_flavor(after)}."


def _flavor(side: PlanSide) -> str:
    if side.flavor is None:
        return f"{side.server.spec.flavor_id} (no longer offered)"
    spec = side.flavor.spec
    gpus = "" if spec.gpu is None else f", {spec.gpu.physical_count} x {spec.gpu.model}"
    cpus = f"{spec.cpus} CPU{'' if spec.cpus == 1 else 's'}"
    return f"{side.flavor.metadata.name} ({cpus}, {spec.memory} GiB memory, {spec.disk_gib} GiB disk{gpus})"


def _authority(before: PlanSide, after: PlanSide) -> str:
    old, new = before.server.spec.ssh_certificate_authority_id, after.server.spec.ssh_certificate_authority_id
    if not new:
        return f"The server accepts the key of the instance instead of certificates of SSH authority {old}."
    if not old:
        return f"The server accepts certificates of SSH authority {new} instead of the key of the instance."
    return f"The server accepts certificates of SSH authority {new} instead of {old}."


def _protection(before: PlanSide, after: PlanSide) -> str:
    old, new, messages = before.protection, after.protection, []
    if old.deletion != new.deletion:
        messages.append(f"Protection from deletion is {'enabled' if new.deletion else 'disabled'}.")
    if old.plan != new.plan:
        verb = "require" if new.plan else "no longer require"
        messages.append(f"Updates that destroy data {verb} the hash of their plan.")
    return " ".join(messages)


def _difference(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    added = [f"{each} is added" for each in after if each not in before]
    removed = [f"{each} is removed" for each in before if each not in after]
    return ", ".join([*added, *removed]) or "the order is different"


class ServerField(NamedTuple):
    """A field of an instance that its server has as well."""

    attribute: str
    """The attribute of `ServerCreate`."""
    step: StepKind
    """The step that a change needs if nothing else changes."""
    message: Callable[[PlanSide, PlanSide], str]
    message_on_new_disk: Callable[[PlanSide, PlanSide], str] | None = None
    """The sentence if the same step starts the server from a new disk; None if it is the same one."""
    is_counter: bool = False
    """Whether only a greater number is a change: a server may have counted what a restored instance does not know."""


FIELDS: Mapping[Field, ServerField] = {
    "metadata.description": ServerField("metadata.description", "in-place", _description),
    "metadata.tags": ServerField("metadata.tags", "in-place", _tags),
    "spec.networking.securityGroups": ServerField("spec.networking.security_groups", "in-place", _groups),
    "spec.networking.publicIP": ServerField("spec.networking.public_ip", "in-place", _public_ip),
    "spec.networking.allowedSourceAddresses": ServerField(
        "spec.networking.allowed_source_addresses", "in-place", _sources
    ),
    "spec.userData": ServerField("spec.user_data", "deferred", _stored_user_data, _applied_user_data),
    "spec.imageId": ServerField("spec.image_id", "rebuild", _images),
    "status.rebuilds": ServerField("spec.rebuilds", "rebuild", _rebuilds, is_counter=True),
    "spec.flavorId": ServerField("spec.flavor_id", "replace", _flavors),
    "spec.sshCertificateAuthorityId": ServerField("spec.ssh_certificate_authority_id", "replace", _authority),
}
"""Every field of a server that its instance determines, in the order in which a plan shows them."""


def spec_attributes(*steps: StepKind) -> frozenset[str]:
    """Return the attributes of a server's spec whose change needs one of these steps."""
    return frozenset(row.attribute.removeprefix("spec.") for row in FIELDS.values() if row.step in steps)


def change_message(field: Field, before: PlanSide, after: PlanSide, *, is_applied: bool) -> str:
    """Return the message for a change; `is_applied` tells whether the step starts the server from a new disk."""
    if field == "spec.protection":
        return _protection(before, after)
    row = FIELDS[field]
    return ((row.message_on_new_disk if is_applied else None) or row.message)(before, after)
