"""What makes servers true at a provider.

::

    an address of ours  →  a port with that address  →  a server behind that port  →  it runs

A replacement keeps the port: its counter is written first, since it is in the name, then the old server goes, and then
the new one is made behind the same port. Another image than the one we last put there is a rebuild in place. What the
provider changes by itself is shown and left alone.

A server that could not be brought up is removed and made again, so many times; then it waits for an operator.

The address of a server that was at its provider before its object was: it keeps the one that it has there.

How what a server has at its provider goes: one thing after the other, each until it is really gone.

The controller of servers, and what wakes it.
"""

import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from msgspec.structs import replace

from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, NotFound
from remuda.providers.contract.common import Handle, InUse, NoCapacity, Rejected, WrongState, id_in, server_name, uid_in
from remuda.providers.contract.servers import CloudPort, CloudServer
from remuda.quota.reservation import RECHECK_S, is_provisioned
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import Outcome, lifecycle_controller
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import Blocked, Done, Failed, ReconcileContext, Requeue, Result
from remuda.reconcile.sources import Source, labelled, through
from remuda.region.catalogue.provider_registry import Cloud, Clouds, need
from remuda.region.deletion import going
from remuda.region.kinds.authorities import SSHCertificateAuthority
from remuda.region.kinds.common import is_abandoned
from remuda.region.kinds.networks import Address, Identity, Network
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.kinds.servers import ADDRESSES_EXHAUSTED, Replacement, Server
from remuda.region.networks.ipam import find_address, give_address_back, take_address, take_this_address
from remuda.region.securitygroups.rules import handle_of
from remuda.region.servers.capacity import Places
from remuda.region.servers.provider_spec import number_in, port_handle, server_handle, wanted_port, wanted_server
from remuda.region.servers.repair import counted, done_with, rebuild, settled, try_again, with_status
from remuda.region.servers.status import absent, observed, with_drift
from remuda.resources.conventions import CONTROLLER_FINALIZER, NETWORK, identity_of, network_of, region_of
from remuda.resources.crud import find
from remuda.store.contract import Store


async def take_adopted_address(store: Store, network: Network, server: Server) -> Address | None:
    """Give an adopted server the address that it has, or return None if another has it.

    If it is still held for the object that was lost, it is this one's: both have the same uid at the provider.
    """
    assert server.spec.adopted is not None, "it was adopted"
    return await take_this_address(store, network, server, IPv4Address(server.spec.adopted.address))


_Find = Callable[[Handle], Awaitable[object | None]]
_Remove = Callable[[Handle], Awaitable[None]]
Thing = tuple[Handle, _Find, _Remove]
"""Something at a provider: its name there, how to look for it, and how to remove it."""


def things_of(server: Server, cloud: Cloud, home: Identity) -> list[Thing]:
    """Return what a server may have at its provider, in the order in which it can be removed."""
    turn = server.status.replacement or Replacement()
    servers, ports = need(cloud.provider.servers), need(cloud.provider.ports)

    async def remove_port(port: Handle) -> None:
        try:
            await ports.remove_port(port)
        except InUse:
            await remove_late(port, cloud)
            raise

    made = [server_handle(server, home, number) for number in range(turn.done, turn.counter + 1)]
    things: list[Thing] = [(each, servers.find_server, servers.remove_server) for each in made]
    return [*things, (port_handle(server, home), ports.find_port, remove_port)]


async def remove_late(port: Handle, cloud: Cloud, *, older_than: str | None = None) -> None:
    """Remove the server behind a port, if it is `older_than` the one of that name.

    Somebody who slept asked for it when it had long been replaced, and everybody had looked and seen it gone.
    """
    found = await need(cloud.provider.ports).find_port(port)
    behind = number_in(found.server) if found is not None else None
    last = number_in(older_than) if older_than is not None else None
    if found is None or behind is None or (last is not None and behind >= last):
        return
    if found.server == server_name(id_in(port.name), uid_in(port.name), behind):  # it is of the same server as the port
        await need(cloud.provider.servers).remove_server(Handle(port.tenancy, found.server))


