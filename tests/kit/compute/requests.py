"""What is asked about instances, and by whom."""

import base64
from dataclasses import dataclass
from typing import Any

from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.identity.kinds.quotas import Allocation
from remuda.operations.kinds import OPEN, Operation
from remuda.region.kinds.servers import Server
from remuda.resources.conventions import RESOURCE_KIND
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment

ABSENT = "f0000000-0000-4000-8000-0000000000ff"
"""Nothing has this id."""
DEBIAN = "b1f0c0de-0003-4000-8000-000000000003"
"""An image that fits every flavor of x86_64."""
ARM_IMAGE = "b1f0c0de-0002-4000-8000-000000000002"
METAL_IMAGE = "b1f0c0de-0005-4000-8000-000000000005"
NODE_IMAGE = "33333333-3333-3333-3333-333333333333"
"""An image with a Kubernetes on it."""
METAL = "a1f0c0de-0005-4000-8000-000000000005"
PINNED = "a1f0c0de-0006-4000-8000-000000000006"
"""A flavor that can only be pinned."""
GPUS = "a1f0c0de-0004-4000-8000-000000000004"
"""A flavor with four GPUs."""
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop ca@example.com"
NOT_FOUND = (404, "resource not found")
OUT_OF_ORGANIZATION = " — organization is not in this principal's accessible set"
OUT_OF_PROJECT = " — project is not in this principal's accessible set"


def encoded(text: str | bytes) -> str:
    """Return user data as it is sent."""
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def forbidden(verb: str, why: str = " is not permitted", endpoint: str = "compute:instances") -> tuple[int, str]:
    """Return the rejection of one who lacks a right."""
    return 403, f"operation is not allowed by rbac: operation '{verb}' on endpoint '{endpoint}'{why}"


@dataclass(frozen=True)
class Tenant:
    """A project with a network, and one who may do everything in it and nothing elsewhere."""

    client: Client
    project: str
    network: str

    def wanted(self, compute: ComputeEnvironment, name: str = "instance", **spec: Any) -> dict[str, Any]:
        """Return how an instance is asked for here."""
        return compute.wanted(self.network, name, **{"projectId": self.project, "imageId": DEBIAN} | spec)


async def settle(compute: ComputeEnvironment, name: str = "ann", role: str = "user") -> Tenant:
    """Make a project with a network, and somebody in it."""
    region, identity = compute.region, compute.region.identity
    subject = f"{name}@example.com"
    group = await identity.group(region.organization, role, name=f"{name}s")
    await identity.user(subject, region.organization, group)
    project = await identity.project(region.organization, group, name=f"{name}-project")
    network = await region.network(f"{name}-net", projectId=project)
    await region.until(f"/api/v2/networks/{network}", "provisioned")
    return Tenant(compute.client(await identity.log_in(subject)), project, network)


async def make_group(compute: ComputeEnvironment, network: str, name: str = "group") -> str:
    """Make a security group and return its id."""
    return await compute.region.made("/api/v2/securitygroups", name, {"networkId": network, "rules": []})


async def make_authority(compute: ComputeEnvironment, project: str, name: str = "ca") -> str:
    """Make an SSH certificate authority and return its id."""
    spec = {"organizationId": compute.region.organization, "projectId": project, "publicKey": KEY}
    return await compute.region.made("/api/v2/sshcertificateauthorities", name, spec)


async def held(compute: ComputeEnvironment) -> list[dict[str, int]]:
    """Return what each allocation for an instance holds."""
    rows = [row for row in (await compute.store.list(Allocation)).items if row.spec.state != "released"]
    living = [row for row in rows if row.metadata.labels[RESOURCE_KIND] == INSTANCE.qualified]
    return [{each.kind: each.committed for each in row.spec.allocations} for row in living]


async def is_nothing(compute: ComputeEnvironment) -> None:
    """See that there is no instance, no server, nothing held, and nothing under way."""
    assert not (await compute.store.list(ComputeInstance)).items
    assert not (await compute.store.list(Server)).items
    assert await held(compute) == []
    assert not (await compute.store.list(Operation, index=OPEN)).items


def made(reply: Reply) -> str:
    """Return the id of what was made."""
    assert reply.status == 201, (reply.status, reply.body.decode())
    return str(reply.json["metadata"]["id"])


def at(instance: str, verb: str = "") -> str:
    """Return the path of an instance, or of a verb of it."""
    return f"{INSTANCES}/{instance}/{verb}".rstrip("/")
