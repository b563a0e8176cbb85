"""Provider of a region of an OpenStack cloud."""

from dataclasses import dataclass, field

from remuda.kernel.clock import Clock
from remuda.kernel.randomness import Randomness
from remuda.providers.contract.provider import Provider
from remuda.providers.openstack.catalogue import FlavorSelection, OpenStackExternalNetworks, OpenStackFlavors
from remuda.providers.openstack.client import CloudAddress, OpenStackClient
from remuda.providers.openstack.consoles import OpenStackConsoles, OpenStackSnapshots
from remuda.providers.openstack.hosts import HostCheck
from remuda.providers.openstack.image_signatures import ImageVerifier
from remuda.providers.openstack.images import OpenStackImages
from remuda.providers.openstack.loadbalancers import OpenStackLoadBalancers
from remuda.providers.openstack.networks import OpenStackNetworks
from remuda.providers.openstack.ports import OpenStackPorts
from remuda.providers.openstack.security_groups import OpenStackSecurityGroups
from remuda.providers.openstack.servers import OpenStackServers
from remuda.providers.openstack.tenancies import CredentialStore, Manager, OpenStackTenancies, TenancyAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStackSettings:
    """A region of OpenStack, as its operator describes it."""

    address: CloudAddress
    manager: Manager
    flavors: FlavorSelection = field(default_factory=FlavorSelection)
    external_network_ids: frozenset[str] = frozenset()
    external_network_tags: frozenset[str] = frozenset()
    physical_network: str = ""
    """Physical network of VLANs; empty if networks belong to their project alone."""
    server_group_policy: str = ""
    checks_hosts: bool = False
    """Whether Placement is asked for a host that a server names, before the server is created."""
    required_traits: tuple[str, ...] = ()
    """Traits that such a host must have, besides those of the flavor."""
    image_key: bytes = b""
    """Public ECDSA key, as PEM, that must have signed the public images."""


@dataclass(frozen=True, slots=True)
class OpenStackCloud:
    """A cloud that is connected."""

    provider: Provider
    client: OpenStackClient

    async def close(self) -> None:
        await self.client.close()


def open_cloud(
    settings: OpenStackSettings, credentials: CredentialStore, *, clock: Clock, randomness: Randomness
) -> OpenStackCloud:
    """Return the provider of a region. Nothing is sent before its first call."""
    client = OpenStackClient(settings.address, clock=clock)
    access = TenancyAccess(client, settings.manager, credentials)
    flavors = OpenStackFlavors(access, settings.flavors)
    external = OpenStackExternalNetworks(access, settings.external_network_ids, settings.external_network_tags)
    images = OpenStackImages(access, ImageVerifier(settings.image_key) if settings.image_key else None)
    groups = OpenStackSecurityGroups(access)
    ports = OpenStackPorts(access, groups, external)
    hosts = HostCheck(access, settings.required_traits) if settings.checks_hosts else None
    servers = OpenStackServers(access, flavors, images, ports, hosts)
    provider = Provider(
        type="openstack",
        catalogue=flavors,
        external_networks=external,
        images=images,
        tenancies=OpenStackTenancies(access, randomness, group_policy=settings.server_group_policy),
        networks=OpenStackNetworks(access, external, physical_network=settings.physical_network),
        security_groups=groups,
        ports=ports,
        servers=servers,
        consoles=OpenStackConsoles(servers),
        snapshots=OpenStackSnapshots(servers, images),
        load_balancers=OpenStackLoadBalancers(access, ports),
    )
    return OpenStackCloud(provider, client)