async def all_gone(things: Sequence[Thing], cloud: Cloud) -> Result | None:
    """Remove things one after the other; return what to wait for, or None when all are gone.

    That one is gone is known until all are: else it would be looked for anew at each step of the next one.
    """
    for handle, find_, remove in things:
        left = await _gone(handle, find_, remove, cloud)
        if left is not None:
            return left
    for handle, _, _ in things:
        cloud.absences.clear(handle)
    return None


async def _gone(handle: Handle, find_: _Find, remove: _Remove, cloud: Cloud) -> Result | None:
    try:
        return await going(handle, find_, remove, cloud)
    except InUse:
        return Requeue(RECHECK_S, "Deprovisioning", "the provider still uses it")


Step = Result | Outcome[Server]


@dataclass(frozen=True, slots=True)
class _Site:
    """Where a server is made."""

    cloud: Cloud
    home: Identity
    network: Network
    groups: Sequence[SecurityGroup]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerController:
    """Makes, keeps and removes what a server has at its provider."""

    store: Store
    clock: Clock
    clouds: Clouds
    places: Places
    create_attempts: int = 3

    async def provision(self, server: Server, run: ReconcileContext) -> Step:
        """Bring a server one step nearer to being as it is wanted."""
        site = await self._site(server)
        if isinstance(site, Blocked):
            return site
        turn = server.status.replacement or Replacement()
        if turn.counter < server.spec.replacement:
            return await self._begin(server, site, turn)
        if turn.done < turn.counter and turn.cleared < turn.counter:
            run.acted = True
            return await self._make_way(server, site, turn)
        port = await self._port(server, site, run)
        if not isinstance(port, CloudPort):
            return port
        handle = server_handle(server, site.home, turn.counter)
        if _may_be_there(server, handle, site.cloud):
            found = await need(site.cloud.provider.servers).find_server(handle)
            if found is not None:
                return await self._keep(server, site, port, found, run)
        return await self._create(server, site, port, turn, run)

    async def deprovision(self, server: Server, run: ReconcileContext) -> Result:
        """Bring a server one step nearer to being gone: itself, its port, its address.

        What an operator has abandoned stays at the provider, and so does its address: nobody else could have it.
        """
        if is_abandoned(server):
            return Done()
        home = await find(self.store, Identity, identity_of(server))
        if home is not None:
            cloud = await self.clouds.get(region_of(server))
            left = await all_gone(things_of(server, cloud, home), cloud)
            if left is not None:
                run.acted = True
                return left
        await give_address_back(self.store, server)
        return Done()

    async def _site(self, server: Server) -> _Site | Blocked:
        """Return where a server is made, or what has to be there before."""
        network = await self.store.get(Network, network_of(server))
        if not is_provisioned(network):
            return Blocked("DependencyNotReady", "its network is being made")
        groups = [await self.store.get(SecurityGroup, group.id) for group in server.spec.security_groups]
        if not all(group.is_deleting or is_provisioned(group) for group in groups):
            return Blocked("DependencyNotReady", "its security groups are being made")
        home, cloud = await self.store.get(Identity, identity_of(server)), await self.clouds.get(region_of(server))
        for group in groups:  # one that goes waits for this server, and is there until then if it ever was
            if (
                group.is_deleting
                and await need(cloud.provider.security_groups).find_group(handle_of(group, home)) is None
            ):
                return Blocked("DependencyNotReady", "a security group of it is being deleted: take it out of that")
        return _Site(cloud, home, network, groups)

    async def _port(self, server: Server, site: _Site, run: ReconcileContext) -> CloudPort | Step:
        """Return the port as it is wanted, or what was done to have it so."""
        address = await find_address(self.store, server)
        if address is None:
            run.acted = True
            taking = take_address if server.spec.adopted is None else take_adopted_address
            address = await taking(self.store, site.network, server)
        if address is None:
            return Blocked(ADDRESSES_EXHAUSTED, "its network has no free address: remove something, or use another")
        wanted = wanted_port(server, site.home, site.network, site.groups, address)
        ports = need(site.cloud.provider.ports)
        if _may_be_there(server, wanted.handle, site.cloud):
            found = await ports.find_port(wanted.handle)
            if found is not None and found.spec == wanted:
                return found
        run.acted = True
        try:
            return await ports.converge_port(wanted)
        except NoCapacity:
            return Failed("PublicAddressesExhausted", "the provider has no public address left")
        except AlreadyExists:
            return Failed("AddressTaken", "the provider has given its address to something that is not ours")

    async def _create(
        self, server: Server, site: _Site, port: CloudPort, turn: Replacement, run: ReconcileContext
    ) -> Step:
        authority = await self._authority(server)
        wanted = wanted_server(server, site.home, authority, turn.counter)
        was_there = bool(server.status.provider_id) and turn.done == turn.counter
        if was_there and not site.cloud.absences.record_missing(wanted.handle):
            return Requeue(
                site.cloud.absences.delay_s, "ServerVanished", "it is not at its provider, looking once more"
            )
        missing = absent(server, self.clock.now()) if was_there else server
        servers = need(site.cloud.provider.servers)
        try:
            if turn.done == turn.counter:
                await self.places.check_room(server, site.cloud)
            with self.places.taking(server):
                made = await servers.create_server(wanted)
        except AlreadyExists:  # somebody made it, and did not come to write that down; or a read was old
            found = await servers.find_server(wanted.handle)
            again = Requeue(RECHECK_S, message="being made")
            return again if found is None else await self._keep(server, site, port, found, run)
        except InUse:
            await remove_late(port.spec.handle, site.cloud, older_than=wanted.handle.name)
            return Requeue(RECHECK_S, message="what stood behind its port is being removed")
        except NoCapacity:
            return Outcome(Failed("NoCapacity", "the region has no room for its flavor now"), missing)
        except (NotFound, Rejected, WrongState):
            refused = "the provider does not offer its flavor, image or host as they were"
            return Outcome(Failed("ProviderRefused", refused), missing)
        site.cloud.absences.clear(wanted.handle)
        entry = run.event(server, "MadeAgain" if was_there else "Made", flavor=wanted.flavor, image=wanted.image)
        seen = observed(server, made, port, self.clock.now())
        seen = with_status(
            counted(seen, server, turn),
            applied_image_id=wanted.image,
            rebuild=None,
            replacement=done_with(turn),
            provider_create_retrying=False,
        )
        outcome = Outcome(settled(made) or Requeue(site.cloud.wait_s, message="being brought up"), seen, [entry])
        return self._judged(outcome, made)

    def _judged(self, outcome: Outcome[Server], found: CloudServer) -> Outcome[Server]:
        """Say whether a server has drifted: last, for what it was made is known only when all else was written down."""
        return dataclasses.replace(outcome, resource=with_drift(outcome.resource, found, self.clock.now()))

    async def _keep(
        self, server: Server, site: _Site, port: CloudPort, found: CloudServer, run: ReconcileContext
    ) -> Outcome[Server]:
        """Look after a server that is there."""
        site.cloud.absences.clear(found.handle)
        return self._judged(await self._kept(server, site, port, found, run), found)

    async def _kept(
        self, server: Server, site: _Site, port: CloudPort, found: CloudServer, run: ReconcileContext
    ) -> Outcome[Server]:
        seen = observed(server, found, port, self.clock.now())
        turn = seen.status.replacement or Replacement()
        applied = server.status.applied_image_id
        is_another = found.id != server.status.provider_id
        if turn.done < turn.counter or not applied or is_another:  # we made it, and did not come to write that down
            applied, seen = found.image, with_status(seen, rebuild=None)
        seen = with_status(counted(seen, server, turn), applied_image_id=applied, replacement=done_with(turn))
        if is_another:  # what failed before is gone
            seen = with_status(seen, provider_create_retrying=False)
        if found.state == "failed" and found.launched is None:
            return await try_again(seen, found, need(site.cloud.provider.servers), run, attempts=self.create_attempts)
        if found.launched is not None:
            seen = with_status(seen, provider_create_failures=0, provider_create_retrying=False)
        if applied != server.spec.image.id or seen.status.rebuild is not None:
            anew = wanted_server(server, site.home, await self._authority(server), turn.counter)
            return await rebuild(seen, found, site.cloud, run, user_data=anew.user_data)
        return Outcome(settled(found) or Requeue(site.cloud.wait_s, message=f"it is {found.state}"), seen)

    async def _begin(self, server: Server, site: _Site, turn: Replacement) -> Step:
        """Begin a replacement, if there is room for what is to come. Until that is written, it can be taken back."""
        old = [server_handle(server, site.home, number) for number in range(turn.done, turn.counter + 1)]
        if not await self.places.promise(server, site.cloud, old):
            return Failed("NoCapacity", "the region has no room for its new flavor now: its old server is kept")
        turn = replace(turn, counter=server.spec.replacement)
        begun = with_status(server, replacement=turn, provider_create_failures=0, provider_create_retrying=False)
        return Outcome(Requeue(0, message="being replaced"), begun)

    async def _make_way(self, server: Server, site: _Site, turn: Replacement) -> Step:
        """Remove what a replacement takes the place of.

        Between the one that was last there and the one that is wanted now there may be others: one that was made, and
        replaced before anybody knew.
        """
        servers = need(site.cloud.provider.servers)
        old = [server_handle(server, site.home, number) for number in range(turn.done, turn.counter)]
        left = await all_gone([(each, servers.find_server, servers.remove_server) for each in old], site.cloud)
        if isinstance(left, Requeue):
            return dataclasses.replace(left, reason="Provisioning", message="being replaced: the old one is removed")
        cleared = with_status(server, replacement=replace(turn, cleared=turn.counter))
        return left or Outcome(Requeue(0, message="being replaced"), absent(cleared, self.clock.now()))

    async def _authority(self, server: Server) -> SSHCertificateAuthority | None:
        name = server.spec.ssh_certificate_authority_id
        return await self.store.get(SSHCertificateAuthority, name) if name else None


