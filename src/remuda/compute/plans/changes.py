"""What changes, in words: one sentence for each field. What user data says is never told."""

from collections.abc import Callable, Mapping

from remuda.compute.plans.diff import Field
from remuda.compute.plans.sides import Side


def change_sentence(field: Field, before: Side, after: Side, *, is_applied: bool) -> str:
    """Return what changes; `is_applied` tells whether the server starts anew in the same step."""
    if field == "spec.userData":
        return _user_data(is_there=after.facts.user_data is not None, is_applied=is_applied)
    return _SENTENCES[field](before, after)


def _description(before: Side, after: Side) -> str:  # noqa: ARG001  one of the table
    return "The description is replaced." if after.facts.description else "The description is removed."


def _tags(before: Side, after: Side) -> str:
    return f"The tags change: {_difference(_pairs(before), _pairs(after))}."


def _pairs(side: Side) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in side.tags)


def _groups(before: Side, after: Side) -> str:
    return f"The security groups change: {_difference(before.facts.security_groups, after.facts.security_groups)}."


def _public_ip(before: Side, after: Side) -> str:  # noqa: ARG001  one of the table
    return "It gets a public address." if after.facts.public_ip else "It has no public address any more."


def _sources(before: Side, after: Side) -> str:
    told = _difference(before.facts.allowed_source_addresses, after.facts.allowed_source_addresses)
    return f"The prefixes that it may also send from change: {told}."


def _user_data(*, is_there: bool, is_applied: bool) -> str:
    if is_applied:
        return "It starts with the new user data." if is_there else "It starts without user data."
    what = "The new user data is stored" if is_there else "Its user data is removed"
    return f"{what}. What was done when it first started is not done again, and not undone."


def _images(before: Side, after: Side) -> str:
    return f"The image changes from {_image(before)} to {_image(after)}."


def _image(side: Side) -> str:
    if side.image is None:
        return f"{side.facts.image}, which is not offered any more,"
    system = side.image.spec.os
    return f"{side.image.metadata.name} ({system.distro} {system.version})"


def _flavors(before: Side, after: Side) -> str:
    return f"The flavor changes from {_flavor(before)} to {_flavor(after)}."


def _flavor(side: Side) -> str:
    if side.flavor is None:
        return f"{side.facts.flavor}, which is not offered any more,"
    spec = side.flavor.spec
    gpus = "" if spec.gpu is None else f", {spec.gpu.physical_count} x {spec.gpu.model}"
    cpus = f"{spec.cpus} CPU{'' if spec.cpus == 1 else 's'}"
    return f"{side.flavor.metadata.name} ({cpus}, {spec.memory} GiB memory, {spec.disk} GB disk{gpus})"


def _authority(before: Side, after: Side) -> str:
    old, new = before.facts.authority, after.facts.authority
    if not new:
        return f"Certificates of the SSH authority {old} are not let in any more: a key that we keep for it is."
    if not old:
        return f"Certificates of the SSH authority {new} are let in, and the key that we keep for it is not any more."
    return f"Certificates of the SSH authority {new} are let in instead of those of {old}."


def _protection(before: Side, after: Side) -> str:
    old, new, told = before.protection, after.protection, []
    if old.deletion != new.deletion:
        told.append("It cannot be deleted from now on." if new.deletion else "It can be deleted again.")
    if old.plan != new.plan:
        needs = "need the hash of their plan from now on" if new.plan else "need no hash of their plan any more"
        told.append(f"Changes that destroy something {needs}.")
    return " ".join(told)


def _difference(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    """Return what comes and what goes."""
    comes = [each for each in after if each not in before]
    goes = [each for each in before if each not in after]
    told = [f"{word} {', '.join(names)}" for word, names in (("with", comes), ("without", goes)) if names]
    return " and ".join(told) or "they are in another order"


_SENTENCES: Mapping[Field, Callable[[Side, Side], str]] = {
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
