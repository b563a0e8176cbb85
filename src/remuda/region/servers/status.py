"""What a provider says of a server, as we say it: power, health, addresses, times.

It is a projection and no more: whatever is seen, nothing is done about it here.
"""

from datetime import datetime
from typing import Literal

from msgspec.structs import replace

from remuda.kernel.conditions import Condition, set_condition
from remuda.providers.contract.servers import Port, ServerState
from remuda.providers.contract.servers import Server as CloudServer
from remuda.region.kinds.servers import Phase, Server, ServerStatus

_PHASES: dict[ServerState, Phase] = {
    "queued": "Queued",
    "building": "Building",
    "rebuilding": "Building",
    "running": "Running",
    "stopping": "Stopping",
    "stopped": "Stopped",
}
"""What is in none of these says nothing about power: the phase stays as it was."""

Health = tuple[Literal["True", "False", "Unknown"], str, str]


def observed(server: Server, found: CloudServer, port: Port | None, now: datetime) -> Server:
    """Return a server with everything in its status that its provider tells; that it drifted, `drifting` says."""
    status = server.status
    changed = replace(
        status,
        phase=_PHASES.get(found.state, status.phase),
        provider_id=found.id,
        image_id=found.image,
        flavor_id=found.flavor,
        scheduled_at=_seconds(found.created),
        launched_at=_seconds(found.launched),
        provisioned_at=status.provisioned_at or _seconds(found.launched),
    )
    if port is not None:
        changed = replace(
            changed,
            private_ip=port.spec.address,
            mac_address=port.spec.mac,
            public_ip=port.public_address,
        )
    return with_health(replace(server, status=changed), _health(found), now)


def absent(server: Server, now: datetime) -> Server:
    """Return a server that its provider does not have at present."""
    status = replace(server.status, phase="Pending")
    return with_health(replace(server, status=status), ("Unknown", "Unknown", "it is not at its provider"), now)


def with_health(server: Server, health: Health, now: datetime) -> Server:
    """Return a server that says how it is doing."""
    state, reason, message = health
    condition = Condition(
        type="Healthy",
        status=state,
        reason=reason,
        message=message,
        last_transition_time=now.replace(microsecond=0),
    )
    status: ServerStatus = server.status
    return replace(server, status=replace(status, conditions=set_condition(status.conditions, condition)))


def _health(found: CloudServer) -> Health:
    match found.state:
        case "running":
            return "True", "Healthy", "server is healthy"
        case "stopped":
            return "True", "Healthy", "server is stopped"
        case "failed":
            return "False", "Errored", found.fault or "the provider says that it failed"
        case "queued" | "building" | "rebuilding":
            return "Unknown", "Provisioning", f"server is {found.state}"
        case "unknown":
            return "Unknown", "Unknown", "the provider does not know how it is"
        case _:
            return "False", "Degraded", f"server is {found.state}"


def _seconds(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.replace(microsecond=0)
