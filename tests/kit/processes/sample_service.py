"""A process with one small service, which says what happens to it: `python -m tests.kit.processes.sample_service DATA`.

Line by line: that it is entered, the port, that it is left and what its store says then. It is ready once it was asked
to be, and its answers take as long as they are told to.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from prometheus_client import Counter

from remuda.http.asgi import Receive, Scope, Send
from remuda.http.responses import Response
from remuda.http.routes import Table
from remuda.http.server.exposition import MetricsSettings
from remuda.http.server.health import Mounted
from remuda.http.server.server import ListenAddress
from remuda.process import ProcessPorts, ProcessServices, Settings, run
from tests.kit.sample_kinds import REGISTRY, Horse, horse

RELEASE = "release"
"""A file in the data directory: while it is not there, `/held` does not answer."""

TABLE = Table("slow", title="Slow", description="It takes its time.", routes=[])


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201  how it is heard


class Service:
    """Becomes ready when it is asked to, and answers `/wait` when the process begins to stop, and a little later."""

    def __init__(self, ports: ProcessPorts) -> None:
        self._ports = ports
        self._waits = Counter("waits", "Requests that waited.", registry=ports.metrics)
        self._is_ready = False

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["path"].endswith("/wait"):
            self._waits.inc()
            await self._ports.closing.wait()
            await asyncio.sleep(0.2)
            await self._ports.store.create(horse("late"))
        if scope["path"].endswith("/held"):
            self._waits.inc()
            while not (self._ports.data.path / RELEASE).exists():  # noqa: ASYNC110  a file has no event
                await asyncio.sleep(0.01)
            await self._ports.store.create(horse("late"))
        self._is_ready = True
        await Response(200, b"done").send(send)

    def check(self) -> list[tuple[str, str]]:
        return [] if self._is_ready else [("slow", "Nobody asked it yet.")]


@asynccontextmanager
async def services(ports: ProcessPorts) -> AsyncIterator[ProcessServices]:
    say("entered")
    service = Service(ports)
    yield ProcessServices(mounted=[Mounted("/slow", TABLE, service)], checks=[service.check])
    found = await ports.store.get(Horse, "late")
    say(f"left with {found.name}")


async def main(data: Path) -> None:
    local = ListenAddress("127.0.0.1", 0)
    settings = Settings(data=data, listen=local, metrics=MetricsSettings(listen=local))
    await run(settings, announce=lambda address: say(str(address.port)), services=services, kinds=REGISTRY)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
