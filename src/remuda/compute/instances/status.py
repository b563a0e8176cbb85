"""Status of an instance, projected from its server: power state, addresses, health, drift, rebuild.

It is a pure projection. Two power states are the instance's own: `Rebuilding`, while the server is rebuilt or replaced,
and `Error`, if the server has failed.

A server that is created again may have no addresses for a while. The previous addresses are kept until it has new ones.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

import msgspec
from msgspec.structs import replace

from remuda.compute.instances.rules import message_of, needs_rebuild, reason_of
from remuda.compute.kinds import Addresses, AppliedSpec, ComputeInstance, InstanceSpec, InstanceStatus, PowerState
from remuda.compute.plans.fields import spec_attributes
from remuda.kernel.conditions import Condition, find_condition, find_true, set_condition
from remuda.kernel.fields import common_fields
from remuda.reconcile.status import AVAILABLE, is_behind
from remuda.region.servers.schema import ServerRead, ServerSpecWire
from remuda.resources.schema import Health

_replacing = common_fields(InstanceSpec, AppliedSpec, without=("gpus", *spec_attributes("rebuild")))
"""Those that change only with a replacement."""
_observed = common_fields(ServerSpecWire, AppliedSpec, without=("rebuilds",))
_NO_ADDRESSES = Addresses()


def with_addresses(instance: ComputeInstance, server: ServerRead) -> ComputeInstance:
    before, now = _last_addresses(instance.status), _addresses_of(server)
    if instance.status.previous_addresses is None and before == now:
        return instance
    previous = Addresses(
        private_ip="" if now.private_ip else before.private_ip,
        public_ip="" if now.public_ip or not instance.spec.wants_public_ip else before.public_ip,
        mac_address="" if now.mac_address else before.mac_address,
    )
    previous_addresses = None if previous == _NO_ADDRESSES else previous
    status = replace(instance.status, previous_addresses=previous_addresses, **msgspec.structs.asdict(now))
    return replace(instance, status=status)


def changed_addresses(before: InstanceStatus, after: InstanceStatus) -> Mapping[str, Mapping[str, str]]:
    """Return the previous and present value of each address that has changed."""
    last, now = _last_addresses(before), _last_addresses(after)
    each = {
        "privateIP": (last.private_ip, now.private_ip),
        "macAddress": (last.mac_address, now.mac_address),
        "publicIP": (last.public_ip, now.public_ip),
    }
    return {name: {"was": was, "now": is_} for name, (was, is_) in each.items() if was and is_ and was != is_}


def _last_addresses(status: InstanceStatus) -> Addresses:
    previous = status.previous_addresses or _NO_ADDRESSES
    return Addresses(
        private_ip=status.private_ip or previous.private_ip,
        public_ip=status.public_ip or previous.public_ip,
        mac_address=status.mac_address or previous.mac_address,
    )


def _addresses_of(server: ServerRead) -> Addresses:
    return Addresses(
        private_ip=server.status.private_ip, public_ip=server.status.public_ip, mac_address=server.status.mac_address
    )


DRIFTED = "Drifted"
"""The condition that says whether the server was changed at its provider. It is only reported."""

REBUILDING = "Rebuilding"
"""The condition with the progress or the result of a rebuild or replacement."""

REPORT_AFTER = timedelta(seconds=2)
"""The age until which the progress of a new instance is not reported. Creation times are whole seconds."""

RebuildKind = Literal["Rebuilding", "Replacing"]
"""Rebuild from an image, or replacement by another server behind the same port."""

REBUILD_MESSAGES: dict[RebuildKind, str] = {
    "Rebuilding": "the server is being rebuilt from its image",
    "Replacing": "the server is being replaced",
}

_NOT_CREATED: set[PowerState | None] = {None, "Pending", "Queued", "Building"}
"""The power states of a server that was not created yet."""

_HEALTH: dict[Health, tuple[Literal["True", "False", "Unknown"], str]] = {
    "healthy": ("True", "Healthy"),
    "degraded": ("False", "Degraded"),
    "error": ("False", "Errored"),
    "unknown": ("Unknown", "Unknown"),
}


def is_in_progress(server: ServerRead) -> bool:
    """Return whether region has not finished the last request for a server."""
    return server.metadata.provisioning_status not in {"provisioned", "error"}


def keeps_running(server: ServerRead) -> bool:
    """Return whether a server keeps running because there is no capacity for its replacement."""
    exists = server.status.power_state in {"Running", "Stopping", "Stopped"}
    return server.metadata.provisioning_status == "error" and reason_of(server) == "NoCapacity" and exists


def can_rebuild(server: ServerRead) -> bool:
    """Return whether a server can be rebuilt from an image: not if it was never created, or has failed."""
    return server.metadata.provisioning_status != "error"


def is_being_changed(instance: ComputeInstance, server: ServerRead) -> bool:
    """Return whether region changes a server that the instance already had."""
    return (
        is_in_progress(server) and instance.status.applied is not None and server.status.power_state not in _NOT_CREATED
    )


def is_unreported(instance: ComputeInstance, now: datetime) -> bool:
    """Return whether an instance is so new that its progress is not reported."""
    created = instance.metadata.creation_timestamp
    is_young = created is not None and now - created < REPORT_AFTER
    return is_young and find_condition(instance.status.conditions, AVAILABLE) is None


def is_rebuilding(instance: ComputeInstance, server: ServerRead) -> bool:
    """Return whether a server is being rebuilt or replaced, even if the condition was not stored."""
    return is_in_progress(server) and (current_rebuild(instance) is not None or needs_rebuild(instance))


def is_rebuild_due(instance: ComputeInstance) -> bool:
    """Return whether the server is being rebuilt, or will be at the next reconcile."""
    is_asked_for = needs_rebuild(instance) and is_behind(instance, instance.status.conditions)
    return is_asked_for or current_rebuild(instance) is not None


def current_rebuild(instance: ComputeInstance) -> Condition | None:
    return find_true(instance.status.conditions, REBUILDING)


def rebuild_kind(instance: ComputeInstance) -> RebuildKind:
    """Return whether the server is rebuilt or replaced: by the condition, or by the change if it was not stored."""
    condition, spec, applied = current_rebuild(instance), instance.spec, instance.status.applied
    if condition is not None:
        return "Replacing" if condition.reason == "Replacing" else "Rebuilding"
    if applied is None:
        return "Rebuilding"
    return "Rebuilding" if _replacing(spec) == _replacing(applied) else "Replacing"


def projected(instance: ComputeInstance, server: ServerRead, now: datetime) -> ComputeInstance:
    addressed = with_addresses(instance, server)
    status = replace(
        addressed.status,
        power_state=_power(instance, server),
        has_server=True,
        recreations=server.status.recreations,
        applied=_applied(instance, server),
    )
    health = server.metadata.health_status_detail
    detail = "" if health is None else health.message
    state, reason = _HEALTH[server.metadata.health_status]
    seen = _with_condition(replace(instance, status=status), "Healthy", state, reason, detail, now)
    return _with_drift(seen, server, now)


def is_projected(instance: ComputeInstance, server: ServerRead, now: datetime) -> bool:
    """Return whether the status of an instance already shows its server."""
    return server.metadata.provisioning_status == "provisioned" and projected(instance, server, now) == instance


def with_rebuilding(instance: ComputeInstance, how: RebuildKind, server: ServerRead, now: datetime) -> ComputeInstance:
    """Return an instance whose condition says that its server is being rebuilt."""
    message = message_of(server)
    progress = message if server.metadata.provisioning_status == "provisioning" and message else REBUILD_MESSAGES[how]
    return _with_condition(instance, REBUILDING, "True", how, progress, now)


def with_rebuild_ended(instance: ComputeInstance, reason: str, message: str, now: datetime) -> ComputeInstance:
    """Return an instance whose condition says how the rebuild ended."""
    return _with_condition(instance, REBUILDING, "False", reason, message, now)


def _with_drift(instance: ComputeInstance, server: ServerRead, now: datetime) -> ComputeInstance:
    """Return an instance with the condition of drift; one that never drifted has none."""
    if server.status.drift:
        return _with_condition(instance, DRIFTED, "True", "ChangedAtProvider", server.status.drift, now)
    if find_condition(instance.status.conditions, DRIFTED) is None:
        return instance
    return _with_condition(instance, DRIFTED, "False", "InSync", "the server is as requested", now)


def _applied(instance: ComputeInstance, server: ServerRead) -> AppliedSpec | None:
    """Return the applied specification, if the server is provisioned; otherwise the previous one."""
    before, spec = instance.status.applied, server.spec
    if server.metadata.provisioning_status != "provisioned":
        return before
    gpus = 0 if before is None else before.gpus
    if spec.flavor_id == instance.spec.flavor_id:
        gpus = instance.spec.gpus
    authority = server.status.ssh_certificate_authority_id
    rebuilds = min(spec.rebuilds, instance.spec.rebuilds)  # after a restore, the server may have counted more
    return AppliedSpec(**_observed(spec), rebuilds=rebuilds, ssh_certificate_authority_id=authority, gpus=gpus)


def _power(instance: ComputeInstance, server: ServerRead) -> PowerState | None:
    if is_rebuilding(instance, server):
        return "Rebuilding"
    if server.metadata.health_status == "error" or (
        server.metadata.provisioning_status == "error" and not keeps_running(server)
    ):
        return "Error"
    return server.status.power_state


def _with_condition(
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
