"""Region service: its route table, services, operations, controllers and background tasks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from remuda.http.audit import FindOwner
from remuda.http.routes import Table
from remuda.operations.saga import AnyBoundSaga, BoundSaga
from remuda.providers.contract.provider import EventSubject
from remuda.providers.metrics import CallMetrics
from remuda.quota.sagas import QuotaPorts
from remuda.reconcile.controller import Controller
from remuda.region.authorities import controller as authority_controllers
from remuda.region.authorities import routes as authorities
from remuda.region.authorities import sagas as authority_sagas
from remuda.region.authorities.service import Authorities
from remuda.region.catalogue import routes as catalogue
from remuda.region.catalogue.provider_registry import ProviderRegistry
from remuda.region.catalogue.seed import seed_regions
from remuda.region.catalogue.service import Catalogue
from remuda.region.consumers import ProjectConsumer, ProviderEvents
from remuda.region.filestorage import controller as storage_controllers
from remuda.region.filestorage import routes as file_storage
from remuda.region.filestorage import sagas as storage_sagas
from remuda.region.filestorage.classes import StorageClassSync
from remuda.region.filestorage.service import FileStorageService
from remuda.region.images import controller as image_controllers
from remuda.region.images import routes as images
from remuda.region.images.controller import new_fetcher
from remuda.region.images.counts import ImageCounts
from remuda.region.images.service import Images
from remuda.region.images.transfer import Transfers
from remuda.region.loadbalancers import controller as balancer_controllers
from remuda.region.loadbalancers import routes as load_balancers
from remuda.region.loadbalancers import sagas as balancer_sagas
from remuda.region.loadbalancers.service import LoadBalancers
from remuda.region.monitor.inventory import Owners
from remuda.region.monitor.monitor import new_monitor
from remuda.region.monitor.orphans import orphan_guard
from remuda.region.networks import controller as network_controllers
from remuda.region.networks import routes as networks
from remuda.region.networks import sagas as network_sagas
from remuda.region.networks.service import Networks
from remuda.region.owners import owners_in_region
from remuda.region.ports import RegionPorts
from remuda.region.recovery import routes as recovery
from remuda.region.recovery.service import Recovery
from remuda.region.regions import controller as region_controllers
from remuda.region.regions import routes as regions
from remuda.region.regions.service import Regions
from remuda.region.securitygroups import controller as group_controllers
from remuda.region.securitygroups import routes as security_groups
from remuda.region.securitygroups.service import SecurityGroups
from remuda.region.servers import controller as server_controllers
from remuda.region.servers import routes as servers
from remuda.region.servers.actions import ServerActions
from remuda.region.servers.service import Servers
from remuda.region.servers.status import ServerObserver
from remuda.resources import service_info
from remuda.resources.service_info import ServiceInfo
from remuda.service import DocumentChecks, ServiceApp
from remuda.store.background import BackgroundTask
from remuda.version import release

TABLE = Table(
    "region",
    title="Region",
    description="Networks, servers, images, load balancers and file storage of all regions.",
    routes=[
        *service_info.ROUTES,
        *catalogue.ROUTES,
        *regions.ROUTES,
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
"""Routes of all resource packages, which an `Api` mounts with `RegionServices`."""


CONTROLLER_OF: Mapping[EventSubject, str] = {
    "tenancy": "identities",
    "network": "networks",
    "group": "securitygroups",
    "port": "servers",
    "server": "servers",
    "balancer": "loadbalancers",
    "storage": "filestorages",
    "image": "imageimports",
}
"""Name of the controller that a provider event is for, by the subject of the event."""

CONTROLLER_OF_TYPE: Mapping[str, str] = {
    "identity": "identities",
    "network": "networks",
    "securitygroup": "securitygroups",
    "port": "servers",
    "server": "servers",
    "loadbalancer": "loadbalancers",
    "filestorage": "filestorages",
    "image": "imageimports",
}
"""Name of the controller that makes a provider call, by the type in the key of the call: `server-<id>.<uid>.0`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionServices:
    """Services that routes call."""

    info: ServiceInfo
    catalogue: Catalogue
    regions: Regions
    images: Images
    networks: Networks
    security_groups: SecurityGroups
    authorities: Authorities
    load_balancers: LoadBalancers
    file_storage: FileStorageService
    servers: Servers
    server_actions: ServerActions
    recovery: Recovery


