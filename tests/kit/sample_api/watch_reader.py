"""Reading streams of events as a client would."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, cast

import msgspec

from remuda.access.principal import Principal
from remuda.http.responses import Collection
from remuda.http.sse import HEARTBEAT, EventReader, Received
from remuda.http.watch import WatchPorts, watch_response
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import RemudaError
from tests.kit.sample_api.collections import ANNA, headers
from tests.kit.sample_kinds import Horse


class Reader:
    """Reads one stream, event by event, as a client would."""

    def __init__(self, chunks: AsyncGenerator[bytes]) -> None:
        self.chunks = chunks
        self.comments = 0
        self._parser = EventReader()
        self._ready: list[Received] = []

    async def next(self) -> Received:
        while not self._ready:
            chunk = await anext(self.chunks)
            self.comments += chunk == HEARTBEAT
            self._ready += self._parser.feed(chunk)
        return self._ready.pop(0)

    async def told(self, count: int) -> list[tuple[str, str]]:
        """Return the types of the next events, and which horse of which colour each is about."""
        return [_short(await self.next()) for _ in range(count)]

    async def rest(self) -> list[Received]:
        return [*self._ready, *[event async for chunk in self.chunks for event in self._parser.feed(chunk)]]


def _short(event: Received) -> tuple[str, str]:
    data = msgspec.json.decode(event.data)
    return event.type, f"{data['id']} {data['colour']}" if "id" in data else event.data.decode()


class PermissionSet:
    """What the authenticator says about the reader."""

    def __init__(self, principal: Principal = ANNA) -> None:
        self.principal = principal
        self.error: RemudaError | None = None
        self.asked = 0

    async def renew(self) -> Principal:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.principal


@asynccontextmanager
async def watching(
    collection: Collection[Horse, Any],
    *,
    since: str | None = None,
    permissions: PermissionSet | None = None,
    ports: WatchPorts | None = None,
    address: str = "192.0.2.1",
) -> AsyncIterator[Reader]:
    permissions, ports = permissions or PermissionSet(), ports or WatchPorts(clock=SystemClock())
    answer = await watch_response(
        collection,
        last_event_id=since,
        principal=permissions.principal,
        host=address,
        renew=permissions.renew,
        ports=ports,
    )
    assert headers(answer)["content-type"] == "text/event-stream"
    chunks = cast("AsyncGenerator[bytes]", answer.body)
    async with aclosing(chunks):
        yield Reader(chunks)
