"""A pasture behind HTTP: a small service over a real store, on a real socket, in this process or in one of its own.

Run as a program it takes a directory and a port, and a file whose presence holds up every create after its write.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from remuda.access.principal import AccessList, Principal
from remuda.http.api import Api
from remuda.http.authentication import RequestCredentials
from remuda.http.server.server import HttpServer, ListenAddress
from remuda.http.watch import WatchPorts
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import Unauthenticated
from remuda.kernel.randomness import SystemRandomness
from remuda.store.sqlite.store import open_store
from tests.kit.asgi.api_ports import api_ports
from tests.kit.asgi.contract import contract_of
from tests.kit.asgi.validating import Validated
from tests.kit.sample_api.service import TABLE, SampleService
from tests.kit.sample_kinds import REGISTRY
from tests.kit.simulation.store import SEALER


class SampleAuthenticator:
    """Lets in whoever has the token, and services whose certificate a proxy has seen."""

    def __init__(self) -> None:
        self.token = "good"
        self.access = AccessList()
        self.seen: list[RequestCredentials] = []

    def access_version(self) -> int:
        return 0

    async def is_genuine(self, credentials: RequestCredentials) -> bool:
        return credentials.token == self.token

    async def authenticate(self, credentials: RequestCredentials) -> Principal:
        self.seen.append(credentials)
        if credentials.token != self.token:
            raise Unauthenticated("token is invalid or has expired")
        return Principal(subject="anna@example.com", type="user", access=self.access)


class SampleServer:
    """A server that can be stopped and started again, on the same port and store."""

    def __init__(self, directory: Path, hold: Path | None = None) -> None:
        self.clock, self.randomness = SystemClock(), SystemRandomness()
        self.doorman = SampleAuthenticator()
        self.store = open_store(directory / "pasture.db", REGISTRY, SEALER)
        self.service = SampleService(self.store, hold)
        self.address = ListenAddress("127.0.0.1", 0)
        self._server: HttpServer | None = None
        self._api: Validated | None = None

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    async def start(self) -> None:
        clock, randomness, closing = self.clock, self.randomness, asyncio.Event()
        ports = api_ports(
            self.store, self.doorman, clock=clock, randomness=randomness, watch=WatchPorts(clock=clock, closing=closing)
        )
        self._api = Validated(Api(TABLE, self.service, ports), contract_of(TABLE))
        self._server = HttpServer(
            self._api,
            clock=clock,
            randomness=randomness,
            count_closed=lambda _: None,
            closing=closing,
        )
        self.address = await self._server.start(self.address)

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop()
        if self._api is not None:
            self._api.assert_documented()


@asynccontextmanager
async def sample_server(directory: Path) -> AsyncIterator[SampleServer]:
    running = SampleServer(directory)
    await running.start()
    try:
        yield running
    finally:
        await running.stop()
        await running.store.close()


async def main(directory: Path, port: int) -> None:
    running = SampleServer(directory, hold=directory / "hold")
    running.address = ListenAddress("127.0.0.1", port)
    await running.start()
    (directory / "port").write_text(str(running.address.port))
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
