"""What the tests of networks, security groups and authorities ask, and who asks."""

from typing import Any

from remuda.kernel.randomness import SeededRandomness
from remuda.region.authorities.routes import AUTHORITIES
from remuda.region.kinds.networks import Identity, Network, OpenstackIdentity
from remuda.region.kinds.securitygroups import SecurityGroup
from remuda.region.networks.controller import new_key_pair
from remuda.region.networks.routes import NETWORKS
from remuda.region.securitygroups.routes import SECURITY_GROUPS
from tests.kit.region.networks import TENANT, NetworksEnvironment
from tests.kit.region.resource_api import ORG, OTHER_ORG, PROJECT, member

__all__ = [
    "INSIDER",
    "KEY",
    "NOTHING",
    "NOT_FOUND",
    "OUTSIDE",
    "READER",
    "REFERENCE",
    "STRANGER",
    "all_is_gone",
    "forbidden",
    "make_authority",
    "make_group",
    "nothing_was_made",
    "reference_at",
    "update",
]

KEY = new_key_pair(SeededRandomness(1)).public
NOTHING: dict[str, list[str]] = {"tenancies": [], "networks": [], "groups": []}
STRANGER = member("eve@example.com", OTHER_ORG, "region:networks:v2 CRUD, region:networks:v2/references CRUD")
READER = member("bob@example.com", ORG, "region:networks:v2 R")
INSIDER = member("pat@example.com", ORG, "", a0000000_0000_4000_8000_00000000000a="region:networks:v2 CRUD")
NOT_FOUND = (404, "resource not found")
OUTSIDE = " — project is not in this principal's accessible set"
REFERENCE = "filestorages.region.unikorn-cloud.org/f0000000-0000-4000-8000-000000000001"


def update(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "net"}, "spec": {"dnsNameservers": [], **spec}}


def reference_at(name: str, reference: str = REFERENCE) -> str:
    return f"{NETWORKS}/{name}/references/{reference.replace('/', '%252F')}"


def forbidden(verb: str, why: str, endpoint: str = "region:networks:v2") -> tuple[int, str]:
    return 403, f"operation is not allowed by rbac: operation '{verb}' on endpoint '{endpoint}'{why}"


async def nothing_was_made(region_networks: NetworksEnvironment) -> None:
    assert not (await region_networks.store.list(Network)).items
    assert not (await region_networks.store.list(Identity)).items
    assert region_networks.identity.everything() == ({}, {}, frozenset())


async def make_group(region_networks: NetworksEnvironment, network: str, *rules: dict[str, Any]) -> str:
    """Make a security group and return its id."""
    body = {"metadata": {"name": "sg"}, "spec": {"networkId": network, "rules": list(rules)}}
    reply = await region_networks.groups.ask(TENANT).post(SECURITY_GROUPS, body)
    assert reply.status == 201, reply
    name: str = reply.json["metadata"]["id"]
    return name


async def make_authority(region_networks: NetworksEnvironment, **spec: Any) -> str:
    """Make an authority and return its id."""
    fields = {"organizationId": ORG, "projectId": PROJECT, "publicKey": KEY} | spec
    reply = await region_networks.authorities.ask(TENANT).post(
        AUTHORITIES, {"metadata": {"name": "ca"}, "spec": fields}
    )
    assert reply.status == 201, reply
    name: str = reply.json["metadata"]["id"]
    return name


async def all_is_gone(region_networks: NetworksEnvironment) -> None:
    """See that nothing is left of any network, anywhere."""
    assert await region_networks.at_cloud() == NOTHING
    for kind in (Network, Identity, OpenstackIdentity, SecurityGroup):
        assert not (await region_networks.store.list(kind)).items
    assert region_networks.identity.everything() == ({}, {}, frozenset())
