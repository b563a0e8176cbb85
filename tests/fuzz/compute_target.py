"""Compute on a real socket, with identity and region beside it, controllers at work and instant clouds."""

import asyncio
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from time import monotonic, sleep
from typing import Any

import requests

from remuda.http.server.server import HttpServer, ListenAddress
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from tests.fuzz.threads import TIMEOUT_S, in_a_thread
from tests.kit.compute.environment import INSTANCES, JAMMY, ComputeEnvironment, running
from tests.kit.identity.environment import ORGANIZATIONS, expect
from tests.kit.region.environment import NORTH, STANDARD
from tests.kit.simulation.disk import memory_directory

INSTANCE, STOPPED, GONE = "instanceID", "a stopped instance", "an instance that is gone"
"""What is lent."""
_PAUSE_S = 0.02


@dataclass(frozen=True)
class ComputeSetup:
    """What stays: nothing that is made up takes it away."""

    organization: str
    project: str
    network: str
    policed: str
    """A project without instances: whatever its policy demands, nobody is kept from anything."""

    @property
    def ids(self) -> frozenset[str]:
        """What it is made of."""
        return frozenset({self.organization, self.project, self.network, self.policed, NORTH})


@dataclass(frozen=True)
class ComputeTarget:
    """Compute, as seen from another thread."""

    url: str
    token: str
    setup: ComputeSetup
    names: dict[str, str] = field(default_factory=dict)
    """What each instance that was lent is called."""
    session: requests.Session = field(default_factory=requests.Session)
    _counter: Iterator[int] = field(default_factory=count)

    @property
    def headers(self) -> dict[str, str]:
        """What one sends who may do everything."""
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def other_headers(self) -> Mapping[str, dict[str, str]]:
        """Nothing is for services alone."""
        return {}

    def call(self, method: str, path: str, body: Any = None) -> requests.Response:
        """Send a request of our own, as one who may do everything."""
        return self.session.request(method, self.url + path, json=body, headers=self.headers, timeout=TIMEOUT_S)

    def make(self, thing: str) -> str:
        """Make an instance, wait until it is as it is wanted, and return its id."""
        body = self.new()
        made = self.call("POST", INSTANCES, body)
        assert made.status_code == 201, made.text
        name = str(made.json()["metadata"]["id"])
        self.names[name] = body["metadata"]["name"]
        path = f"{INSTANCES}/{name}"
        self._until(path, lambda read: read.json()["metadata"]["provisioningStatus"] == "provisioned")
        if thing == STOPPED:
            self.call("POST", f"{path}/stop")
            self._until(path, lambda read: read.json()["status"].get("powerState") == "Stopped")
        if thing == GONE:
            self.call("DELETE", path)
            self._until(path, lambda read: read.status_code == 404)
        return name

    def new(self) -> dict[str, Any]:
        """Return what is sent to make an instance."""
        setup = self.setup
        where = {"organizationId": setup.organization, "projectId": setup.project, "networkId": setup.network}
        spec = {**where, "flavorId": STANDARD, "imageId": JAMMY}
        return {"metadata": {"name": f"lent{next(self._counter)}"}, "spec": spec}

    def bring_up(self, instance: str) -> None:
        """Have an instance run, if it is there."""
        self.call("POST", f"{INSTANCES}/{instance}/start")
        for _ in range(10):
            read = self.call("GET", f"{INSTANCES}/{instance}")
            if read.status_code != 200 or read.json()["status"].get("powerState") == "Running":
                return
            sleep(_PAUSE_S)

    def _until(self, path: str, holds: Any) -> None:
        deadline = monotonic() + TIMEOUT_S
        while not holds(read := self.call("GET", path)):
            assert monotonic() < deadline, read.text
            sleep(_PAUSE_S)


@contextmanager
def serving_compute() -> Iterator[ComputeTarget]:
    """Run compute while the block runs."""
    with in_a_thread(_serve) as target:
        try:
            yield target
        finally:
            target.session.close()


async def _serve(ready: "Future[ComputeTarget]", stop: asyncio.Event) -> None:
    clock = SystemClock()
    with memory_directory() as directory:
        async with running(directory, is_instant=True) as compute:
            server = HttpServer(
                compute.app.api, clock=clock, randomness=SystemRandomness(), count_closed=lambda _: None
            )
            address = await server.start(ListenAddress("127.0.0.1", 0))
            ready.set_result(ComputeTarget(f"http://{address}", compute.region.identity.root, await _setup(compute)))
            await stop.wait()
            compute.app.ports.closing.set()
            server.hurry()
            await server.stop()


async def _setup(compute: ComputeEnvironment) -> ComputeSetup:
    region, identity = compute.region, compute.region.identity
    path, root = f"{ORGANIZATIONS}/{region.organization}/quotas", identity.client(identity.root)
    quotas = expect(await root.get(path), 200)["quotas"]
    expect(await root.put(path, {"quotas": [{"kind": each["kind"], "quantity": 10**15} for each in quotas]}), 200)
    network = await region.network()
    await region.until(f"/api/v2/networks/{network}", "provisioned")
    policed = await identity.project(region.organization, name="policed")
    return ComputeSetup(region.organization, region.project, network, policed)
