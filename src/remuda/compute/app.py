"""The compute service: its routes, its services, and the sagas, controllers and background tasks over its ports."""

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from remuda.compute import catalogue, policies, recovery
from remuda.compute.catalogue import Catalogue
from remuda.compute.consumers import NetworkConsumer, ProjectConsumer
from remuda.compute.history import routes as history
from remuda.compute.history.service import History
from remuda.compute.instances import controller as instance_control
from remuda.compute.instances import routes as instances
from remuda.compute.instances import sagas as instance_sagas
from remuda.compute.instances.actions import Verbs
from remuda.compute.instances.convergence import leftover_breaker
from remuda.compute.instances.server_lookup import Matches
from remuda.compute.instances.server_watch import Following
from remuda.compute.instances.service import Instances
from remuda.compute.instances.updates import Updates
from remuda.compute.monitor.monitor import monitor_of
from remuda.compute.monitor.orphans import stray_breaker
from remuda.compute.policies import Policies
from remuda.compute.ports import ComputePorts
from remuda.compute.recovery import Recovery
from remuda.http.api import Api
from remuda.http.routes import Table
from remuda.http.watch import WatchPorts
from remuda.operations.recovery import Recovery as OperationRecovery
from remuda.operations.saga import AnyBound
from remuda.operations.service import Operations
from remuda.reconcile.controller import Controller
from remuda.service import api_ports, operations_of, unsynced_controllers
from remuda.store.background import BackgroundTasks
from remuda.version import release

TABLE = Table(
    "compute",
    title="Compute",
    description="Instances: their specification and status, the plan of an update, and their history.",
    routes=[
        *catalogue.ROUTES,
        *instances.ROUTES,
        *history.ROUTES,
        *policies.ROUTES,
        *recovery.ROUTES,
    ],
)
"""The routes of all resource packages, which an `Api` mounts with `ComputeServices`."""


Duty = Callable[[], Coroutine[Any, Any, None]]
"""A background task, which runs as long as the service does."""


def sagas(ports: ComputePorts) -> Sequence[AnyBound]:
    """Return the operations of all resource packages."""
    store, identity = ports.store, ports.identity
    making = instance_sagas.InstancePorts(store=store, identity=identity, region=ports.region)
    return (
        *instance_sagas.bound(making),
        *instance_sagas.bound_update(instance_sagas.UpdatePorts(store=store, identity=identity)),
    )


def drivers(ports: ComputePorts) -> Mapping[str, Controller]:
    """Return the controllers of all resource packages, by name."""
    found = (instance_control.driver(ports),)
    return {driver.name: driver for driver in found}


def duties(ports: ComputePorts, controllers: Mapping[str, Controller]) -> Iterator[tuple[str, Duty]]:
    """Yield the background tasks beside the controllers, with their names."""
    instances = controllers["instances"]
    monitor = monitor_of(ports, instances.enqueue)
    yield "server watch", Following(ports, instances, monitor.strays.suspect).keep
    yield "instance watch", monitor.strays.departures.keep
    yield "network consumer", NetworkConsumer(ports).keep
    yield "project consumer", ProjectConsumer(ports).keep
    yield "monitor", monitor.keep


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeServices:
    """The service of each class that routes call."""

    catalogue: Catalogue
    instances: Instances
    updates: Updates
    actions: Verbs
    policies: Policies
    history: History
    recovery: Recovery


def services(ports: ComputePorts, operations: Operations) -> ComputeServices:
    """Return all services over their ports."""
    store, clock, region = ports.store, ports.clock, ports.region
    instances = Instances(
        store=store,
        clock=clock,
        identity=ports.identity,
        region=region,
        operations=operations,
    )
    return ComputeServices(
        catalogue=Catalogue(region=region, settings=ports.settings, version=release()),
        instances=instances,
        updates=Updates(instances),
        actions=Verbs(instances=instances, region=region, matches=Matches.over(region, ports.metrics), log=ports.log),
        policies=Policies(store=store, identity=ports.identity),
        history=History(
            store=store, log=ports.log, clock=clock, sealer=ports.sealer, region=region, operations=operations
        ),
        recovery=Recovery(breakers=(leftover_breaker(ports.reconcile_ports), stray_breaker(ports.reconcile_ports))),
    )


class ComputeApp:
    """The compute service: its API, controllers and background tasks over `ComputePorts`."""

    def __init__(self, ports: ComputePorts) -> None:
        self.ports = ports
        self.table = TABLE
        self.operations = operations_of(ports, sagas(ports))
        self.services = services(ports, self.operations)
        self.watches = WatchPorts(clock=ports.clock, closing=ports.closing)
        self.api = Api(
            TABLE, self.services, api_ports(ports, ports.authenticator, self.watches, url=ports.settings.url)
        )
        self.drivers = drivers(ports)
        self._recovery = OperationRecovery(self.operations, is_alone=ports.is_only_process)
        self._duties = BackgroundTasks(ports.clock)

    async def start(self) -> None:
        """Resume unfinished operations, then start the background tasks and the controllers."""
        self._duties.start("recovery", self._recovery.run)
        self._duties.start("forgetting", self._recovery.run_retention)
        for name, duty in duties(self.ports, self.drivers):
            self._duties.start(name, duty)
        for driver in self.drivers.values():
            await driver.start()

    async def stop(self) -> None:
        """Stop the controllers, the background tasks and the operations."""
        self.ports.closing.set()
        for driver in self.drivers.values():
            await driver.stop()
        await self._duties.stop()
        await self.operations.stop()

    def check(self) -> Iterable[tuple[str, str]]:
        """Return the reasons why the service is not ready for requests."""
        return unsynced_controllers(self.drivers.values())
