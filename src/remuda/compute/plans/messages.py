"""Messages of a plan: a sentence for each step, loss and preserved attribute. Those of changes are in `fields`."""

from collections.abc import Mapping

from remuda.compute.plans.diff import PlannedInstance
from remuda.compute.plans.fields import StepKind
from remuda.compute.plans.schema import Attribute, DowntimeRead, Extent

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
