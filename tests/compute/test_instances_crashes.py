"""Compute in this process, identity and region in another, which is killed in the middle of it and comes back."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2

from remuda.compute.app import ComputeApp
from remuda.compute.kinds import KINDS
from remuda.compute.ports import ComputePorts
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.store.sqlite.store import open_store
from tests.kit.asgi.client import Client
from tests.kit.both_transports import QUICK, free_port
from tests.kit.compute.apart import Certified, MachinePorts, Reaching
from tests.kit.compute.environment import INSTANCES, SERVICE
from tests.kit.compute.requests import DEBIAN, at, made
from tests.kit.compute.updates import SMALL
from tests.kit.identity.environment import expect
from tests.kit.identity.service_credentials import environment
from tests.kit.processes.program import Running, running
from tests.kit.region.environment import NORTH
from tests.kit.resource_api import with_machinery
from tests.kit.simulation.store import SEALER

TIMEOUT_S = 60.0
MANY = 8


async def test_m01_m13_what_was_asked_for_is_there_once_whatever_dies_meanwhile(tmp_path: Path) -> None:
    listen = f"127.0.0.1:{free_port()}"
    with _up(tmp_path, listen) as first:
        place = await asyncio.to_thread(_settle, first)
        async with _compute(tmp_path, first) as client:
            asked = [_wanted(place, f"web-{number}") for number in range(MANY)]
            instances = [made(await client.post(INSTANCES, each)) for each in asked]
            first.process.send_signal(signal.SIGKILL)
            await asyncio.to_thread(first.process.wait)
            assert (await client.post(INSTANCES, _wanted(place, "late"))).status == 503
            with _up(tmp_path, listen) as second:
                for each in instances:
                    await _until(client, each, "provisioned")
                assert await asyncio.to_thread(_servers, second) == sorted(instances)
                gone, *others = instances
                assert (await client.delete(at(gone))).status == 202
                await _until(client, gone, "gone")
                assert await asyncio.to_thread(_servers, second) == sorted(others)


@contextmanager
def _up(directory: Path, listen: str) -> Iterator[Running]:
    with running(directory / "data", listen=listen, environment=environment(directory)) as process:
        yield process


@asynccontextmanager
async def _compute(directory: Path, process: Running) -> AsyncIterator[Client]:
    """Run compute with a store of its own, and yield the client of who has that process."""
    clock, randomness = SystemClock(), SystemRandomness()
    endpoints = process.credentials["endpoints"]
    machine = MachinePorts(
        clock=clock,
        randomness=randomness,
        opened=lambda name, kinds: open_store(directory / f"{name}.db", kinds, SEALER),
        urls=(endpoints["identity"], endpoints["region"]),
        issuer=endpoints["identity"],
        settings=QUICK,
    )
    async with AsyncExitStack() as stack:
        store = machine.opened("compute", with_machinery(KINDS))
        stack.push_async_callback(store.close)
        reaching = Reaching(machine, stack)
        ports: dict[str, Any] = await reaching.identity_of(SERVICE, store)
        ports["region"] = await reaching.region_of(SERVICE)
        await reaching.until_believed()
        app = ComputeApp(ComputePorts(clock=clock, randomness=randomness, sealer=SEALER, **ports))
        await app.start()
        stack.push_async_callback(app.stop)
        yield Client(app=app.api, token=process.credentials["token"])


def _settle(process: Running) -> dict[str, str]:
    """Make a project and a network in it; return what an instance there is asked for with."""
    found = process.credentials
    organization = found["organizationId"]
    projects = f"{found['endpoints']['identity']}/api/v1/organizations/{organization}/projects"
    project = _post(process, projects, {"metadata": {"name": "project"}, "spec": {"groupIDs": []}})
    place = {"organizationId": organization, "projectId": project}
    spec = {**place, "regionId": NORTH, "prefix": "10.0.0.0/16", "dnsNameservers": []}
    networks = f"{found['endpoints']['region']}/api/v2/networks"
    return {**place, "networkId": _post(process, networks, {"metadata": {"name": "net"}, "spec": spec})}


def _wanted(place: dict[str, str], name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {**place, "flavorId": SMALL, "imageId": DEBIAN}}


def _post(process: Running, url: str, body: Any) -> str:
    answer = httpx2.post(url, headers={"Authorization": f"Bearer {process.credentials['token']}"}, json=body)
    assert answer.is_success, answer.text
    return str(answer.json()["metadata"]["id"])


def _servers(process: Running) -> list[str]:
    url = f"{process.credentials['endpoints']['region']}/api/v2/servers"
    answer = httpx2.get(url, headers=dict(Certified(SERVICE, SystemClock()).headers(None))).raise_for_status()
    return sorted(each["metadata"]["id"] for each in answer.json())


async def _until(client: Client, instance: str, status: str) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            reply = await client.get(at(instance))
            if reply.status == 404:
                assert status == "gone", "it was acknowledged"
                return
            if reply.status == 200 and expect(reply, 200)["metadata"]["provisioningStatus"] == status:
                return
            await asyncio.sleep(0.1)
