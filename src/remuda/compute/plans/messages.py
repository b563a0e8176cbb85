"""Messages of a plan: a sentence for each change, step, loss and preserved attribute. User data is never shown."""

from collections.abc import Callable, Mapping

from remuda.compute.plans.diff import PlannedInstance, PlanSide, networking_of
from remuda.compute.plans.schema import Attribute, DowntimeRead, Extent, Field, StepKind


def change_message(field: Field, before: PlanSide, after: PlanSide, *, is_applied: bool) -> str:
    """Return the message for a change; `is_applied` tells whether the step starts the server from a new disk."""
    if field == "spec.userData":
        return _user_data(is_set=bool(after.server.spec.user_data), is_applied=is_applied)
    return _CHANGES[field](before, after)


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


def _user_data(*, is_set: bool, is_applied: bool) -> str:
    if is_applied:
        return f"The server starts {'with the new' if is_set else 'without'} user data."
    what = "The new user data is stored" if is_set else "The user data is removed"
    return f"{what}. The effects of the first start are neither repeated nor undone."


def _images(before: PlanSide, after: PlanSide) -> str:
    return f"The image changes from {_image(before)} to {_image(after)}."


def _image(side: PlanSide) -> str:
    if side.image is None:
        return f"{side.server.spec.image_id} (no longer offered)"
    system = side.image.spec.os
    return f"{side.image.metadata.name} ({system.distro} {system.version})"


def _flavors(before: PlanSide, after: PlanSide) -> str:
    return f"The flavor changes from {_flavor(before)} to {_flavor(after)}."


def _flavor(side: PlanSide) -> str:
    if side.flavor is None:
        return f"{side.server.spec.flavor_id} (no longer offered)"
    spec = side.flavor.spec
    gpus = "" if spec.gpu is None else f", {spec.gpu.physical_count} x {spec.gpu.model}"
    cpus = f"{spec.cpus} CPU{'' if spec.cpus == 1 else 's'}"
    return f"{side.flavor.metadata.name} ({cpus}, {spec.memory} GiB memory, {spec.disk} GB disk{gpus})"


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


_CHANGES: Mapping[Field, Callable[[PlanSide, PlanSide], str]] = {
    "metadata.description": _description,
    "metadata.tags": _tags,
    "spec.networking.securityGroups": _groups,
    "spec.networking.publicIP": _public_ip,
    "spec.networking.allowedSourceAddresses": _sources,
    "spec.imageId": _images,
    "spec.flavorId": _flavors,
    "spec.sshCertificateAuthorityId": _authority,
    "spec.protection": _protection,
}


_STEPS: Mapping[StepKind, str] = {
    "in-place": "The change is applied while the instance runs.",
    "deferred": "The change is stored and applied at the next rebuild or replacement.",
    "reboot": "The instance is rebooted.",
    "rebuild": "The server is rebuilt from the image, with the user data that the instance has by then. If it is "
    "stopped, it starts from the new disk when it is started next. Server and port stay the same.",
    "replace": "The old server is deleted. A new one, with the user data that the instance has by then, is created "
    "behind the same port and started, even if the old one was stopped.",
}
_APPLIED_AS_IT_IS = "The change is applied in place. Nothing is started or stopped."
_NOT_KEPT = "is released: this region cannot keep it for another server."
_LOST: Mapping[Attribute, str] = {
    "privateIP": f"The private address {_NOT_KEPT}",
    "macAddress": f"The MAC address {_NOT_KEPT}",
    "publicIP": f"The public address {_NOT_KEPT}",
    "rootDisk": "Data on the root disk is lost.",
    "sshHostKeys": "The SSH host keys are replaced. Clients that know the old ones will warn.",
    "memory": "Running programs end, and the content of the memory is lost.",
}
_PRESERVED: Mapping[Attribute, str] = {
    "id": "The instance keeps its id.",
    "name": "The instance keeps its name.",
    "privateIP": "The instance keeps its private address.",
    "macAddress": "The instance keeps its MAC address.",
    "publicIP": "The instance keeps its public address.",
    "rootDisk": "The root disk is not changed.",
    "sshHostKeys": "The SSH host keys are not changed.",
    "memory": "Running programs continue.",
}
_DOWNTIMES: Mapping[Extent, str] = {
    "none": "There is no downtime.",
    "seconds": "The instance is down while the server starts: seconds, or a few minutes for a large image.",
    "unknown": "The instance is down while a machine is prepared. How long that takes is not known.",
}
_NO_FURTHER = "The instance does not run, so there is no further downtime."
_REBUILDING = (
    "The server is already being rebuilt or replaced, with a new root disk and new SSH host keys. The instance is down "
    "until that ends"
)
_AFTER_REBUILD: Mapping[Extent, str] = {
    "none": "not longer because of this update.",
    "seconds": "again while the server starts: seconds, or a few minutes for a large image.",
    "unknown": "again while a machine is prepared. How long that takes is not known.",
}
_SUMMARIES: Mapping[StepKind, str] = {
    "in-place": "The instance is updated in place",
    "deferred": "The new user data is stored for later",
    "reboot": "The instance is rebooted",
    "rebuild": "The server is rebuilt",
    "replace": "The server is replaced",
}
_NAMES: Mapping[Attribute, str] = {
    "privateIP": "its private address",
    "macAddress": "its MAC address",
    "publicIP": "its public address",
    "rootDisk": "its root disk",
    "sshHostKeys": "its SSH host keys",
    "memory": "its running programs",
}


def step_message(kind: StepKind, subject: PlannedInstance) -> str:
    is_running = subject.is_running and not subject.is_rebuilding
    return _STEPS[kind] if is_running or kind != "in-place" else _APPLIED_AS_IT_IS


def downtime_of(extent: Extent, subject: PlannedInstance) -> DowntimeRead:
    """Return the downtime that an update causes, with its message."""
    if subject.is_rebuilding:
        return DowntimeRead(extent=extent, message=f"{_REBUILDING}, and {_AFTER_REBUILD[extent]}")
    if not subject.is_running:
        return DowntimeRead(extent="none", message=_NO_FURTHER)
    return DowntimeRead(extent=extent, message=_DOWNTIMES[extent])


def lost_message(attribute: Attribute, *, is_removed: bool) -> str:
    """Return the message for a lost attribute; `is_removed` if the new spec has no public address."""
    if attribute == "publicIP" and is_removed:
        return "The public address is released. A later request gets another one."
    return _LOST[attribute]


def preserved_message(attribute: Attribute) -> str:
    return _PRESERVED[attribute]


def summary(kinds: tuple[StepKind, ...], lost: tuple[Attribute, ...], *, is_rebuilding: bool) -> str:
    """Return the message for a whole plan."""
    if not kinds:
        return "Nothing changes."
    done = " ".join(f"{_SUMMARIES[kind]}." for kind in kinds)
    if lost:
        return f"{done} The instance loses {_enumerated([_NAMES[attribute] for attribute in lost])}."
    if is_rebuilding:
        return f"{done} Nothing more is lost: the server is already being rebuilt or replaced."
    return f"{done} Nothing is lost."


def _enumerated(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
