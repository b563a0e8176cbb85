"""A server as a provider is asked for it: its names there, its port, and what it is made of."""

from collections.abc import Sequence

from remuda.cloudinit.user_data import read_user_data
from remuda.providers.contract.common import Handle, group_name, port_name, server_name
from remuda.providers.contract.servers import PortSpec
from remuda.providers.contract.servers import ServerSpec as CloudServerSpec
from remuda.region.kinds.addresses import Address
from remuda.region.kinds.authorities import SSHCertificateAuthority
from remuda.region.kinds.identities import Identity
from remuda.region.kinds.networks import Network
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.kinds.server_parts import Replacement
from remuda.region.kinds.servers import Server
from remuda.region.networks.rules import tenancy_of, to_cloud
from remuda.region.servers.rules import user_data_of
from remuda.region.servers.userdata.augmenting import augmented
from remuda.resources.conventions import NAME, organization_of, project_of, region_of


def number_in(name: str) -> int | None:
    """Return how many replacements a server's name at its provider counts, or None if it is no such name."""
    _, dot, number = name.rpartition(".")
    return int(number) if dot and number.isdecimal() else None


def numbers_of(server: Server) -> range:
    """Return the replacements of a server that may be at its provider now, as its names there count them."""
    turn = server.status.replacement or Replacement()
    last = max(turn.counter, server.spec.replacement)
    return range(server.cloud_number(turn.done), server.cloud_number(last) + 1)


def port_handle(server: Server, home: Identity) -> Handle:
    """Return what a server's port is called at its provider."""
    return Handle(tenancy_of(home.metadata), port_name(server.name, server.cloud_uid))


def server_handle(server: Server, home: Identity, replacement: int) -> Handle:
    """Return what a server is called at its provider, the first one or what took its place."""
    name = server_name(server.name, server.cloud_uid, server.cloud_number(replacement))
    return Handle(tenancy_of(home.metadata), name)


def wanted_port(
    server: Server, home: Identity, network: Network, groups: Sequence[SecurityGroup], address: Address
) -> PortSpec:
    """Return what a server's port is to be."""
    pairs = server.spec.networks[0].allowed_address_pairs
    return PortSpec(
        handle=port_handle(server, home),
        network=to_cloud(network, home).name,
        address=address.spec.ip,
        mac=address.spec.mac,
        groups=tuple(group_name(group.name, group.uid) for group in groups),
        sources=tuple(pair.cidr for pair in pairs),
        is_public=server.spec.wants_public_ip,
    )


def wanted_server(
    server: Server, home: Identity, authority: SSHCertificateAuthority | None, replacement: int
) -> CloudServerSpec:
    """Return what a server is to be made of."""
    spec = server.spec
    user_data = read_user_data(user_data_of(spec))
    return CloudServerSpec(
        handle=server_handle(server, home, replacement),
        hostname=server.metadata.labels[NAME],
        flavor=spec.flavor_id,
        image=spec.image.id,
        port=port_name(server.name, server.cloud_uid),
        user_data=user_data if authority is None else augmented(user_data, authority.spec.public_key),
        has_tenancy_key=spec.ssh_injection == "identityKeypair",
        host=spec.infrastructure_ref,
        labels={
            "region:server_id": server.name,
            "region:region_id": region_of(server),
            "identity:organization_id": organization_of(server),
            "identity:project_id": project_of(server),
        },
    )
