"""What is asked about load balancers, and by whom."""

from typing import Any

from remuda.quota.ports import ProjectRef
from remuda.region.kinds.loadbalancers import LoadBalancer
from tests.kit.region.resource_api import ORG, OTHER_ORG, member
from tests.kit.region.storage import StorageEnvironment

ALL = "region:networks:v2 CRUD, region:loadbalancers:v2 CRUD"
STRANGER = member("eve@example.com", OTHER_ORG, ALL)
READER = member("bob@example.com", ORG, "region:networks:v2 R, region:loadbalancers:v2 R")
NOBODY = member("ned@example.com", ORG)
INSIDER = member("pat@example.com", ORG, "", a0000000_0000_4000_8000_00000000000a=ALL)
RESERVED = "is in the range that the network reserves for its provider and for file storage"
NO_PREFIX = 'does not match the required pattern: write it like "10.0.0.0/8", an IPv4 prefix; IPv6 is not supported'
NOBODYS = "is the network's base, gateway or broadcast address"
PAYER = ProjectRef(OTHER_ORG, "b0000000-0000-4000-8000-00000000000b")


def listener(name: str = "web", **fields: Any) -> dict[str, Any]:
    return {"name": name, "protocol": "tcp", "port": 80, "pool": {"members": []}} | fields


def pool(**fields: Any) -> dict[str, Any]:
    return {"members": []} | fields


def wanted(network: str, *listeners: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "lb"},
        "spec": {"networkId": network, "listeners": list(listeners or [listener()]), **spec},
    }


def update(*listeners: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "lb"}, "spec": {"listeners": list(listeners or [listener()]), **spec}}


def forbidden(verb: str, why: str = " is not permitted", endpoint: str = "loadbalancers:v2") -> tuple[int, str]:
    return 403, f"operation is not allowed by rbac: operation '{verb}' on endpoint 'region:{endpoint}'{why}"


async def nothing_was_made(region_storage: StorageEnvironment) -> None:
    assert not (await region_storage.store.list(LoadBalancer)).items
    assert not [held for held in region_storage.identity.held.values() if held.kind.startswith("loadbalancers")]
