"""A configuration of each sort of resource, as somebody might apply it."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from tests.kit.compatibility.environment import CompatibilityEnvironment
from tests.kit.compatibility.provider import Resource
from tests.kit.compatibility.resources import (
    FILE_STORAGE,
    GROUP,
    INSTANCE,
    NETWORK,
    PROJECT,
    SECURITY_GROUP,
    SSH_AUTHORITY,
)
from tests.kit.compute.requests import DEBIAN, KEY
from tests.kit.region.environment import NORTH, STANDARD

Config = dict[str, Any]
UNSAID = (
    "description",
    "tags",
    "user_data",
    "enable_public_ip",
    "security_group_ids",
    "allowed_destinations",
    "ssh_certificate_authority_id",
)


@dataclass(frozen=True)
class Example:
    """A sort of resource, and how one of it is configured; what that stands on is made."""

    resource: Resource
    config: Callable[..., Coroutine[Any, Any, Config]]


async def network(environment: CompatibilityEnvironment, **more: Any) -> Config:
    """Return how a network is configured."""
    return {**environment.net, **more}


async def security_group(environment: CompatibilityEnvironment, **more: Any) -> Config:
    """Return how a security group is configured, on a network of its own."""
    rules = [{"type": "ingress", "protocol": "tcp", "from_port": 22}]
    return {"name": "web", "network_id": await environment.network(), "rules": rules, **more}


async def ssh_authority(environment: CompatibilityEnvironment, **more: Any) -> Config:
    """Return how an SSH certificate authority is configured."""
    return {"name": "ca", **environment.where, "public_key": KEY, **more}


async def instance(environment: CompatibilityEnvironment, **more: Any) -> Config:
    """Return how an instance is configured with nothing but what is needed, on a network of its own."""
    needed = {"network_id": await environment.network(), "flavor_id": STANDARD, "image_id": DEBIAN}
    return {"name": "web", **environment.where, **needed, **dict.fromkeys(UNSAID), **more}


async def file_storage(environment: CompatibilityEnvironment, **more: Any) -> Config:
    """Return how file storage is configured, on no network."""
    classes = (await environment.provider.clients["region"].get("/api/v2/filestorageclasses", {"regionID": NORTH})).json
    chosen = {"region_id": NORTH, "storage_class_id": classes[0]["metadata"]["id"]}
    return {"name": "files", **environment.where, **chosen, "capacity": 10, "root_squash": True, **more}


async def attached_storage(environment: CompatibilityEnvironment, **more: Any) -> Config:
    """Return how file storage is configured on a network of its own."""
    return await file_storage(environment, networks=[await environment.network()], **more)


async def project(_setup: CompatibilityEnvironment, **more: Any) -> Config:
    """Return how a project of nobody is configured."""
    return {"name": "shop", "group_ids": [], **more}


async def group(_setup: CompatibilityEnvironment, **more: Any) -> Config:
    """Return how a group of nobody is configured."""
    return {"name": "ops", "role_ids": [], "service_account_ids": [], **more}


EXAMPLES = {
    "network": Example(NETWORK, network),
    "security group": Example(SECURITY_GROUP, security_group),
    "ssh authority": Example(SSH_AUTHORITY, ssh_authority),
    "instance": Example(INSTANCE, partial(instance, enable_public_ip=True)),
    "file storage": Example(FILE_STORAGE, attached_storage),
    "project": Example(PROJECT, project),
    "group": Example(GROUP, group),
}


def each(*sorts: str) -> pytest.MarkDecorator:
    """Run a test with an `example` of each of these sorts, or of all."""
    return pytest.mark.parametrize("example", [pytest.param(EXAMPLES[sort], id=sort) for sort in sorts or EXAMPLES])
