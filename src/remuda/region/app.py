"""Region put together: the rooms over their ports, the API before them, and what goes on by itself behind them.

Region's route table: the routes of all its rooms.

What goes on behind region's rooms: the operations that they begin, and the controllers that make intent true.

The region service: its rooms, each with a port of its own.

Other services use the ports of the rooms, in this process or over HTTP; nothing else of region is theirs to know.

The rooms of region over their ports.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from remuda.http.api import Api
from remuda.http.routes import Table
from remuda.http.watch import WatchPorts
from remuda.operations.recovery import Recovery as OperationRecovery
from remuda.operations.saga import AnyBound
from remuda.operations.service import Operations
from remuda.providers.contract.provider import Subject
from remuda.providers.metrics import CallMetrics
from remuda.reconcile.controller import Driver
from remuda.region.authorities import controller as authority_controllers
from remuda.region.authorities import routes as authorities
from remuda.region.authorities import sagas as authority_sagas
from remuda.region.authorities.service import Authorities
from remuda.region.catalogue import routes as catalogue
from remuda.region.catalogue.provider_registry import Clouds
from remuda.region.catalogue.seed import seed_regions
from remuda.region.catalogue.service import Catalogue
from remuda.region.consumers import ProjectConsumer, Waking
from remuda.region.filestorage import controller as storage_controllers
from remuda.region.filestorage import routes as file_storage
from remuda.region.filestorage import sagas as storage_sagas
from remuda.region.filestorage.classes import ClassKeeper
from remuda.region.filestorage.service import FileStorageService
from remuda.region.images import controller as image_control
from remuda.region.images import routes as images
from remuda.region.images.controller import fetcher_of
from remuda.region.images.service import Images, Snapshots
from remuda.region.loadbalancers import controller as balancer_controllers
from remuda.region.loadbalancers import routes as load_balancers
from remuda.region.loadbalancers import sagas as balancer_sagas
from remuda.region.loadbalancers.service import LoadBalancers
from remuda.region.monitor.inventory import Owners
from remuda.region.monitor.monitor import monitor_of
from remuda.region.monitor.orphans import orphan_breaker
from remuda.region.networks import controller as network_controllers
from remuda.region.networks import routes as networks
from remuda.region.networks import sagas as network_sagas
from remuda.region.networks.service import Networks
from remuda.region.ports import RegionPorts
from remuda.region.recovery import routes as recovery
from remuda.region.recovery.service import Recovery
from remuda.region.securitygroups import controller as group_controllers
from remuda.region.securitygroups import routes as security_groups
from remuda.region.securitygroups.service import SecurityGroups
from remuda.region.servers import controller as server_control
from remuda.region.servers import routes as servers
from remuda.region.servers.actions import ServerActions
from remuda.region.servers.provider_spec import server_handle
from remuda.region.servers.service import Servers
from remuda.region.servers.status import Looking
from remuda.service import api_ports, not_begun, operations_of
from remuda.store.background import Duties
from remuda.version import release

TABLE = Table(
    "region",
    title="Region",
    description="Networks, servers and what they stand on, in every region there is.",
    routes=[
        *catalogue.ROUTES,
        *images.ROUTES,
        *networks.ROUTES,
        *security_groups.ROUTES,
        *authorities.ROUTES,
        *load_balancers.ROUTES,
        *file_storage.ROUTES,
        *servers.ROUTES,
        *recovery.ROUTES,
    ],
)
"""The routes of all resource packages, which an `Api` mounts with `RegionServices`."""


CONCERNED: Mapping[Subject, str] = {
    "tenancy": "identities",
    "network": "networks",
    "group": "securitygroups",
    "port": "servers",
    "server": "servers",
    "balancer": "loadbalancers",
    "storage": "filestorages",
    "image": "imageimports",
}
"""Whose controller looks when a provider tells of something."""


def sagas(ports: RegionPorts) -> Sequence[AnyBound]:
    """Return the operations of all rooms."""
    store, identity = ports.store, ports.identity
    return (
        *network_sagas.bound(network_sagas.NetworkPorts(store=store, identity=identity)),
        *balancer_sagas.bound(balancer_sagas.BalancerPorts(store=store, identity=identity)),
        *storage_sagas.bound(storage_sagas.StoragePorts(store=store, identity=identity)),
        *authority_sagas.bound(authority_sagas.AuthorityPorts(store=store, identity=identity)),
    )


def drivers(ports: RegionPorts, clouds: Clouds) -> Mapping[str, Driver]:
    """Return the controllers of all rooms, by name."""
    reconciling, identity, settings = ports.reconciling, ports.identity, ports.control
    found = (
        *network_controllers.drivers(reconciling, identity, clouds, settings=settings),
        group_controllers.driver(reconciling, clouds, settings=settings),
        authority_controllers.driver(reconciling, identity, settings=settings),
        balancer_controllers.driver(reconciling, identity, clouds, settings=settings),
        storage_controllers.driver(reconciling, identity, clouds, settings=settings),
        image_control.driver(
            reconciling, clouds, image_control.fetcher_of(ports.settings, ports.web), settings=settings
        ),
        server_control.driver(
            reconciling, clouds, create_attempts=ports.settings.create_attempts, settings=settings.for_many()
        ),
    )
    return {driver.name: driver for driver in found}


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionServices:
    """The service of each class that routes call."""

    catalogue: Catalogue
    images: Images
    snapshots: Snapshots
    networks: Networks
    security_groups: SecurityGroups
    authorities: Authorities
    load_balancers: LoadBalancers
    file_storage: FileStorageService
    servers: Servers
    server_actions: ServerActions
    recovery: Recovery


def services(ports: RegionPorts, clouds: Clouds, operations: Operations) -> RegionServices:
    """Return all services over their ports."""
    store, clock, identity = ports.store, ports.clock, ports.identity
    servers = Servers(store=store, clock=clock, identity=identity, clouds=clouds)
    looking = Looking(store=store, clock=clock, clouds=clouds)
    return RegionServices(
        catalogue=Catalogue(clouds=clouds, settings=ports.settings, version=release()),
        images=Images(store=store, clouds=clouds, fetcher=fetcher_of(ports.settings, ports.web)),
        snapshots=Snapshots(store=store, clouds=clouds, handle_of=server_handle),
        networks=Networks(store=store, clock=clock, identity=identity, clouds=clouds, operations=operations),
        security_groups=SecurityGroups(store=store, clock=clock, identity=identity, clouds=clouds),
        authorities=Authorities(store=store, identity=identity, operations=operations),
        load_balancers=LoadBalancers(store=store, clock=clock, identity=identity, clouds=clouds, operations=operations),
        file_storage=FileStorageService(
            store=store, clock=clock, identity=identity, clouds=clouds, operations=operations
        ),
        servers=servers,
        server_actions=ServerActions(store=store, clouds=clouds, servers=servers, looking=looking),
        recovery=Recovery(
            store=store,
            clock=clock,
            clouds=clouds,
            owners=Owners(store=store, log=ports.log),
            breaker=orphan_breaker(ports.reconciling),
        ),
    )


class RegionApp:
    """The whole service."""

    def __init__(self, ports: RegionPorts) -> None:
        self.ports = ports
        self.table = TABLE
        self.clouds = Clouds(
            ports.watched or ports.store,
            ports.providers,
            clock=ports.clock,
            randomness=ports.randomness,
            settings=ports.settings.calls,
            poll_busy=ports.settings.poll_busy,
            look_again=ports.settings.look_again,
            metrics=CallMetrics(ports.metrics),
        )
        self.operations = operations_of(ports, sagas(ports))
        self.services = services(ports, self.clouds, self.operations)
        self.watches = WatchPorts(clock=ports.clock, closing=ports.closing)
        self.api = Api(
            TABLE, self.services, api_ports(ports, ports.authenticator, self.watches, url=ports.settings.url)
        )
        self.drivers = drivers(ports, self.clouds)
        self._consumer = ProjectConsumer(ports.store, ports.identity, clock=ports.clock, randomness=ports.randomness)
        self._classes = ClassKeeper(ports.store, self.clouds, clock=ports.clock)
        self._monitor = monitor_of(ports, self.clouds, self.drivers["servers"].wake)
        self._recovery = OperationRecovery(self.operations, is_alone=ports.is_alone)
        self._duties = Duties(ports.clock)

    async def start(self) -> None:
        """Write which regions there are, take up what was left, and begin."""
        settings = self.ports.settings
        await seed_regions(self.ports.store, settings.regions, now=self.ports.clock.now())
        self._duties.start("recovery", self._recovery.keep)
        self._duties.start("forgetting", self._recovery.keep_forgetting)
        for waking in self._wakings():  # before anything is looked at, so that no change after that is missed
            self._duties.start("provider events", waking.keep)
        for driver in self.drivers.values():
            await driver.start()
        self._duties.start("monitor", self._monitor.keep)
        self._duties.start("project consumer", self._consumer.keep)
        self._duties.start("file storage classes", self._classes.keep)

    async def stop(self) -> None:
        """End everything that goes on by itself."""
        self.ports.closing.set()
        for driver in self.drivers.values():
            await driver.stop()
        await self._duties.stop()
        await self.operations.stop()
        await self.clouds.close()

    def check(self) -> Iterable[tuple[str, str]]:
        """Return what speaks against sending requests here."""
        return not_begun(self.drivers.values())

    def _wakings(self) -> Iterable[Waking]:
        """Yield who listens to each provider that tells anything."""
        drivers = {subject: self.drivers[name] for subject, name in CONCERNED.items()}
        for provider in self.ports.providers.all():
            if provider.events is not None:
                yield Waking(provider, drivers, self.ports.clock)
