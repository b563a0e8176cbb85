"""What can be wrong with a stored instance: its labels and its spec can be damaged behind our back.

Nothing is done to one that is damaged, and nothing is destroyed: its controller says what is wrong, and so does the
monitor. What is wrong with its spec alone keeps nobody from deleting it.
"""

from collections.abc import Mapping

from remuda.compute.instances.rules import SCOPE, instance_id, source_prefix
from remuda.compute.kinds.instances import ComputeInstance
from remuda.compute.seen import ServerSeen
from remuda.resources import conventions as labels
from remuda.resources import conventions as regional

_DAMAGED = "its labels are damaged: "


def missing_labels(instance: ComputeInstance) -> str:
    """Return which of the labels are missing that say where an instance is; nothing, if none is."""
    missing = [label for label in SCOPE if not instance.metadata.labels.get(label)]
    return f"{_DAMAGED}{', '.join(missing)} is missing" if missing else ""


def wrong_labels(instance: ComputeInstance, server: ServerSeen) -> Mapping[str, str]:
    """Return the labels that an instance where this server is would have, and this one has not."""
    there = {
        labels.ORGANIZATION: server.place.organization,
        labels.PROJECT: server.place.project,
        regional.REGION: server.region,
        regional.NETWORK: server.network,
    }
    found = instance.metadata.labels
    return {label: value for label, value in there.items() if found.get(label) != value}


def displaced(instance: ComputeInstance, server: ServerSeen) -> str:
    """Return what is wrong with an instance whose own server is elsewhere than its labels say."""
    found, right = instance.metadata.labels, wrong_labels(instance, server)
    told = [f"{label} is {found.get(label, '')} and should be {value}" for label, value in right.items()]
    return f"{_DAMAGED}{', '.join(told)}, as its server has it"


def broken_link(instance: ComputeInstance) -> str:
    """Return what is wrong with an instance that is linked to a server of another network or name."""
    found, linked = instance.metadata.labels, instance.spec.server_id
    if not linked or linked == instance_id(found[regional.NETWORK], found[labels.NAME]):
        return ""
    return f"{_DAMAGED}network and name are not those that its id follows from"


def broken_spec(instance: ComputeInstance) -> str:
    """Return what is wanted of an instance that no server can be asked for; nothing, if all of it can."""
    broken = [repr(each) for each in instance.spec.networking.allowed_source_addresses if source_prefix(each) is None]
    if not broken:
        return ""
    what = "which is no IPv4 prefix: replace what is in it"
    return f"its spec is damaged: networking.allowedSourceAddresses has {', '.join(broken)}, {what}"