def _may_be_there(server: Server, handle: Handle, cloud: Cloud) -> bool:
    """Tell whether to look for something of a server first: what was never made is found by who makes it twice."""
    return bool(server.status.provider_id) or server.spec.adopted is not None or cloud.calls.is_unknown(handle.name)


def driver(
    ports: ReconcilePorts, clouds: Clouds, *, create_attempts: int, settings: ControllerSettings | None = None
) -> Controller:
    """Return the controller of servers. It also waits for their networks and security groups to be there.

    And where a network has no free address, for one of its addresses to be given back.
    """
    store = ports.store
    servers = ServerController(
        store=store, clock=ports.clock, clouds=clouds, places=Places(store), create_attempts=create_attempts
    )
    return lifecycle_controller(
        "servers",
        Server,
        provision=servers.provision,
        deprovision=servers.deprovision,
        finalizer=CONTROLLER_FINALIZER,
        ports=ports,
        sources=(
            Source(Network, when=is_provisioned, keys=labelled(store, Server, NETWORK)),
            Source(Address, keys=through(store, Server, "without address", network_of), arrivals=False),
            Source(
                SecurityGroup, when=_has_come_or_goes, keys=through(store, Server, "group", lambda group: group.name)
            ),
        ),
        settings=settings,
    )


def _has_come_or_goes(group: SecurityGroup) -> bool:
    return group.is_deleting or is_provisioned(group)
