"""What is fuzzed: the livery on a real socket, with its controllers at work, on a loop and a thread of its own."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec
import requests
import uvloop

from remuda.http.ratelimit import RateLimit
from remuda.http.server.server import HttpServer, ListenAddress
from remuda.kernel.clock import SystemClock
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import SystemRandomness
from remuda.operations.kinds import Operation, OperationSpec
from remuda.store.objects import Metadata
from remuda.store.readside.reader import ReaderSettings
from remuda.store.sqlite.store import SqliteSettings, SqliteStore, open_store
from tests.example.app import build, registry
from tests.example.authenticator import ORGANIZATION, PROJECT
from tests.example.pasture import SimPasture
from tests.example.ports import Ports
from tests.example.sagas import CREATE_MOUNT, NewMount
from tests.kit.simulation.disk import memory_directory
from tests.kit.simulation.store import SEALER

TOKEN = "admin"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
YARDS = f"/api/v1/organizations/{ORGANIZATION}/projects/{PROJECT}/yards"
MOUNTS = "/api/v2/mounts"
_PATIENCE_S = 30


@dataclass(frozen=True)
class Target:
    """The livery, as seen from another thread."""

    url: str
    loop: asyncio.AbstractEventLoop
    store: SqliteStore
    session: requests.Session

    @property
    def headers(self) -> dict[str, str]:
        """What one sends who may do everything."""
        return dict(HEADERS)

    @property
    def other_headers(self) -> Mapping[str, dict[str, str]]:
        """What some operations are sent instead: none are."""
        return {}

    def call(self, method: str, path: str, body: Any = None) -> requests.Response:
        """Send a request of our own, as one who may do everything."""
        return self.session.request(method, self.url + path, json=body, headers=HEADERS, timeout=_PATIENCE_S)

    def make_yard(self) -> str:
        """Make a yard, and return its id."""
        made = self.call("POST", YARDS, {"metadata": {"name": "lent"}, "spec": {"stalls": 100}})
        assert made.status_code == 202, made.text
        return str(made.json()["metadata"]["id"])

    def make_mount(self, name: str) -> str:
        """Make a mount in a yard of its own, and return its id."""
        spec = {"yardId": self.make_yard(), "breed": "mule"}
        made = self.call("POST", MOUNTS, {"metadata": {"name": name}, "spec": spec})
        assert made.status_code == 201, made.text
        return str(made.json()["metadata"]["id"])

    def make_operation(self) -> str:
        """Leave an operation behind that nobody has undone yet, and return its id."""
        stranding = _strand(self.store, self.make_yard())
        return asyncio.run_coroutine_threadsafe(stranding, self.loop).result(_PATIENCE_S)


async def _strand(store: SqliteStore, yard: str) -> str:
    wanted = NewMount(yard=yard, name="never", breed="mule", paddock="home")
    spec = OperationSpec(
        saga=CREATE_MOUNT.name,
        subject_kind="mounts",
        subject="never",
        actor="somebody",
        input=msgspec.json.encode(wanted).decode(),
        deadline=SystemClock().now() - timedelta(minutes=1),
        process="gone",
    )
    name = random_id(SystemRandomness())
    stored = await store.create(Operation(metadata=Metadata(name=name), spec=spec))
    await store.update_status(stored.moved("stuck"))
    return name


@contextmanager
def serving() -> Iterator[Target]:
    """Run the livery while the block runs."""
    ready: Future[tuple[Target, asyncio.Event]] = Future()
    thread = threading.Thread(target=_run, args=(ready,), name="livery")
    thread.start()
    try:
        target, stop = ready.result(_PATIENCE_S)
        try:
            yield target
        finally:
            target.session.close()
            target.loop.call_soon_threadsafe(stop.set)
    finally:
        thread.join(_PATIENCE_S)


def _run(ready: "Future[tuple[Target, asyncio.Event]]") -> None:
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(ready))
    except BaseException as error:
        if ready.done():
            raise
        ready.set_exception(error)


async def _serve(ready: "Future[tuple[Target, asyncio.Event]]") -> None:
    clock, randomness, stop = SystemClock(), SystemRandomness(), asyncio.Event()
    with memory_directory() as directory:
        settings = SqliteSettings(reader=ReaderSettings(bookmark_interval_s=0.1))
        store = open_store(directory / "remuda.db", registry(), SEALER, settings=settings)
        ports = Ports(
            store=store,
            log=store,
            clock=clock,
            randomness=randomness,
            pasture=SimPasture(clock, randomness, latency_s=0.01),
            rate=RateLimit(quota=10_000_000),
        )
        app = build(ports)
        server = HttpServer(app.asgi, clock=clock, randomness=randomness, count_closed=lambda _: None)
        await app.start()
        address = await server.start(ListenAddress("127.0.0.1", 0))
        target = Target(f"http://{address}", asyncio.get_running_loop(), store, requests.Session())
        ready.set_result((target, stop))
        await stop.wait()
        server.hurry()
        await server.stop()
        await app.stop()
        await store.close()
