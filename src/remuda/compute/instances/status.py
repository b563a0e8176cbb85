"""What a server tells, as its instance shows it: power, addresses, health, drift, and how far a rebuild is.

It is a projection and no more: nothing is observed here, and whatever the server is, nothing is done about it. Two
words are the instance's own: `Rebuilding`, while its server is made anew because somebody wanted it otherwise, and
`Error`, where the server has failed and nothing more comes of it by itself.

The addresses of an instance: those of its server, and what they were where a server made again has others.

Such a server may have none for a while. What the instance had is remembered until its server has another.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

import msgspec
from msgspec.structs import replace

from remuda.compute.instances.rules import message_of, reason_of
from remuda.compute.kinds import Addresses, Applied, ComputeInstance, InstanceStatus, PowerState
from remuda.kernel.conditions import Condition, find_condition, set_condition
from remuda.reconcile.status import AVAILABLE, is_behind
from remuda.region.servers.schema import ServerRead
from remuda.resources.schema import Health

_NOWHERE = Addresses()


def with_addresses(instance: ComputeInstance, server: ServerRead) -> ComputeInstance:
    """Return an instance with the addresses of its server."""
    before, now = _last_of(instance.status), _shown_by(server)
    if instance.status.had is None and before == now:
        return instance
    had = Addresses(
        private_ip="" if now.private_ip else before.private_ip,
        public_ip="" if now.public_ip or not instance.spec.wants_public_ip else before.public_ip,
        mac_address="" if now.mac_address else before.mac_address,
    )
    status = replace(instance.status, had=None if had == _NOWHERE else had, **msgspec.structs.asdict(now))
    return replace(instance, status=status)


def moved(before: InstanceStatus, after: InstanceStatus) -> Mapping[str, Mapping[str, str]]:
    """Return what each address was and is now, of those that have become others."""
    last, now = _last_of(before), _last_of(after)
    each = {
        "privateIP": (last.private_ip, now.private_ip),
        "macAddress": (last.mac_address, now.mac_address),
        "publicIP": (last.public_ip, now.public_ip),
    }
    return {name: {"was": was, "now": is_} for name, (was, is_) in each.items() if was and is_ and was != is_}


def _last_of(status: InstanceStatus) -> Addresses:
    """Return the last addresses that are known of an instance."""
    had = status.had or _NOWHERE
    return Addresses(
        private_ip=status.private_ip or had.private_ip,
        public_ip=status.public_ip or had.public_ip,
        mac_address=status.mac_address or had.mac_address,
    )


def _shown_by(server: ServerRead) -> Addresses:
    return Addresses(
        private_ip=server.status.private_ip, public_ip=server.status.public_ip, mac_address=server.status.mac_address
    )


DRIFTED = "Drifted"
"""The condition that says whether the server is another at its provider than it was made. Nothing comes of it."""

REBUILDING = "Rebuilding"
"""The condition that says that the server is made anew, and how far that is; or that it was, and how that ended."""

UNTOLD = timedelta(seconds=2)
"""So long the way of a new instance is not worth a write. Creation times are whole seconds, so it is one at least."""

Anew = Literal["Rebuilding", "Replacing"]
"""How a server is made anew: another image is put on it, or another server behind its port."""

ANEW: dict[Anew, str] = {
    "Rebuilding": "it is rebuilt from its image",
    "Replacing": "another server is put in its place",
}
"""What is said of each."""

_TO_COME: set[PowerState | None] = {None, "Pending", "Queued", "Building"}
"""How a server is that was not there yet."""

_HEALTH: dict[Health, tuple[Literal["True", "False", "Unknown"], str]] = {
    "healthy": ("True", "Healthy"),
    "degraded": ("False", "Degraded"),
    "error": ("False", "Errored"),
    "unknown": ("Unknown", "Unknown"),
}


def is_under_way(server: ServerRead) -> bool:
    """Tell whether region is still at making a server what it was last asked to be."""
    return server.metadata.provisioning_status not in {"provisioned", "error"}


def is_kept(server: ServerRead) -> bool:
    """Tell whether a server goes on as it was, since there is no room for the one that is to take its place."""
    is_there = server.status.power_state in {"Running", "Stopping", "Stopped"}
    return server.metadata.provisioning_status == "error" and reason_of(server) == "NoCapacity" and is_there


def takes_images(server: ServerRead) -> bool:
    """Tell whether another image can be put on a server: not on one that never came up, broke, or keeps its place."""
    return server.metadata.provisioning_status != "error"


def is_being_changed(instance: ComputeInstance, server: ServerRead) -> bool:
    """Tell whether region is at something else with a server than making it: the instance had it, and it is there."""
    return is_under_way(server) and instance.status.applied is not None and server.status.power_state not in _TO_COME


def is_untold(instance: ComputeInstance, now: datetime) -> bool:
    """Tell whether an instance is so new that its way to being there is not worth a write."""
    created = instance.metadata.creation_timestamp
    is_young = created is not None and now - created < UNTOLD
    return is_young and find_condition(instance.status.conditions, AVAILABLE) is None


def is_rebuilding(instance: ComputeInstance, server: ServerRead) -> bool:
    """Tell whether a server is being made anew, also if whoever asked for that did not come to write it down."""
    return is_under_way(server) and (rebuild_under_way(instance) is not None or is_to_be_anew(instance))


def is_to_be_anew(instance: ComputeInstance) -> bool:
    """Tell whether something is wanted of an instance that makes its server anew, and was not there yet."""
    spec, applied = instance.spec, instance.status.applied
    if applied is None:
        return False
    there = (applied.flavor_id, applied.image_id, applied.ssh_certificate_authority_id)
    return there != (spec.flavor_id, spec.image_id, spec.ssh_certificate_authority_id)


def is_made_anew(instance: ComputeInstance) -> bool:
    """Tell whether the server of an instance is being made anew, or will be when its controller next looks at it."""
    is_asked_for = is_to_be_anew(instance) and is_behind(instance, instance.status.conditions)
    return is_asked_for or rebuild_under_way(instance) is not None


def rebuild_under_way(instance: ComputeInstance) -> Condition | None:
    """Return what was last said of a rebuild, if it has not ended."""
    found = find_condition(instance.status.conditions, REBUILDING)
    return found if found is not None and found.status == "True" else None


def projected(instance: ComputeInstance, server: ServerRead, now: datetime) -> ComputeInstance:
    """Return an instance with everything in its status that its server tells."""
    addressed = with_addresses(instance, server)
    status = replace(
        addressed.status,
        power_state=_power(instance, server),
        has_server=True,
        remade=server.status.times_made_again,
        applied=_applied(instance, server),
    )
    health = server.metadata.health_status_detail
    detail = "" if health is None else health.message
    state, reason = _HEALTH[server.metadata.health_status]
    seen = _said(replace(instance, status=status), "Healthy", state, reason, detail, now)
    return _with_drift(seen, server, now)


def is_shown(instance: ComputeInstance, server: ServerRead, now: datetime) -> bool:
    """Tell whether an instance shows its server as it is."""
    return server.metadata.provisioning_status == "provisioned" and projected(instance, server, now) == instance


def with_rebuilding(instance: ComputeInstance, how: Anew, server: ServerRead, now: datetime) -> ComputeInstance:
    """Return an instance that says that its server is made anew, and how far that is."""
    message = message_of(server)
    how_far = message if server.metadata.provisioning_status == "provisioning" and message else "asked for"
    return _said(instance, REBUILDING, "True", how, f"{ANEW[how]}: {how_far}", now)


def with_rebuild_ended(instance: ComputeInstance, reason: str, message: str, now: datetime) -> ComputeInstance:
    """Return an instance that says how it ended."""
    return _said(instance, REBUILDING, "False", reason, message, now)


def _with_drift(instance: ComputeInstance, server: ServerRead, now: datetime) -> ComputeInstance:
    """Return an instance that says how its server has drifted, or no longer has; one that never did says nothing."""
    if server.status.drift:
        return _said(instance, DRIFTED, "True", "ChangedAtProvider", server.status.drift, now)
    if find_condition(instance.status.conditions, DRIFTED) is None:
        return instance
    return _said(instance, DRIFTED, "False", "AsMade", "it is what it was made", now)


def _applied(instance: ComputeInstance, server: ServerRead) -> Applied | None:
    """Return what a server is made of, if it is as it was asked to be; else what it was made of before."""
    before, spec = instance.status.applied, server.spec
    if server.metadata.provisioning_status != "provisioned":
        return before
    gpus = 0 if before is None else before.gpus
    if spec.flavor_id == instance.spec.flavor_id:
        gpus = instance.spec.gpus
    return Applied(spec.flavor_id, spec.image_id, server.status.ssh_certificate_authority_id, gpus)


def _power(instance: ComputeInstance, server: ServerRead) -> PowerState | None:
    if is_rebuilding(instance, server):
        return "Rebuilding"
    if server.metadata.health_status == "error" or (
        server.metadata.provisioning_status == "error" and not is_kept(server)
    ):
        return "Error"
    return server.status.power_state


def _said(
    instance: ComputeInstance,
    kind: str,
    state: Literal["True", "False", "Unknown"],
    reason: str,
    message: str,
    now: datetime,
) -> ComputeInstance:
    condition = Condition(
        type=kind, status=state, reason=reason, message=message, last_transition_time=now.replace(microsecond=0)
    )
    conditions = set_condition(instance.status.conditions, condition)
    return replace(instance, status=replace(instance.status, conditions=conditions))