class RegionApp(ServiceApp[RegionPorts, RegionServices]):
    """Wiring of the region service over `RegionPorts`."""

    table = TABLE

    def __init__(self, ports: RegionPorts) -> None:
        self.providers = ProviderRegistry(
            ports.watched or ports.store,
            ports.providers,
            clock=ports.clock,
            randomness=ports.randomness,
            settings=ports.settings.calls,
            poll_busy=ports.settings.poll_busy,
            absence_delay=ports.settings.absence_delay,
            metrics=CallMetrics(ports.metrics),
            on_known=self._enqueue_known,
        )
        self._fetcher = new_fetcher(ports.settings, ports.web)
        self._transfers = Transfers(self._fetcher, clock=ports.clock)
        super().__init__(ports, ports.authenticator, url=ports.settings.url)
        self._consumer = ProjectConsumer(ports.store, ports.identity, clock=ports.clock, randomness=ports.randomness)
        self._classes = StorageClassSync(ports.store, self.providers, clock=ports.clock)
        self._monitor = new_monitor(ports, self.providers, self.running_controllers["servers"].enqueue)

    def sagas(self) -> Sequence[AnyBoundSaga]:
        ports = QuotaPorts(store=self.ports.store, ledger=self.ports.identity)
        modules = (network_sagas, balancer_sagas, storage_sagas, authority_sagas)
        return [BoundSaga(saga, ports) for module in modules for saga in module.SAGAS]

    def build_services(self) -> RegionServices:
        ports, providers, operations = self.ports, self.providers, self.operations
        store, clock, identity = ports.store, ports.clock, ports.identity
        networks = Networks(store=store, clock=clock, identity=identity, providers=providers, operations=operations)
        groups = SecurityGroups(store=store, clock=clock, identity=identity, providers=providers, networks=networks)
        authorities = Authorities(store=store, identity=identity, operations=operations)
        servers = Servers(
            store=store,
            clock=clock,
            identity=identity,
            providers=providers,
            networks=networks,
            groups=groups,
            authorities=authorities,
            documents=DocumentChecks(ports.run_blocking),
        )
        counts = ImageCounts(store=store)
        observer = ServerObserver(store=store, clock=clock, providers=providers)
        return RegionServices(
            info=ServiceInfo(
                name="unikorn-region-server",
                release=release(),
                url=ports.settings.url,
                issuer=ports.settings.identity_url,
            ),
            catalogue=Catalogue(providers=providers),
            regions=Regions(store=store, clock=clock, connector=ports.connector),
            images=Images(store=store, providers=providers, fetcher=self._fetcher, counts=counts),
            networks=networks,
            security_groups=groups,
            authorities=authorities,
            load_balancers=LoadBalancers(
                store=store,
                clock=clock,
                identity=identity,
                providers=providers,
                networks=networks,
                operations=operations,
            ),
            file_storage=FileStorageService(
                store=store, clock=clock, identity=identity, providers=providers, operations=operations
            ),
            servers=servers,
            server_actions=ServerActions(
                store=store, providers=providers, servers=servers, observer=observer, counts=counts
            ),
            recovery=Recovery(
                store=store,
                clock=clock,
                providers=providers,
                owners=Owners(store=store, log=ports.log),
                guard=orphan_guard(ports.reconcile_ports),
            ),
        )

    def owners(self) -> Mapping[str, FindOwner]:
        return owners_in_region(self.ports.store, self.providers)

    def controllers(self) -> Sequence[Controller]:
        ports, providers = self.ports, self.providers
        reconciling, identity, settings = ports.reconcile_ports, ports.identity, ports.controllers
        return (
            *region_controllers.controllers(
                reconciling,
                providers,
                ports.connector,
                removal_delay=ports.settings.removal_delay,
                settings=settings,
            ),
            *network_controllers.controllers(reconciling, identity, providers, settings=settings),
            *group_controllers.controllers(reconciling, providers, settings=settings),
            *authority_controllers.controllers(reconciling, identity, settings=settings),
            *balancer_controllers.controllers(reconciling, identity, providers, settings=settings),
            *storage_controllers.controllers(reconciling, identity, providers, settings=settings),
            *image_controllers.controllers(reconciling, providers, self._transfers, settings=settings),
            *server_controllers.controllers(
                reconciling,
                providers,
                documents=DocumentChecks(ports.run_blocking),  # its own slots: requests do not take them
                create_attempts=ports.settings.create_attempts,
                settings=settings.for_many(),
            ),
        )

    def background(self) -> Iterator[tuple[str, BackgroundTask]]:
        controllers = {subject: self.running_controllers[name] for subject, name in CONTROLLER_OF.items()}
        regions, ports = self.running_controllers["regions"], self.ports
        events = ProviderEvents(ports.providers, controllers, regions, store=ports.store, clock=ports.clock)
        yield "provider events", events.run
        yield "image transfers", self._transfers.run
        yield "monitor", self._monitor.run
        yield "project consumer", self._consumer.run
        yield "file storage classes", self._classes.run

    async def seed(self) -> None:
        await seed_regions(self.ports.store, self.ports.settings.regions, now=self.ports.clock.now())

    async def close(self) -> None:
        await self.providers.close()

    def _enqueue_known(self, key: str) -> None:
        """Enqueue the object of a provider call whose unknown outcome has become known."""
        subject, _, name = key.partition("-")
        self.running_controllers[CONTROLLER_OF_TYPE[subject]].enqueue(name.partition(".")[0])
