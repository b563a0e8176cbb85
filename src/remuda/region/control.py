"""What goes on behind region's rooms: the operations that they begin, and the controllers that make intent true."""

from collections.abc import Mapping, Sequence

from remuda.operations.saga import AnyBound
from remuda.providers.contract.provider import Subject
from remuda.reconcile.controller import Driver
from remuda.region.authorities import controller as authority_controllers
from remuda.region.authorities import sagas as authority_sagas
from remuda.region.catalogue.provider_registry import Clouds
from remuda.region.filestorage import controller as storage_controllers
from remuda.region.filestorage import sagas as storage_sagas
from remuda.region.images import control as image_control
from remuda.region.loadbalancers import controller as balancer_controllers
from remuda.region.loadbalancers import sagas as balancer_sagas
from remuda.region.networks import controller as network_controllers
from remuda.region.networks import sagas as network_sagas
from remuda.region.ports import RegionPorts
from remuda.region.securitygroups import controller as group_controllers
from remuda.region.servers import control as server_control

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
