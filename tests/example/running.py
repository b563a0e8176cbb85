"""The livery for tests in real time: on a real file, in this process or on a socket.

::

    async with running(tmp_path) as livery:
        reply = await livery.client("user").post(YARDS, new_yard())

Every answer that such a client gets is held against the API's own document.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remuda.http.server.server import HttpServer, ListenAddress
from remuda.kernel.clock import SystemClock
from remuda.kernel.randomness import SystemRandomness
from remuda.store.sqlite.store import SqliteStore, open_store
from tests.example.app import LiveryApp, build, registry
from tests.example.customers import MOUNTS, YARDS
from tests.example.house import contract, shared_table
from tests.example.pasture import SimPasture
from tests.example.ports import Ports
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import Reply
from tests.kit.proofs.effects import Recorder
from tests.kit.simulation.store import SEALER

PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True)
class Running:
    """A livery that runs."""

    app: LiveryApp
    store: SqliteStore
    pasture: SimPasture
    recorder: Recorder

    def client(self, token: str | None) -> Client:
        """Return the client of whoever has this token."""
        return Client(app=self.recorder.app(self.app.asgi), token=token, contract=contract())

    async def eventually(self, sentence: str, condition: Callable[[], Awaitable[bool]]) -> None:
        """Return when the condition holds; fail with the sentence when patience ends."""
        clock = self.app.ports.clock
        deadline = clock.monotonic() + PATIENCE_S
        while not await condition():
            assert clock.monotonic() < deadline, f"not within {PATIENCE_S:g} s: {sentence}"
            await clock.sleep(0.02)

    async def make_yard(self, *, stalls: int = 2, token: str = "user") -> str:
        """Make a yard and return its id."""
        reply = await self.client(token).post(YARDS, new_yard(stalls=stalls))
        assert reply.status == 202, reply
        made: str = reply.json["metadata"]["id"]
        return made

    async def make_mount(self, yard: str, name: str = "bella") -> str:
        """Make a mount and return its id."""
        reply = await self.client("user").post(MOUNTS, new_mount(yard, name))
        assert reply.status == 201, reply
        made: str = reply.json["metadata"]["id"]
        return made

    async def until_provisioned(self, mount: str) -> Reply:
        """Wait until a mount is provisioned, and return how it reads."""
        client = self.client("user")

        async def is_provisioned() -> bool:
            reply = await client.get(f"{MOUNTS}/{mount}")
            return bool(reply.json["metadata"]["provisioningStatus"] == "provisioned")

        await self.eventually("the mount is provisioned", is_provisioned)
        return await client.get(f"{MOUNTS}/{mount}")

    async def until_gone(self, path: str) -> None:
        """Wait until there is nothing at a path any more."""

        async def is_gone() -> bool:
            return (await self.client("user").get(path)).status == 404

        await self.eventually(f"{path} is gone", is_gone)


def new_yard(*, name: str = "yard", stalls: int = 2) -> dict[str, Any]:
    """Return the body that makes a yard."""
    return {"metadata": {"name": name}, "spec": {"stalls": stalls}}


def new_mount(yard: str, name: str = "bella", *, breed: str = "mule") -> dict[str, Any]:
    """Return the body that makes a mount."""
    return {"metadata": {"name": name}, "spec": {"yardId": yard, "breed": breed}}


@asynccontextmanager
async def running(directory: Path, *, latency_s: float = 0.002, **ports: Any) -> AsyncIterator[Running]:
    """Run a livery for the time of a `with` block; `ports` are those of `app.Ports` that a test wants otherwise."""
    clock, randomness = SystemClock(), SystemRandomness()
    store = open_store(directory / "livery.db", registry(), SEALER)
    pasture = SimPasture(clock, randomness, latency_s=latency_s, stale_s=0.02)
    given: dict[str, Any] = {
        "clock": clock,
        "randomness": randomness,
        "pasture": pasture,
        "table": shared_table(),
        "look_again_s": 0.05,
    }
    recorder = Recorder()
    app = build(Ports(store=recorder.store(store), log=store, **(given | ports)))
    await app.start()
    try:
        yield Running(app, store, pasture, recorder)
    finally:
        await app.stop()
        await store.close()


@asynccontextmanager
async def serving(livery: Running) -> AsyncIterator[str]:
    """Answer on a socket for the time of a `with` block; yields where, as a URL."""
    ports = livery.app.ports
    server = HttpServer(
        livery.app.asgi,
        clock=ports.clock,
        randomness=ports.randomness,
        count_closed=livery.app.metrics.count_closed,
    )
    address = await server.start(ListenAddress("127.0.0.1", 0))
    try:
        yield f"http://{address}"
    finally:
        livery.app.watches.closing.set()
        await server.stop()
