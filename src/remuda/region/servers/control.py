"""The controller of servers, and what wakes it."""

from remuda.quota.reservation import is_provisioned
from remuda.reconcile.controller import Driver
from remuda.reconcile.lifecycle import Lifecycle
from remuda.reconcile.ports import DriverSettings, ReconcilePorts
from remuda.reconcile.sources import Source, labelled, through
from remuda.region.catalogue.provider_registry import Clouds
from remuda.region.kinds.addresses import Address
from remuda.region.kinds.networks import Network
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.kinds.servers import Server
from remuda.region.servers.capacity import Places
from remuda.region.servers.controller import ServerController
from remuda.resources.conventions import IN_CARE, NETWORK, network_of


def driver(
    ports: ReconcilePorts, clouds: Clouds, *, create_attempts: int, settings: DriverSettings | None = None
) -> Driver:
    """Return the controller of servers. It also waits for their networks and security groups to be there.

    And where a network has no free address, for one of its addresses to be given back.
    """
    store = ports.store
    servers = ServerController(
        store=store, clock=ports.clock, clouds=clouds, places=Places(store), create_attempts=create_attempts
    )
    return Driver(
        "servers",
        Lifecycle(
            Server,
            provision=servers.provision,
            deprovision=servers.deprovision,
            finalizer=IN_CARE,
            ports=ports,
        ),
        kind=Server,
        ports=ports,
        sources=(
            Source(Server),
            Source(Network, when=is_provisioned, keys=labelled(store, Server, NETWORK)),
            Source(Address, keys=through(store, Server, "without address", network_of), arrivals=False),
            Source(
                SecurityGroup, when=_has_come_or_goes, keys=through(store, Server, "group", lambda group: group.name)
            ),
        ),
        settings=settings,
    )


def _has_come_or_goes(group: SecurityGroup) -> bool:
    return group.is_marked or is_provisioned(group)
