"""A provider: what it has of all this, and what it tells without being asked."""

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
"""The sorts of provider there are."""

Subject = Literal["tenancy", "network", "group", "port", "server", "balancer", "storage", "image"]
"""What an event can be about."""


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """Something changed at the provider: look at it."""

    subject: Subject
    handle: Handle
    """Of a tenancy, an image or a storage, which are in no tenancy: an empty one, and the name or id."""


class Events(Protocol):
    """Tells what changes. Some of it may be missed: who needs to be sure also looks now and then.

    Who has asked for a change, and is answered with the thing as it is then, need not be told of it as well.
    """

    def events(self) -> AsyncIterator[CloudEvent]:
        """Yield what changes from now on, without end."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """What does the work in one region. What it lacks is None, and `capabilities` names what it has."""

    type: ProviderType
    catalogue: Catalogue
    lag_s: float = 5.0
    """How old its reads can be: what is not there must be looked for again so much later to be gone."""
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
        """The names of what it has, such as `load_balancers`, for the API to show."""
        facts = {"type", "lag_s"}
        return tuple(
            each.name for each in fields(self) if each.name not in facts and getattr(self, each.name) is not None
        )
