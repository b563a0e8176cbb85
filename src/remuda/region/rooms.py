"""The rooms of region over their ports."""

from remuda.operations.service import Operations
from remuda.region.authorities.service import Authorities
from remuda.region.catalogue.provider_registry import Clouds
from remuda.region.catalogue.service import Catalogue
from remuda.region.filestorage.service import FileStorageRoom
from remuda.region.images.control import fetcher_of
from remuda.region.images.facade import ImageRoom
from remuda.region.images.service import Images
from remuda.region.images.snapshots import Snapshots
from remuda.region.loadbalancers.service import LoadBalancers
from remuda.region.monitor.orphans import orphan_breaker
from remuda.region.monitor.owners import Owners
from remuda.region.networks.service import Networks
from remuda.region.ports import RegionPorts
from remuda.region.recovery.service import Recovery
from remuda.region.securitygroups.service import SecurityGroups
from remuda.region.servers.actions import Verbs
from remuda.region.servers.facade import ServerRoom
from remuda.region.servers.looking import Looking
from remuda.region.servers.provider_spec import server_handle
from remuda.region.servers.service import Servers
from remuda.region.service import Region
from remuda.version import release


def rooms(ports: RegionPorts, clouds: Clouds, operations: Operations) -> Region:
    """Return all of them."""
    store, clock, identity = ports.store, ports.clock, ports.identity
    servers = Servers(store=store, clock=clock, identity=identity, clouds=clouds)
    looking = Looking(store=store, clock=clock, clouds=clouds)
    return Region(
        catalogue=Catalogue(clouds=clouds, settings=ports.settings, version=release()),
        images=ImageRoom(
            images=Images(store=store, clouds=clouds, fetcher=fetcher_of(ports.settings, ports.web)),
            snapshots=Snapshots(store=store, clouds=clouds, handle_of=server_handle),
        ),
        networks=Networks(store=store, clock=clock, identity=identity, clouds=clouds, operations=operations),
        security_groups=SecurityGroups(store=store, clock=clock, identity=identity, clouds=clouds),
        authorities=Authorities(store=store, identity=identity, operations=operations),
        load_balancers=LoadBalancers(store=store, clock=clock, identity=identity, clouds=clouds, operations=operations),
        file_storage=FileStorageRoom(store=store, clock=clock, identity=identity, clouds=clouds, operations=operations),
        servers=ServerRoom(servers=servers, verbs=Verbs(store=store, clouds=clouds, servers=servers, looking=looking)),
        recovery=Recovery(
            store=store,
            clock=clock,
            clouds=clouds,
            owners=Owners(store=store, log=ports.log),
            breaker=orphan_breaker(ports.reconciling),
        ),
    )
