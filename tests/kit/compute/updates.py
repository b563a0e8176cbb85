"""How instances are changed, and what is told of that beforehand."""

from typing import Any

from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply
from tests.kit.compute.environment import ComputeEnvironment
from tests.kit.compute.requests import Tenant, at

SMALL = "a1f0c0de-0001-4000-8000-000000000001"
"""A flavor of one CPU."""
LARGE = "a1f0c0de-0002-4000-8000-000000000002"
"""A flavor of sixteen CPUs."""
ROCKY = "b1f0c0de-0004-4000-8000-000000000004"
"""An image."""


def wanted(tenant: Tenant, compute: ComputeEnvironment, *, metadata: Any = None, **spec: Any) -> dict[str, Any]:
    """Return how the instance that `Home.wanted` asks for is changed: all of it, with some of it otherwise."""
    asked = tenant.wanted(compute, **spec)
    for name in ("organizationId", "projectId", "networkId"):
        del asked["spec"][name]
    return {"metadata": asked["metadata"] | (metadata or {}), "spec": asked["spec"]}


async def as_it_is(compute: ComputeEnvironment, instance: str, **spec: Any) -> dict[str, Any]:
    """Return how an instance is changed that is to stay as it is, with some of it otherwise."""
    read = await compute.read(instance)
    return {"metadata": {"name": read["metadata"]["name"]}, "spec": read["spec"] | spec}


async def put(client: Client, instance: str, body: Any, headers: Any = None, **query: str) -> Reply:
    """Ask for a change; `dryRun` and `plan` are in the query."""
    return await client.send("PUT", at(instance), query=query, body=body, headers=headers or {})


async def plan(client: Client, instance: str, body: Any) -> Any:
    """Return what a change would do."""
    reply = await put(client, instance, body, dryRun="true")
    assert reply.status == 200, reply.body.decode()
    return reply.json


def kinds(plan: Any) -> list[str]:
    """Return what a plan does."""
    return [step["kind"] for step in plan["steps"]]


def named(things: Any) -> dict[str, str]:
    """Return the destroyed or preserved attributes with their values."""
    return {each["attribute"]: each.get("value", "") for each in things}
