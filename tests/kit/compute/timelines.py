"""Timelines of instances."""

from typing import Any

from tests.kit.asgi.client import Client
from tests.kit.compute.environment import INSTANCES, ComputeHouse
from tests.kit.compute.requests import Home, at, made
from tests.kit.identity.environment import told


async def timeline(client: Client, instance: str, **query: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = told(await client.get(f"{at(instance)}/timeline", query), 200)
    return events


async def lived(house: ComputeHouse, home: Home, name: str = "instance") -> str:
    """Make an instance, wait until it is there, give it up and wait until it is gone."""
    instance = made(await home.client.post(INSTANCES, home.wanted(house, name)))
    await house.until(instance, "provisioned")
    assert (await home.client.delete(at(instance))).status == 202
    await house.until_gone(instance)
    return instance
