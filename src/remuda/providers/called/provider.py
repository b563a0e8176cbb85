"""A whole provider, through its calls."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from remuda.providers.called.balancers import BALANCER_VERBS, CalledLoadBalancers
from remuda.providers.called.catalogue import (
    CATALOGUE_VERBS,
    EXTERNAL_NETWORK_VERBS,
    IMAGE_VERBS,
    CalledCatalogue,
    CalledExternalNetworks,
    CalledImages,
)
from remuda.providers.called.networks import (
    GROUP_VERBS,
    NETWORK_VERBS,
    TENANCY_VERBS,
    CalledNetworks,
    CalledSecurityGroups,
    CalledTenancies,
)
from remuda.providers.called.storage import STORAGE_VERBS, CalledFileStorages
from remuda.providers.calls import Calls
from remuda.providers.contract.provider import Provider
from remuda.providers.proxy import (
    CONSOLE_VERBS,
    PORT_VERBS,
    SERVER_VERBS,
    SNAPSHOT_VERBS,
    CalledConsoles,
    CalledPorts,
    CalledServers,
    CalledSnapshots,
)

CapabilityT = TypeVar("CapabilityT")
CalledT = TypeVar("CalledT")

VERBS: Mapping[str, tuple[str, ...]] = {
    "catalogue": CATALOGUE_VERBS,
    "external_networks": EXTERNAL_NETWORK_VERBS,
    "images": IMAGE_VERBS,
    "tenancies": TENANCY_VERBS,
    "networks": NETWORK_VERBS,
    "security_groups": GROUP_VERBS,
    "ports": PORT_VERBS,
    "servers": SERVER_VERBS,
    "consoles": CONSOLE_VERBS,
    "snapshots": SNAPSHOT_VERBS,
    "load_balancers": BALANCER_VERBS,
    "file_storages": STORAGE_VERBS,
    "events": (),
}
"""What each capability is asked, by its name in `Provider`."""


def verbs_of(provider: Provider) -> tuple[str, ...]:
    """Return all that a provider can be asked: what its `Calls` has to be declared with."""
    return tuple(verb for capability in provider.capabilities for verb in VERBS[capability])


def called(provider: Provider, calls: Calls) -> Provider:
    """Return a provider with the same capabilities, whose every call goes through `calls`."""
    return Provider(
        type=provider.type,
        lag_s=provider.lag_s,
        catalogue=CalledCatalogue(provider.catalogue, calls),
        external_networks=_through(calls, CalledExternalNetworks, provider.external_networks),
        images=_through(calls, CalledImages, provider.images),
        tenancies=_through(calls, CalledTenancies, provider.tenancies),
        networks=_through(calls, CalledNetworks, provider.networks),
        security_groups=_through(calls, CalledSecurityGroups, provider.security_groups),
        ports=_through(calls, CalledPorts, provider.ports),
        servers=_through(calls, CalledServers, provider.servers),
        consoles=_through(calls, CalledConsoles, provider.consoles),
        snapshots=_through(calls, CalledSnapshots, provider.snapshots),
        load_balancers=_through(calls, CalledLoadBalancers, provider.load_balancers),
        file_storages=_through(calls, CalledFileStorages, provider.file_storages),
        events=provider.events,
    )


def _through(
    calls: Calls, wrapper: Callable[[CapabilityT, Calls], CalledT], capability: CapabilityT | None
) -> CalledT | None:
    return None if capability is None else wrapper(capability, calls)
