"""Status of servers: power, health, addresses, times and drift, as the provider reports them.

Drift, a change at the provider without a request, is reported by the condition `Drifted` and not changed back, since
an operator may have made it deliberately. It is not compared during a replacement or a rebuild.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from msgspec.structs import replace

from remuda.kernel.clock import Clock
from remuda.kernel.conditions import Condition, find_condition, set_condition
from remuda.providers.contract.servers import CloudPort, CloudServer, CloudServerState
from remuda.region.catalogue.provider_registry import ProviderRegistry, require
from remuda.region.kinds.networks import Identity
from remuda.region.kinds.servers import DRIFTED, Phase, Server, ServerStatus
from remuda.region.servers.provider_spec import port_handle, server_handle
from remuda.resources.conventions import identity_of, region_of
from remuda.resources.crud import find, retry_on_conflict
from remuda.store.contract import Store

_PHASES: dict[CloudServerState, Phase] = {
    "queued": "Queued",
    "building": "Building",
    "rebuilding": "Building",
    "running": "Running",
    "stopping": "Stopping",
    "stopped": "Stopped",
}
"""Phases by state; in any other state the phase stays as it was."""

Health = tuple[Literal["True", "False", "Unknown"], str, str]


def observed(server: Server, found: CloudServer, port: CloudPort | None, now: datetime) -> Server:
    """Return a server with the status that its provider reports, without drift."""
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
            changed, private_ip=port.spec.address, mac_address=port.spec.mac, public_ip=port.public_address
        )
    return with_health(replace(server, status=changed), _health(found), now)


def absent(server: Server, now: datetime) -> Server:
    """Return a server that its provider does not have at present."""
    status = replace(server.status, phase="Pending")
    return with_health(replace(server, status=status), ("Unknown", "Unknown", "the server is not at its provider"), now)


def with_health(server: Server, health: Health, now: datetime) -> Server:
    state, reason, message = health
    condition = Condition(
        type="Healthy", status=state, reason=reason, message=message, last_transition_time=now.replace(microsecond=0)
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
            return "False", "Errored", found.fault or "the provider reports that the server failed"
        case "queued" | "building" | "rebuilding":
            return "Unknown", "Provisioning", f"server is {found.state}"
        case "unknown":
            return "Unknown", "Unknown", "the provider does not know the state of the server"
        case _:
            return "False", "Degraded", f"server is {found.state}"


def _seconds(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.replace(microsecond=0)


def with_drift(server: Server, found: CloudServer, now: datetime) -> Server:
    """Return a server with its drift condition; one that never drifted has none."""
    if _is_being_changed(server, found):
        return server
    differences = _differences(server, found)
    if not differences and find_condition(server.status.conditions, DRIFTED) is None:
        return server
    condition = Condition(
        type=DRIFTED,
        status="True" if differences else "False",
        reason="ChangedAtProvider" if differences else "InSync",
        message=", ".join(differences) or "the server is as requested",
        last_transition_time=now.replace(microsecond=0),
    )
    conditions = set_condition(server.status.conditions, condition)
    return replace(server, status=replace(server.status, conditions=conditions))


def _is_being_changed(server: Server, found: CloudServer) -> bool:
    status = server.status
    replacement = status.replacement
    is_replaced = not replacement.completed == replacement.started == server.spec.replacement
    is_rebuilt = status.rebuild is not None or status.applied_image_id not in {"", server.spec.image.id}
    is_rebuilt = is_rebuilt or status.applied_rebuilds < server.spec.rebuilds
    return is_replaced or is_rebuilt or found.state == "rebuilding"


def _differences(server: Server, found: CloudServer) -> list[str]:
    differences, applied = [], server.status.applied_image_id
    if found.flavor != server.spec.flavor_id:
        differences.append(f"its flavor is {found.flavor}")
    if applied and found.image != applied:
        differences.append(f"its image is {found.image}")
    return differences


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerObserver:
    """Observer of servers at their providers."""

    store: Store
    clock: Clock
    providers: ProviderRegistry

    async def observe(self, server: str) -> Server | None:
        """Store the observed status of a server and return it; None if the server or its resource does not exist.

        The provider is read after the object, and both again after a conflict, so that an older status never replaces a
        newer one.
        """

        async def write() -> Server | None:
            found = await find(self.store, Server, server)
            if found is None:
                return None
            identity = await find(self.store, Identity, identity_of(found))
            if identity is None:
                return None
            updated = await self._observed(found, identity)
            if updated is None or updated.status == found.status:
                return updated
            return await self.store.update_status(updated)

        return await retry_on_conflict(write)

    async def _observed(self, server: Server, identity: Identity) -> Server | None:
        provider = (await self.providers.get(region_of(server))).provider
        replacement = server.status.replacement
        found = await require(provider.servers).find_server(server_handle(server, identity, replacement.started))
        if found is None:
            return None
        port = await require(provider.ports).find_port(port_handle(server, identity))
        now = self.clock.now()
        return with_drift(observed(server, found, port, now), found, now)
