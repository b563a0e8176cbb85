"""Timelines of instances."""

from typing import Any

from tests.kit.asgi.client import Client
from tests.kit.compute.environment import INSTANCES, ComputeEnvironment
from tests.kit.compute.requests import Tenant, at, made
from tests.kit.identity.environment import expect


async def timeline(client: Client, instance: str, **query: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = expect(await client.get(f"{at(instance)}/timeline", query), 200)
    return events


async def lived(compute: ComputeEnvironment, tenant: Tenant, name: str = "instance") -> str:
    """Make an instance, wait until it is there, give it up and wait until it is gone."""
    instance = made(await tenant.client.post(INSTANCES, tenant.wanted(compute, name)))
    await compute.until(instance, "provisioned")
    assert (await tenant.client.delete(at(instance))).status == 202
    await compute.until_gone(instance)
    return instance
