"""Many watches of which none has anything to tell, over sockets: the server's CPU time while all wait."""

import asyncio
from collections.abc import Iterator

from bench.bed import Bed
from bench.cpu import idle_share
from bench.http.app import organization_path
from bench.http.child import serving
from bench.http.load import request_of
from bench.http.service import MEMBER
from bench.loops import run
from bench.report import Measure, at_most, figure

__all__ = ["measures"]

_LIMIT_PERCENT = 1.0
_OBJECTS = 10
_SYNCED = b'{"synced":true}'


def measures(bed: Bed) -> Iterator[Measure]:
    """Open the streams, wait until each has caught up, and look."""
    alone, watched = run(_idling(bed))
    title = f"{bed.sizes.watchers:,} idle watch streams"
    yield at_most(1, title, watched - alone, _LIMIT_PERCENT, "% CPU")
    yield figure("the same server without a stream", alone, "% CPU")


async def _idling(bed: Bed) -> tuple[float, float]:
    """Return the share of a core that the server takes without streams, and with them."""
    request = request_of(f"{organization_path()}?watch=true", MEMBER)
    with serving("ours", bed.filled(_OBJECTS), bed.fresh()) as child:
        await _settle()
        alone = await idle_share(bed.sizes.idle_s / 2, child.pid)
        readers = [await _Reader.open(child.port, request) for _ in range(bed.sizes.watchers)]
        for reader in readers:
            await reader.has_caught_up.wait()
        await _settle()
        watched = await idle_share(bed.sizes.idle_s, child.pid)
        assert not any(reader.is_cut for reader in readers), "all streams live"
        for reader in readers:
            reader.transport.close()
    return alone, watched


async def _settle() -> None:
    await asyncio.sleep(1)


class _Reader(asyncio.Protocol):
    """One client."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.has_caught_up = asyncio.Event()
        self.is_cut = False
        self._got = b""

    @classmethod
    async def open(cls, port: int, request: bytes) -> "_Reader":
        _, reader = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
        reader.transport.write(request)
        return reader

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # a socket's transport goes both ways
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._got = self._got[-len(_SYNCED) :] + data
        if _SYNCED in self._got:
            self.has_caught_up.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  whatever it was
        self.is_cut = True
