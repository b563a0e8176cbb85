"""What goes on behind compute's rooms: the operations that they begin, and what makes intent true."""

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any

from remuda.compute.consumers.networks import NetworkConsumer
from remuda.compute.consumers.projects import ProjectConsumer
from remuda.compute.instances import control as instance_control
from remuda.compute.instances import sagas as instance_sagas
from remuda.compute.instances import update_sagas
from remuda.compute.instances.server_watch import Following
from remuda.compute.monitor.monitor import monitor_of
from remuda.compute.ports import ComputePorts
from remuda.operations.saga import AnyBound
from remuda.reconcile.controller import Driver

Duty = Callable[[], Coroutine[Any, Any, None]]
"""What is done for as long as the service runs."""


def sagas(ports: ComputePorts) -> Sequence[AnyBound]:
    """Return the operations of all rooms."""
    store, identity = ports.store, ports.identity
    making = instance_sagas.InstancePorts(store=store, identity=identity, region=ports.region)
    return (
        *instance_sagas.bound(making),
        *update_sagas.bound(update_sagas.UpdatePorts(store=store, identity=identity)),
    )


def drivers(ports: ComputePorts) -> Mapping[str, Driver]:
    """Return the controllers of all rooms, by name."""
    found = (instance_control.driver(ports),)
    return {driver.name: driver for driver in found}


def duties(ports: ComputePorts, controllers: Mapping[str, Driver]) -> Iterator[tuple[str, Duty]]:
    """Yield what is done beside the controllers."""
    instances = controllers["instances"]
    monitor = monitor_of(ports, instances.wake)
    yield "server watch", Following(ports, instances, monitor.strays.suspect).keep
    yield "instance watch", monitor.strays.departures.keep
    yield "network consumer", NetworkConsumer(ports).keep
    yield "project consumer", ProjectConsumer(ports).keep
    yield "monitor", monitor.keep
