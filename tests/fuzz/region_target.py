"""Region on a real socket, with identity beside it, controllers at work and instant clouds: what is fuzzed."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from time import monotonic, sleep
from typing import Any, TypeVar

import requests
import uvloop

from remuda.http.server.server import HttpServer, ListenAddress
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.store.contract import Store
from tests.fuzz.region_stranding import lose_server, make_orphan, strand_group
from tests.kit.identity.environment import ORGANIZATIONS, expect
from tests.kit.region.environment import NORTH, STANDARD, UBUNTU, RegionEnvironment, running
from tests.kit.region.images import URI, Web
from tests.kit.simulation.disk import memory_directory

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
LISTENERS = [{"name": "http", "protocol": "tcp", "port": 80, "pool": {"members": []}}]
SYSTEM = {"kernel": "linux", "family": "debian", "distro": "debian", "version": "12"}
LOST, STUCK = "a lost server", "a group that does not go"
"""What only operators can help."""
_TIMEOUT_S = 30
_PAUSE_S = 0.02
T = TypeVar("T")
_PATHS = {
    "networkID": "networks",
    "securityGroupID": "securitygroups",
    "sshCertificateAuthorityID": "sshcertificateauthorities",
    "loadBalancerID": "loadbalancers",
    "filestorageID": "filestorage",
    "serverID": "servers",
    "regionID": "platform/regions",
}
LIKE_NORTH = {"type": "simulated", "simulated": {"catalogue": "sim-north"}}
"""A region that is added."""


@dataclass(frozen=True)
class RegionSetup:
    """What stays: nothing that is made up takes it away."""

    organization: str
    project: str
    network: str
    storage_class: str

    @property
    def ids(self) -> frozenset[str]:
        """What it is made of."""
        return frozenset({self.organization, self.project, self.network, self.storage_class, NORTH})


@dataclass(frozen=True)
class RegionTarget:
    """Region, as seen from another thread."""

    url: str
    loop: asyncio.AbstractEventLoop
    token: str
    services: Mapping[str, str]
    """The tokens of services, by their names."""
    setup: RegionSetup
    store: Store
    lost: dict[str, str] = field(default_factory=dict)
    """The names of servers whose objects were lost, by the ids of the records of them."""
    session: requests.Session = field(default_factory=requests.Session)
    _counter: Iterator[int] = field(default_factory=count)

    @property
    def headers(self) -> dict[str, str]:
        """What one sends who may do everything."""
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def other_headers(self) -> Mapping[str, dict[str, str]]:
        """What some operations are sent instead, which are for services alone."""
        asking = {"replace_server": "unikorn-compute", "get_region_detail": "unikorn-kubernetes"}
        return {name: {"Authorization": f"Bearer {self.services[service]}"} for name, service in asking.items()}

    def call(self, method: str, path: str, body: Any = None) -> requests.Response:
        """Send a request of our own, as one who may do everything."""
        return self.session.request(method, self.url + path, json=body, headers=self.headers, timeout=_TIMEOUT_S)

    def make(self, thing: str) -> str:
        """Make something that a path can be about, wait until it is ready, and return its id."""
        others = {
            "imageID": self._import,
            "orphanID": lambda: self._run(make_orphan(self.store, NORTH)),
            LOST: self._lose_server,
            STUCK: self._strand_group,
        }
        if thing in others:
            return others[thing]()
        path = f"/api/v2/{_PATHS[thing]}"
        made = self.call("POST", path, self.new(thing))
        assert made.status_code == 201, made.text
        name = str(made.json()["metadata"]["id"])
        self._until(f"{path}/{name}", "provisioned")
        return name

    def new(self, thing: str) -> dict[str, Any]:
        """Return what is sent to make something."""
        setup = self.setup
        where = {"organizationId": setup.organization, "projectId": setup.project}
        storage = {"regionId": NORTH, "storageClassId": setup.storage_class, "sizeGiB": 1}
        specs: Mapping[str, Any] = {
            "networkID": {**where, "regionId": NORTH, "prefix": "10.0.0.0/24", "dnsNameservers": []},
            "sshCertificateAuthorityID": {**where, "publicKey": KEY},
            "filestorageID": {**where, **storage, "storageType": {"NFS": {"rootSquash": True}}},
            "securityGroupID": {"networkId": setup.network, "rules": []},
            "loadBalancerID": {"networkId": setup.network, "listeners": LISTENERS},
            "serverID": {"networkId": setup.network, "flavorId": STANDARD, "imageId": UBUNTU},
            "regionID": LIKE_NORTH,
            "imageID": {"uri": URI, "architecture": "x86_64", "virtualization": "any", "os": SYSTEM},
        }
        return {"metadata": {"name": f"lent{next(self._counter)}"}, "spec": specs[thing]}

    def bring(self, server: str, wanted: str) -> None:
        """Have a server run, or not; one that has gone, or is not to be had otherwise, stays as it is."""
        path = f"/api/v2/servers/{server}"
        self.call("POST", f"{path}/{'start' if wanted == 'Running' else 'stop'}")
        for _ in range(10):
            read = self.call("GET", path)
            if read.status_code != 200 or read.json()["status"].get("powerState") == wanted:
                return
            sleep(_PAUSE_S)

    def _strand_group(self) -> str:
        group = self.make("securityGroupID")
        self._run(strand_group(self.store, group))
        return group

    def _lose_server(self) -> str:
        server = self.make("serverID")
        name = self.call("GET", f"/api/v2/servers/{server}").json()["metadata"]["name"]
        orphan = self._run(lose_server(self.store, server))
        self.lost[orphan] = name
        return orphan

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(_TIMEOUT_S)

    def _import(self) -> str:
        path = f"/api/v1/organizations/{self.setup.organization}/regions/{NORTH}/images"
        made = self.call("POST", path, self.new("imageID"))
        assert made.status_code == 200, made.text
        return str(made.json()["metadata"]["id"])

    def _until(self, path: str, status: str) -> None:
        deadline = monotonic() + _TIMEOUT_S
        while (read := self.call("GET", path)).json()["metadata"]["provisioningStatus"] != status:
            assert monotonic() < deadline, read.text
            sleep(_PAUSE_S)


@contextmanager
def serving_region() -> Iterator[RegionTarget]:
    """Run region while the block runs."""
    ready: Future[tuple[RegionTarget, asyncio.Event]] = Future()
    thread = threading.Thread(target=_run, args=(ready,), name="region")
    thread.start()
    try:
        target, stop = ready.result(_TIMEOUT_S)
        try:
            yield target
        finally:
            target.session.close()
            target.loop.call_soon_threadsafe(stop.set)
    finally:
        thread.join(_TIMEOUT_S)


def _run(ready: "Future[tuple[RegionTarget, asyncio.Event]]") -> None:
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(ready))
    except BaseException as error:
        if ready.done():
            raise
        ready.set_exception(error)


async def _serve(ready: "Future[tuple[RegionTarget, asyncio.Event]]") -> None:
    stop, clock = asyncio.Event(), SystemClock()
    with memory_directory() as directory:
        async with running(directory, is_instant=True, web=Web(clock)) as region:
            server = HttpServer(region.app.api, clock=clock, randomness=SystemRandomness(), count_closed=lambda _: None)
            address = await server.start(ListenAddress("127.0.0.1", 0))
            target = RegionTarget(
                f"http://{address}",
                asyncio.get_running_loop(),
                region.identity.root,
                {name: await region.identity.service_token(name) for name in ("unikorn-compute", "unikorn-kubernetes")},
                await _setup(region),
                region.store,
            )
            ready.set_result((target, stop))
            await stop.wait()
            region.app.ports.closing.set()
            server.hurry()
            await server.stop()


async def _setup(region: RegionEnvironment) -> RegionSetup:
    path, root = f"{ORGANIZATIONS}/{region.organization}/quotas", region.identity.client(region.identity.root)
    quotas = expect(await root.get(path), 200)["quotas"]
    expect(await root.put(path, {"quotas": [{"kind": each["kind"], "quantity": 10**15} for each in quotas]}), 200)
    network = await region.network()
    await region.until(f"/api/v2/networks/{network}", "provisioned")
    classes = expect(await region.root.get("/api/v2/filestorageclasses", {"regionID": NORTH}), 200)
    return RegionSetup(region.organization, region.project, network, classes[0]["metadata"]["id"])
