"""Controller of servers.

A server gets an address, a port with that address, and a server at the provider behind that port. A replacement keeps
the port: its number is stored first, then the old server is deleted, and the new one is created behind the same port.
Another image than the last applied one, or more requested rebuilds, is a rebuild. Changes at the provider without a
request are reported and left alone. A server that does not start is deleted and created again, up to a limit; then it
waits for an operator.
"""

import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from msgspec.structs import replace

from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, NotFound
from remuda.providers.contract.common import Handle, InUse, NoCapacity, Rejected, WrongState, id_in, server_name, uid_in
from remuda.providers.contract.servers import CloudPort, CloudServer
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import LifecycleResult, Outcome, lifecycle_controller
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import RECHECK_S, Blocked, Done, Failed, ReconcileContext, Requeue, Result
from remuda.reconcile.sources import Source, indexed, labelled
from remuda.reconcile.status import is_provisioned
from remuda.region.catalogue.provider_registry import ProviderRegistry, RegionProvider, require
from remuda.region.kinds.authorities import SSHCertificateAuthority
from remuda.region.kinds.common import is_abandoned
from remuda.region.kinds.networks import Address, Identity, Network
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.kinds.servers import ADDRESSES_EXHAUSTED, ReplacementStatus, Server
from remuda.region.networks.ipam import allocate_address, allocate_specific_address, find_address, release_address
from remuda.region.securitygroups.rules import group_handle
from remuda.region.servers.capacity import CapacityReservations
from remuda.region.servers.provider_spec import (
    desired_port,
    desired_server,
    port_handle,
    replacement_number,
    server_handle,
    user_data_for,
)
from remuda.region.servers.repair import (
    completed_replacement,
    rebuild,
    retry_create,
    settled_result,
    with_recreation_counted,
    with_status,
)
from remuda.region.servers.status import absent, observed, with_drift
from remuda.resources.conventions import CONTROLLER_FINALIZER, NETWORK, identity_of, network_of, region_of
from remuda.resources.crud import find
from remuda.service import DocumentChecks
from remuda.store.contract import Store


async def reserve_adopted_address(store: Store, network: Network, server: Server) -> Address | None:
    """Reserve the address of an adopted server, or return None if another holder (uid) has it."""
    assert server.spec.adopted is not None, "the server was adopted"
    return await allocate_specific_address(store, network, server, IPv4Address(server.spec.adopted.address))


_Find = Callable[[Handle], Awaitable[object | None]]
_Remove = Callable[[Handle], Awaitable[None]]
ProviderDeletion = tuple[Handle, _Find, _Remove]
"""Handle of a resource, and the calls that find and delete it."""


def deletions_of(server: Server, cloud: RegionProvider, identity: Identity) -> list[ProviderDeletion]:
    """Return the deletions of the resources that a server may have, in order."""
    replacement = server.status.replacement
    servers, ports = require(cloud.provider.servers), require(cloud.provider.ports)

    async def remove_port(port: Handle) -> None:
        try:
            await ports.remove_port(port)
        except InUse:
            await delete_stale_server(port, cloud)
            raise

    handles = [
        server_handle(server, identity, number) for number in range(replacement.completed, replacement.started + 1)
    ]
    deletions: list[ProviderDeletion] = [(each, servers.find_server, servers.remove_server) for each in handles]
    return [*deletions, (port_handle(server, identity), ports.find_port, remove_port)]


async def delete_stale_server(port: Handle, cloud: RegionProvider, *, older_than: str | None = None) -> None:
    """Delete the server behind a port, if it is `older_than` the one of that name.

    A delayed create may take effect after the server was replaced and its absence was confirmed.
    """
    found = await require(cloud.provider.ports).find_port(port)
    behind = replacement_number(found.server) if found is not None else None
    last = replacement_number(older_than) if older_than is not None else None
    if found is None or behind is None or (last is not None and behind >= last):
        return
    if found.server == server_name(id_in(port.name), uid_in(port.name), behind):  # the port is of the same server
        await require(cloud.provider.servers).remove_server(Handle(port.tenancy, found.server))


