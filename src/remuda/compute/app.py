"""Compute service: its route table, services, operations, controllers and background tasks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from remuda.compute import catalogue, policies, recovery
from remuda.compute.catalogue import Catalogue
from remuda.compute.consumers import NetworkConsumer, ProjectConsumer
from remuda.compute.history import routes as history
from remuda.compute.history.service import History
from remuda.compute.instances import controller as instance_controllers
from remuda.compute.instances import routes as instances
from remuda.compute.instances.actions import Actions
from remuda.compute.instances.convergence import cleanup_guard
from remuda.compute.instances.sagas import SAGAS, InstancePorts
from remuda.compute.instances.server_lookup import ServerLookup
from remuda.compute.instances.server_watch import ServerWatch
from remuda.compute.instances.service import Instances
from remuda.compute.instances.updates import Updates
from remuda.compute.kinds import ComputeInstance
from remuda.compute.monitor.monitor import new_monitor
from remuda.compute.monitor.orphans import orphan_guard
from remuda.compute.policies import Policies
from remuda.compute.ports import ComputePorts, IdentityPort
from remuda.compute.recovery import ComputeRecovery
from remuda.http.audit import FindOwner
from remuda.http.routes import Table
from remuda.operations.saga import AnyBoundSaga, BoundSaga
from remuda.reconcile.controller import Controller
from remuda.resources import service_info
from remuda.resources.owners import owner_by_label
from remuda.resources.service_info import ServiceInfo
from remuda.service import DocumentChecks, ServiceApp
from remuda.store.background import BackgroundTask
from remuda.version import release

TABLE = Table(
    "compute",
    title="Compute",
    description="Instances: their specification and status, the plan of an update, and their history.",
    routes=[
        *service_info.ROUTES,
        *catalogue.ROUTES,
        *instances.ROUTES,
        *history.ROUTES,
        *policies.ROUTES,
        *recovery.ROUTES,
    ],
)
"""The routes of all resource packages, which an `Api` mounts with `ComputeServices`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeServices:
    """The service of each class that routes call."""

    info: ServiceInfo
    catalogue: Catalogue
    instances: Instances
    updates: Updates
    actions: Actions
    policies: Policies
    history: History
    recovery: ComputeRecovery


class ComputeApp(ServiceApp[ComputePorts, ComputeServices]):
    """The compute service: services, operations, controllers and background tasks over `ComputePorts`."""

    table = TABLE

    def __init__(self, ports: ComputePorts) -> None:
        super().__init__(ports, ports.authenticator, url=ports.settings.url)

    def sagas(self) -> Sequence[AnyBoundSaga]:
        ports = InstancePorts(store=self.ports.store, ledger=self.ports.identity, region=self.ports.region)
        return [BoundSaga(saga, ports) for saga in SAGAS]

    def build_services(self) -> ComputeServices:
        ports, operations = self.ports, self.operations
        store, clock, identity, region, log = ports.store, ports.clock, ports.identity, ports.region, ports.log
        instances = Instances(
            store=store,
            clock=clock,
            identity=identity,
            region=region,
            operations=operations,
            documents=DocumentChecks(ports.run_blocking),
        )
        matches = ServerLookup.create(region, ports.metrics)
        guards = cleanup_guard(ports.reconcile_ports), orphan_guard(ports.reconcile_ports)
        return ComputeServices(
            info=ServiceInfo(
                name="unikorn-compute-server",
                release=release(),
                url=ports.settings.url,
                issuer=ports.settings.identity_url,
            ),
            catalogue=Catalogue(region=region),
            instances=instances,
            updates=Updates(instances),
            actions=Actions(instances=instances, region=region, lookup=matches, log=log),
            policies=Policies(store=store, identity=identity),
            history=History(
                store=store, log=log, clock=clock, sealer=ports.sealer, region=region, operations=operations
            ),
            recovery=ComputeRecovery(guards=guards),
        )

    def owners(self) -> Mapping[str, FindOwner]:
        return {
            "instanceID": owner_by_label(self.ports.store, ComputeInstance, "instanceID"),
            "projectID": partial(_owner_of_project, self.ports.identity),
        }

    def controllers(self) -> Sequence[Controller]:
        return instance_controllers.controllers(self.ports)

    def background(self) -> Iterator[tuple[str, BackgroundTask]]:
        instances = self.running_controllers["instances"]
        monitor = new_monitor(self.ports, instances.enqueue)
        yield "server watch", ServerWatch(self.ports, instances, monitor.orphans.add_suspect).run
        yield "instance watch", monitor.orphans.deleted.run
        yield "network consumer", NetworkConsumer(self.ports).run
        yield "project consumer", ProjectConsumer(self.ports).run
        yield "monitor", monitor.run


async def _owner_of_project(identity: IdentityPort, named: Mapping[str, str]) -> str | None:
    organization = named["organizationID"]
    return organization if await identity.has_project(organization, named["projectID"]) else None
