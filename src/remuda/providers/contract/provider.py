"""Provider of one region: its capabilities, and the events that it sends."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, fields
from typing import Literal, Protocol

from remuda.providers.contract.catalogue import Catalogue, ExternalNetworks, Images
from remuda.providers.contract.common import Handle
from remuda.providers.contract.filestorage import FileStorages
from remuda.providers.contract.loadbalancers import LoadBalancers
from remuda.providers.contract.networks import Networks, SecurityGroups, Tenancies
from remuda.providers.contract.servers import Consoles, Ports, Servers, Snapshots

ProviderType = Literal["openstack", "kubernetes", "simulated"]
"""Kinds of provider."""

Subject = Literal["tenancy", "network", "group", "port", "server", "balancer", "storage", "image"]
"""Kind of object that an event is about."""


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """Notification that an object changed at the provider; read it again."""

    subject: Subject
    handle: Handle
    """Handle of the object. Tenancies, images and storages are in no tenancy: the tenancy is empty, and the name is
    theirs or their id."""


class Events(Protocol):
    """Capability of sending change events.

    Events may be lost, so a consumer that must not miss a change also polls. A caller whose write returned the changed
    object need not receive an event for it.
    """

    def events(self) -> AsyncIterator[CloudEvent]:
        """Yield changes from now on, without end."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Provider of one region. A capability that it lacks is None; `capabilities` names those that it has."""

    type: ProviderType
    catalogue: Catalogue
    lag_s: float = 5.0
    """Greatest age of its reads: an absence is confirmed by a second read at least so much later."""
    external_networks: ExternalNetworks | None = None
    images: Images | None = None
    tenancies: Tenancies | None = None
    networks: Networks | None = None
    security_groups: SecurityGroups | None = None
    ports: Ports | None = None
    servers: Servers | None = None
    consoles: Consoles | None = None
    snapshots: Snapshots | None = None
    load_balancers: LoadBalancers | None = None
    file_storages: FileStorages | None = None
    events: Events | None = None

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Names of its capabilities, such as `load_balancers`, for the API."""
        settings = {"type", "lag_s"}
        return tuple(
            each.name for each in fields(self) if each.name not in settings and getattr(self, each.name) is not None
        )