async def delete_all(deletions: Sequence[ProviderDeletion], cloud: RegionProvider) -> Result | None:
    """Delete resources in order; return what to wait for, or None when the absence of all is confirmed.

    Absences stay recorded until then, so that the next reconcile does not start over.
    """
    for handle, find_, remove in deletions:
        try:
            waiting = await cloud.delete(handle, find_, remove, forget=False)
        except InUse:
            return Requeue(RECHECK_S, "Deprovisioning", "the provider still uses it")
        if waiting is not None:
            return waiting
    for handle, _, _ in deletions:
        cloud.absence.clear(handle)
    return None


ServerResult = LifecycleResult[Server]
_REPLACING = "the server is being replaced"


@dataclass(frozen=True, slots=True)
class _Dependencies:
    """Objects and provider that a server is created with."""

    cloud: RegionProvider
    identity: Identity
    network: Network
    groups: Sequence[SecurityGroup]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerController:
    """Reconcile functions of servers."""

    store: Store
    clock: Clock
    providers: ProviderRegistry
    capacity: CapacityReservations
    documents: DocumentChecks
    create_attempts: int = 3

    async def provision(self, server: Server, context: ReconcileContext) -> ServerResult:
        dependencies = await self._dependencies(server)
        if isinstance(dependencies, Blocked):
            return dependencies
        replacement = server.status.replacement
        if replacement.started < server.spec.replacement:
            return await self._start_replacement(server, dependencies, replacement)
        if replacement.completed < replacement.started and replacement.predecessors_deleted < replacement.started:
            context.acted = True
            return await self._delete_replaced(server, dependencies, replacement)
        port = await self._port(server, dependencies, context)
        if not isinstance(port, CloudPort):
            return port
        handle = server_handle(server, dependencies.identity, replacement.started)
        if _may_exist(server, handle, dependencies.cloud):
            found = await require(dependencies.cloud.provider.servers).find_server(handle)
            if found is not None:
                return await self._converge(server, dependencies, port, found, context)
        return await self._create(server, dependencies, port, replacement, context)

    async def deprovision(self, server: Server, context: ReconcileContext) -> Result:
        """Delete the server, its port and its address. An abandoned one stays at the provider and keeps its address."""
        if is_abandoned(server):
            return Done()
        identity = await find(self.store, Identity, identity_of(server))
        if identity is not None:
            cloud = await self.providers.get(region_of(server))
            waiting = await delete_all(deletions_of(server, cloud, identity), cloud)
            if waiting is not None:
                context.acted = True
                return waiting
        await release_address(self.store, server)
        return Done()

    async def _dependencies(self, server: Server) -> _Dependencies | Blocked:
        network = await self.store.get(Network, network_of(server))
        if not is_provisioned(network):
            return Blocked("DependencyNotReady", "the network is not provisioned yet")
        groups = [await self.store.get(SecurityGroup, group.id) for group in server.spec.security_groups]
        if not all(group.is_deleting or is_provisioned(group) for group in groups):
            return Blocked("DependencyNotReady", "the security groups are not provisioned yet")
        identity, cloud = (
            await self.store.get(Identity, identity_of(server)),
            await self.providers.get(region_of(server)),
        )
        for group in groups:  # a deleting group waits for this server, so it still exists if it ever did
            if (
                group.is_deleting
                and await require(cloud.provider.security_groups).find_group(group_handle(group, identity)) is None
            ):
                return Blocked("DependencyNotReady", "a security group is being deleted: remove it from the server")
        return _Dependencies(cloud, identity, network, groups)

    async def _port(
        self, server: Server, dependencies: _Dependencies, context: ReconcileContext
    ) -> CloudPort | ServerResult:
        """Return the port as desired, or the result of a step towards it."""
        address = await find_address(self.store, server)
        if address is None:
            context.acted = True
            reserve = allocate_address if server.spec.adopted is None else reserve_adopted_address
            address = await reserve(self.store, dependencies.network, server)
        if address is None:
            return Blocked(ADDRESSES_EXHAUSTED, "the network has no free address: delete a server, or use another")
        desired = desired_port(server, dependencies.identity, dependencies.network, dependencies.groups, address)
        ports = require(dependencies.cloud.provider.ports)
        if _may_exist(server, desired.handle, dependencies.cloud):
            found = await ports.find_port(desired.handle)
            if found is not None and found.spec == desired:
                return found
        context.acted = True
        try:
            return await ports.converge_port(desired)
        except NoCapacity:
            return Failed("PublicAddressesExhausted", "the provider has no public address left")
        except AlreadyExists:
            return Failed("AddressTaken", "another resource at the provider uses the address")

    async def _create(
        self,
        server: Server,
        dependencies: _Dependencies,
        port: CloudPort,
        replacement: ReplacementStatus,
        context: ReconcileContext,
    ) -> ServerResult:
        user_data = await self._user_data(server)
        desired = desired_server(server, dependencies.identity, user_data, replacement.started)
        existed = bool(server.status.provider_id) and replacement.completed == replacement.started
        if existed and not dependencies.cloud.absence.record_missing(desired.handle):
            message = "confirming that the server disappeared from the provider"
            return Requeue(dependencies.cloud.absence.delay_s, "ServerMissing", message)
        missing = absent(server, self.clock.now()) if existed else server
        servers = require(dependencies.cloud.provider.servers)
        try:
            if replacement.completed == replacement.started:
                await self.capacity.check_capacity(server, dependencies.cloud)
            with self.capacity.creating(server):
                created = await servers.create_server(desired)
        except AlreadyExists:  # an earlier create took effect and was not stored; or a read was stale
            found = await servers.find_server(desired.handle)
            waiting = Requeue(RECHECK_S, message="the server is being created")
            return waiting if found is None else await self._converge(server, dependencies, port, found, context)
        except InUse:
            await delete_stale_server(port.spec.handle, dependencies.cloud, older_than=desired.handle.name)
            return Requeue(RECHECK_S, message="an old server behind the port is being deleted")
        except NoCapacity:
            return Outcome(Failed("NoCapacity", "the region has no capacity for this flavor"), missing)
        except (NotFound, Rejected, WrongState):
            message = "the provider does not offer the flavor, image or host any more"
            return Outcome(Failed("ProviderRejected", message), missing)
        dependencies.cloud.absence.clear(desired.handle)
        event = context.event(server, "Recreated" if existed else "Created", flavor=desired.flavor, image=desired.image)
        updated = observed(server, created, port, self.clock.now())
        updated = with_status(
            with_recreation_counted(updated, server, replacement),
            applied_image_id=desired.image,
            applied_rebuilds=desired.rebuilds,
            rebuild=None,
            replacement=completed_replacement(replacement),
            provider_create_retrying=False,
        )
        result = settled_result(created) or Requeue(dependencies.cloud.wait_s, message="the server is starting")
        return self._with_drift(Outcome(result, updated, [event]), created)

    def _with_drift(self, outcome: Outcome[Server], found: CloudServer) -> Outcome[Server]:
        """Add drift to a result: last, since it is compared with the rest of the status."""
        return dataclasses.replace(outcome, resource=with_drift(outcome.resource, found, self.clock.now()))

    async def _converge(
        self,
        server: Server,
        dependencies: _Dependencies,
        port: CloudPort,
        found: CloudServer,
        context: ReconcileContext,
    ) -> Outcome[Server]:
        dependencies.cloud.absence.clear(found.handle)
        return self._with_drift(await self._reconcile_found(server, dependencies, port, found, context), found)

    async def _reconcile_found(
        self,
        server: Server,
        dependencies: _Dependencies,
        port: CloudPort,
        found: CloudServer,
        context: ReconcileContext,
    ) -> Outcome[Server]:
        updated = observed(server, found, port, self.clock.now())
        replacement = updated.status.replacement
        applied, rebuilds = server.status.applied_image_id, server.status.applied_rebuilds
        is_another = found.id != server.status.provider_id
        if replacement.completed < replacement.started or not applied or is_another:  # its create was not stored
            applied, rebuilds, updated = found.image, found.rebuilds, with_status(updated, rebuild=None)
        updated = with_status(
            with_recreation_counted(updated, server, replacement),
            applied_image_id=applied,
            applied_rebuilds=rebuilds,
            replacement=completed_replacement(replacement),
        )
        if is_another:  # the server that failed is gone
            updated = with_status(updated, provider_create_retrying=False)
        if found.state == "failed" and found.launched is None:
            servers = require(dependencies.cloud.provider.servers)
            return await retry_create(updated, found, servers, context, attempts=self.create_attempts)
        if found.launched is not None:
            updated = with_status(updated, provider_create_failures=0, provider_create_retrying=False)
        is_due = applied != server.spec.image.id or rebuilds < server.spec.rebuilds
        if is_due or updated.status.rebuild is not None:
            user_data = await self._user_data(server)
            return await rebuild(updated, found, dependencies.cloud, context, user_data=user_data)
        result = settled_result(found) or Requeue(dependencies.cloud.wait_s, message=f"the server is {found.state}")
        return Outcome(result, updated)

    async def _start_replacement(
        self, server: Server, dependencies: _Dependencies, replacement: ReplacementStatus
    ) -> ServerResult:
        """Start a replacement if there is capacity for it. Until that is stored, the replacement can be cancelled."""
        numbers = range(replacement.completed, replacement.started + 1)
        old = [server_handle(server, dependencies.identity, number) for number in numbers]
        if not await self.capacity.reserve(server, dependencies.cloud, old):
            return Failed("NoCapacity", "the region has no capacity for the new flavor: the old server is kept")
        started = with_status(
            server,
            replacement=replace(replacement, started=server.spec.replacement),
            provider_create_failures=0,
            provider_create_retrying=False,
        )
        return Outcome(Requeue(0, message=_REPLACING), started)

    async def _delete_replaced(
        self, server: Server, dependencies: _Dependencies, replacement: ReplacementStatus
    ) -> ServerResult:
        """Delete the servers that a replacement supersedes; there may be several after a lost create."""
        servers = require(dependencies.cloud.provider.servers)
        old = [
            server_handle(server, dependencies.identity, number)
            for number in range(replacement.completed, replacement.started)
        ]
        waiting = await delete_all(
            [(each, servers.find_server, servers.remove_server) for each in old], dependencies.cloud
        )
        if isinstance(waiting, Requeue):
            return dataclasses.replace(waiting, reason="Provisioning", message=f"{_REPLACING}: the old one is deleted")
        cleared = with_status(server, replacement=replace(replacement, predecessors_deleted=replacement.started))
        return waiting or Outcome(Requeue(0, message=_REPLACING), absent(cleared, self.clock.now()))

    async def _user_data(self, server: Server) -> bytes:
        name = server.spec.ssh_certificate_authority_id
        authority = await self.store.get(SSHCertificateAuthority, name) if name else None
        if server.spec.user_data is None:
            return user_data_for(server, authority)
        return await self.documents.run("spec.userData", lambda: user_data_for(server, authority))


