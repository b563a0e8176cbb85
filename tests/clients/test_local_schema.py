"""What a service is answered in its own process is what it would have read off the wire."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from remuda.http.responses import EtagView, Viewed
from remuda.identity.kinds.quotas import Allocation
from remuda.identity.quotas.rules import ALLOCATION_VIEW
from remuda.identity.quotas.schema import AllocationRead
from remuda.region.authorities.rules import AUTHORITY_VIEW
from remuda.region.authorities.schema import AuthorityRead
from remuda.region.kinds.authorities import SSHCertificateAuthority
from remuda.region.kinds.networks import Network
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.kinds.servers import Server
from remuda.region.networks.rules import NETWORK_VIEW
from remuda.region.networks.schema import NetworkRead
from remuda.region.securitygroups.rules import GROUP_VIEW
from remuda.region.securitygroups.schema import SecurityGroupRead
from remuda.region.servers.rules import SERVER_VIEW
from remuda.region.servers.schema import ServerRead
from tests.kit.region.environment import RegionEnvironment, running

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBzjZlJ6T4hVwDSmNkNWJvBKMQxsGn3ktnTZk8qBBYJN ca"


@pytest.mark.parametrize(
    ("kind", "view", "read_as"),
    [
        (Server, SERVER_VIEW, ServerRead),
        (Network, NETWORK_VIEW, NetworkRead),
        (SecurityGroup, GROUP_VIEW, SecurityGroupRead),
        (SSHCertificateAuthority, AUTHORITY_VIEW, AuthorityRead),
        (Allocation, ALLOCATION_VIEW, AllocationRead),
    ],
)
async def test_what_is_read_here_is_what_is_read_there(
    tmp_path: Path, kind: Any, view: EtagView[Any, Any], read_as: Any
) -> None:
    async with running(tmp_path) as system:
        await _all_sorts(system)
        found = (await system.store.list(kind, limit=100)).items
        assert found
        for each in found:
            shown = Viewed(view, each)
            assert shown.schema() == msgspec.json.decode(shown.rendered().body, type=read_as)


async def _all_sorts(system: RegionEnvironment) -> None:
    routes = [{"prefix": "10.9.0.0/16", "nexthop": "10.0.0.9"}]
    network = await system.network(dnsNameservers=["9.9.9.9"], routes=routes)
    rule = {"direction": "ingress", "protocol": "tcp", "port": 22, "prefix": "10.0.0.0/8"}
    group = await system.made("/api/v2/securitygroups", "web", {"networkId": network, "rules": [rule]})
    place = {"organizationId": system.organization, "projectId": system.project}
    authority = await system.made("/api/v2/sshcertificateauthorities", "ca", place | {"publicKey": KEY})
    networking = {"securityGroups": [group], "publicIP": True, "allowedSourceAddresses": ["10.5.0.0/24"]}
    server = await system.server(
        network, sshCertificateAuthorityId=authority, networking=networking, userData="I2Nsb3VkLWNvbmZpZwp7fQo="
    )
    await system.until(f"/api/v2/servers/{server}", "provisioned")
