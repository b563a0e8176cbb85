"""What tests of the controller, the consumers and the monitor look at, and what they do behind its back."""

import asyncio
import dataclasses
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from remuda.compute.app import ComputeApp
from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.compute.names import INCARNATION, INSTANCE_TAG
from remuda.kernel.conditions import Condition, find_condition
from remuda.providers.contract.servers import CloudServer
from remuda.reconcile.ports import ControllerSettings
from remuda.reconcile.resync import ResyncSettings
from remuda.region.kinds.servers import Server
from remuda.resources.crud import find
from remuda.store.logs import subject_of
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply
from tests.kit.compute.environment import SERVICE, ComputeEnvironment
from tests.kit.compute.requests import DEBIAN, at

SMALL = "a1f0c0de-0001-4000-8000-000000000001"
"""A flavor of x86_64."""
UNHURRIED = ControllerSettings(resync=ResyncSettings(keys_per_s=0.001, chunk=1, interval_s=100_000))
"""After a start only the first of those at rest is looked at."""
SERVERS = "/api/v2/servers"
_USUAL = {"ConditionChanged", "FinalizerAdded", "FinalizerRemoved"}


class Woken:
    """A controller that is only woken, and reconciles what a test says."""

    is_synced = True

    def __init__(self) -> None:
        self.terms = 1
        self.keys: list[str] = []
        self.due: set[str] = set()
        self.reconciling: set[str] = set()

    def enqueue(self, key: str) -> None:
        self.keys.append(key)
        self.due.add(key)

    def is_due(self, key: str) -> bool:
        return key in self.due

    def is_reconciling(self, key: str) -> bool:
        return key in self.reconciling


class Counting:
    """A store that counts what it is asked."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        self.asked[name] += 1
        return getattr(self._store, name)


async def network_of(compute: ComputeEnvironment, name: str = "net", **spec: Any) -> str:
    """Make a network, and wait until it is there."""
    network = await compute.region.network(name, **spec)
    await compute.region.until(f"/api/v2/networks/{network}", "provisioned")
    return network


async def made(compute: ComputeEnvironment, network: str, name: str = "instance", **spec: Any) -> str:
    """Make an instance, and wait until it is there."""
    instance = await compute.instance(network, name, **{"imageId": DEBIAN} | spec)
    await compute.until(instance, "provisioned")
    return instance


async def stored(compute: ComputeEnvironment, instance: str) -> ComputeInstance:
    """Return an instance as it is stored."""
    return await compute.store.get(ComputeInstance, instance)


async def said(compute: ComputeEnvironment, instance: str, kind: str = "Available") -> Condition:
    """Return what is said of an instance."""
    found = find_condition((await stored(compute, instance)).status.conditions, kind)
    assert found is not None
    return found


async def server_of(compute: ComputeEnvironment, instance: str) -> Server | None:
    """Return the server of an instance, if it is there."""
    return await find(compute.store, Server, instance)


def at_cloud(compute: ComputeEnvironment) -> list[CloudServer]:
    """Return all servers that the cloud has."""
    return compute.region.north.operator.servers()


async def timeline(compute: ComputeEnvironment, instance: str) -> list[dict[str, Any]]:
    """Return what our side has done to an instance, but for what it always does."""
    page = await compute.store.read("timeline", subject_of(INSTANCE.qualified, instance), limit=1000)
    told: list[dict[str, Any]] = [msgspec.json.decode(entry.data) for entry in page.entries]
    return [each for each in told if "controller" in each and each["event"] not in _USUAL]


async def events(compute: ComputeEnvironment, instance: str) -> list[str]:
    """Return the names of what happened to an instance."""
    return [each["event"] for each in await timeline(compute, instance)]


async def change(compute: ComputeEnvironment, instance: str, *, description: str | None = None, **spec: Any) -> Reply:
    """Change an instance: what is not said stays as it is, and what is None is left out."""
    read = await compute.read(instance)
    metadata = {"name": read["metadata"]["name"]} | ({} if description is None else {"description": description})
    wanted = {key: value for key, value in (read["spec"] | spec).items() if value is not None}
    reply = await compute.root.put(at(instance), {"metadata": metadata, "spec": wanted})
    assert reply.status == 202, reply
    return reply


async def choose(compute: ComputeEnvironment, instance: str, **spec: Any) -> None:
    """Have something else wanted of an instance, without asking whether that may be."""
    found = await stored(compute, instance)
    await compute.store.update(replace(found, spec=replace(found.spec, **spec)))


def as_compute(compute: ComputeEnvironment) -> Client:
    """Return a client of region that is the compute service."""
    region = compute.region
    return region.service(SERVICE, actor="ann@example.com", organization=region.organization, project=region.project)


async def tagged_server(
    compute: ComputeEnvironment, network: str, name: str, *, instance: str, uid: str = "", **more: str
) -> str:
    """Make a server that says it belongs to an instance, as compute would; return its id."""
    tags = {INSTANCE_TAG: instance} | ({INCARNATION: uid} if uid else {}) | more
    body = {
        "metadata": {"name": name, "tags": [{"name": key, "value": value} for key, value in tags.items()]},
        "spec": {"networkId": network, "flavorId": SMALL, "imageId": DEBIAN},
    }
    reply = await as_compute(compute).post(SERVERS, body)
    assert reply.status == 201, reply
    return str(reply.json["metadata"]["id"])


async def delete_server(compute: ComputeEnvironment, server: str) -> None:
    """Delete a server behind compute's back, and wait until it is gone."""
    assert (await compute.region.root.delete(f"{SERVERS}/{server}")).status == 202
    while (found := await find(compute.store, Server, server)) is not None and found.is_deleting:
        await compute.clock.sleep(0.05)


async def rest(compute: ComputeEnvironment, seconds: float = 60.0) -> None:
    """Let everything come to rest."""
    await compute.clock.sleep(seconds)


@asynccontextmanager
async def restarted(
    compute: ComputeEnvironment, meanwhile: Callable[[], Awaitable[None]], **more: Any
) -> AsyncIterator[ComputeApp]:
    """End compute, do something that nobody is told of, and run another one in its place, maybe with other ports."""
    await compute.app.stop()
    await meanwhile()
    await rest(compute)
    fresh: dict[str, Any] = {"metrics": CollectorRegistry(), "closing": asyncio.Event()}
    ports = dataclasses.replace(compute.app.ports, **fresh | more)
    compute.app = ComputeApp(ports)
    await compute.app.start()
    try:
        yield compute.app
    finally:
        await compute.app.stop()


def metric(compute: ComputeEnvironment, name: str, **labels: str) -> float:
    """Return what a metric of compute shows."""
    return compute.app.ports.metrics.get_sample_value(name, labels) or 0.0
