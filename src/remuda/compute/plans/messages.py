"""Plans in words: one short sentence for each step, loss and survivor, so that nobody has to guess.

What changes, in words: one sentence for each field. What user data says is never told.
"""

from collections.abc import Callable, Mapping

from remuda.compute.plans.diff import Field, Side, StepKind, Subject, networking_of
from remuda.compute.plans.schema import DowntimeRead, Extent, Thing


def change_sentence(field: Field, before: Side, after: Side, *, is_applied: bool) -> str:
    """Return what changes; `is_applied` tells whether the server starts anew in the same step."""
    if field == "spec.userData":
        return _user_data(is_there=bool(after.server.spec.user_data), is_applied=is_applied)
    return _SENTENCES[field](before, after)


def _description(before: Side, after: Side) -> str:  # noqa: ARG001  one of the table
    return "The description is replaced." if after.server.metadata.description else "The description is removed."


def _tags(before: Side, after: Side) -> str:
    return f"The tags change: {_difference(_pairs(before), _pairs(after))}."


def _pairs(side: Side) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in side.tags)


def _groups(before: Side, after: Side) -> str:
    told = _difference(networking_of(before).security_groups, networking_of(after).security_groups)
    return f"The security groups change: {told}."


def _public_ip(before: Side, after: Side) -> str:  # noqa: ARG001  one of the table
    return "It gets a public address." if networking_of(after).public_ip else "It has no public address any more."


def _sources(before: Side, after: Side) -> str:
    told = _difference(networking_of(before).allowed_source_addresses, networking_of(after).allowed_source_addresses)
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
        return f"{side.server.spec.image_id}, which is not offered any more,"
    system = side.image.spec.os
    return f"{side.image.metadata.name} ({system.distro} {system.version})"


def _flavors(before: Side, after: Side) -> str:
    return f"The flavor changes from {_flavor(before)} to {_flavor(after)}."


def _flavor(side: Side) -> str:
    if side.flavor is None:
        return f"{side.server.spec.flavor_id}, which is not offered any more,"
    spec = side.flavor.spec
    gpus = "" if spec.gpu is None else f", {spec.gpu.physical_count} x {spec.gpu.model}"
    cpus = f"{spec.cpus} CPU{'' if spec.cpus == 1 else 's'}"
    return f"{side.flavor.metadata.name} ({cpus}, {spec.memory} GiB memory, {spec.disk} GB disk{gpus})"


def _authority(before: Side, after: Side) -> str:
    old, new = before.server.spec.ssh_certificate_authority_id, after.server.spec.ssh_certificate_authority_id
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


_STEPS: Mapping[StepKind, str] = {
    "in-place": "This is changed while the instance runs.",
    "deferred": "This is stored, and takes effect when the instance is next rebuilt or replaced.",
    "reboot": "The instance is rebooted.",
    "rebuild": "The server is written anew from its image and starts for the first time again, with the user data that "
    "the instance has by then; if it is stopped, it does so when it is next started. It stays the same server, behind "
    "the same port.",
    "replace": "A new server, with the user data that the instance has by then, takes the place of the old one behind "
    "the same port, and starts, also if the old one is stopped. The old one is removed before that.",
}
_AS_IT_STANDS = "This is changed in place: nothing is started or stopped for it."
_LOST: Mapping[Thing, str] = {
    "privateIP": "The private address is given up: this region cannot keep it for another server.",
    "macAddress": "The MAC address is given up: this region cannot keep it for another server.",
    "rootDisk": "Everything on the root disk is lost.",
    "sshHostKeys": "The SSH host keys are lost: it gets new ones, and clients that know the old ones will warn.",
    "memory": "Everything that runs on it ends, with what it has in memory.",
}
_SURVIVES: Mapping[Thing, str] = {
    "id": "The instance keeps its id.",
    "name": "The instance keeps its name.",
    "privateIP": "The private address stays.",
    "macAddress": "The MAC address stays.",
    "publicIP": "The public address stays.",
    "rootDisk": "The root disk is not touched.",
    "sshHostKeys": "The SSH host keys stay.",
    "memory": "What runs on it goes on.",
}
_DOWNTIMES: Mapping[Extent, str] = {
    "none": "It is not down.",
    "seconds": "It is down while a server starts: seconds, or a few minutes where the image is large.",
    "unknown": "It is down while a machine is prepared, and how long that takes nobody can say beforehand.",
}
_NO_FURTHER = "It does not run now: there is no further downtime."
_ANEW = (
    "Its server is being made anew already, with a new root disk and new SSH host keys. It is down until that is done"
)
_AFTER_THAT: Mapping[Extent, str] = {
    "none": "not for longer because of this.",
    "seconds": "once more while a server starts: seconds, or a few minutes where the image is large.",
    "unknown": "once more while a machine is prepared, and how long that takes nobody can say beforehand.",
}
_SUMMARIES: Mapping[StepKind, str] = {
    "in-place": "It is changed in place",
    "deferred": "Its new user data is stored for later",
    "reboot": "It is rebooted",
    "rebuild": "It is rebuilt in place",
    "replace": "Its server is replaced",
}
_WORDS: Mapping[Thing, str] = {
    "privateIP": "its private address",
    "macAddress": "its MAC address",
    "publicIP": "its public address",
    "rootDisk": "its root disk",
    "sshHostKeys": "its SSH host keys",
    "memory": "what runs on it",
}


def step_sentence(kind: StepKind, subject: Subject) -> str:
    """Return what is done in a step."""
    is_running = subject.runs and not subject.is_made_anew
    return _STEPS[kind] if is_running or kind != "in-place" else _AS_IT_STANDS


def downtime_of(extent: Extent, subject: Subject) -> DowntimeRead:
    """Return how long it is down because of a change, in words too."""
    if subject.is_made_anew:
        return DowntimeRead(extent=extent, sentence=f"{_ANEW}, and {_AFTER_THAT[extent]}")
    if not subject.runs:
        return DowntimeRead(extent="none", sentence=_NO_FURTHER)
    return DowntimeRead(extent=extent, sentence=_DOWNTIMES[extent])


def lost_sentence(thing: Thing, *, is_given_up: bool) -> str:
    """Return what it means that something is lost; a public address may be one that nobody wants any more."""
    if thing == "publicIP" and is_given_up:
        return "The public address is given back, and somebody else may get it: asking again brings another one."
    if thing == "publicIP":
        return "The public address is given up: this region cannot keep it for another server."
    return _LOST[thing]


def survives_sentence(thing: Thing) -> str:
    """Return what it means that something stays."""
    return _SURVIVES[thing]


def summary(kinds: tuple[StepKind, ...], lost: tuple[Thing, ...], *, is_made_anew: bool) -> str:
    """Return a plan in one sentence or two."""
    if not kinds:
        return "Nothing changes."
    done = " ".join(f"{_SUMMARIES[kind]}." for kind in kinds)
    if lost:
        return f"{done} It loses {_enumerated([_WORDS[thing] for thing in lost])}."
    return f"{done} Nothing {'more is lost: its server is being made anew already' if is_made_anew else 'is lost'}."


def _enumerated(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
