"""Provider of one region: its capabilities, and the events that it sends."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, fields
from typing import Literal, Protocol

from remuda.providers.contract.catalogue import CloudCatalogue, CloudExternalNetworks, CloudImages
from remuda.providers.contract.common import Handle, ProviderType
from remuda.providers.contract.filestorage import CloudFileStorages
from remuda.providers.contract.loadbalancers import CloudLoadBalancers
from remuda.providers.contract.networks import CloudNetworks, CloudSecurityGroups, CloudTenancies
from remuda.providers.contract.servers import CloudConsoles, CloudPorts, CloudServers, CloudSnapshots

EventSubject = Literal["tenancy", "network", "group", "port", "server", "balancer", "storage", "image"]
"""Kind of object that an event is about."""


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """Notification that an object changed at the provider; read it again."""

    subject: EventSubject
    handle: Handle
    """Handle of the object. The tenancy is empty for tenancies, images and storages, which are in none."""


class CloudEvents(Protocol):
    """Capability of sending change events.

    Events may be lost, so a consumer that must not miss a change also polls. A caller whose write returned the changed
    object need not receive an event for it.
    """

    def events(self) -> AsyncIterator[CloudEvent]:
        """Yield changes from now on, without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Provider of one region. A capability that it lacks is None; `capabilities` names those that it has."""

    type: ProviderType
    catalogue: CloudCatalogue
    lag_s: float = 5.0
    """Greatest age of its reads: an absence is confirmed by a second read at least so much later."""
    external_networks: CloudExternalNetworks | None = None
    images: CloudImages | None = None
    tenancies: CloudTenancies | None = None
    networks: CloudNetworks | None = None
    security_groups: CloudSecurityGroups | None = None
    ports: CloudPorts | None = None
    servers: CloudServers | None = None
    consoles: CloudConsoles | None = None
    snapshots: CloudSnapshots | None = None
    load_balancers: CloudLoadBalancers | None = None
    file_storages: CloudFileStorages | None = None
    events: CloudEvents | None = None

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Names of its capabilities, such as `load_balancers`, for the API."""
        settings = {"type", "lag_s"}
        return tuple(
            each.name for each in fields(self) if each.name not in settings and getattr(self, each.name) is not None
        )