def _may_exist(server: Server, handle: Handle, cloud: RegionProvider) -> bool:
    """Return whether a resource may exist before its first create. An unexpected one is reported by AlreadyExists."""
    return bool(server.status.provider_id) or server.spec.adopted is not None or cloud.calls.is_unknown(handle.name)


def controllers(
    ports: ReconcilePorts,
    providers: ProviderRegistry,
    *,
    documents: DocumentChecks,
    create_attempts: int,
    settings: ControllerSettings | None = None,
) -> Sequence[Controller]:
    """Return the controllers of servers, which wait for networks, security groups and free addresses."""
    store = ports.store
    servers = ServerController(
        store=store,
        clock=ports.clock,
        providers=providers,
        capacity=CapacityReservations(store),
        documents=documents,
        create_attempts=create_attempts,
    )
    return (
        lifecycle_controller(
            "servers",
            Server,
            provision=servers.provision,
            deprovision=servers.deprovision,
            finalizer=CONTROLLER_FINALIZER,
            ports=ports,
            sources=(
                Source(Server, when=_is_moving, keys=_if_moving, created=False),
                Source(Network, when=is_provisioned, keys=labelled(store, Server, NETWORK)),
                Source(Address, keys=indexed(store, Server, "without address", network_of), created=False),
                Source(
                    SecurityGroup,
                    when=_is_ready_or_deleting,
                    keys=indexed(store, Server, "group", lambda group: group.name),
                ),
            ),
            settings=settings,
        ),
    )


def _is_moving(server: Server) -> bool:
    """Return whether an action changes a server that was as desired: not every provider reports when it is done."""
    return server.status.phase in {"Building", "Stopping"} and is_provisioned(server)


def _if_moving(server: Server) -> Iterable[str]:
    return (server.name,) if _is_moving(server) else ()


def _is_ready_or_deleting(group: SecurityGroup) -> bool:
    return group.is_deleting or is_provisioned(group)
