"""The simulated network: what passes over it, and what does not."""

import asyncio

import pytest

from tests.kit.environment import options
from tests.kit.simulation.network import HOST, SimNetwork
from tests.kit.simulation.runner import World

PORT = 7
SEEDS = 20


class Heard(asyncio.Protocol):
    """One end that keeps what it hears."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.data = b""
        self.has_ended, self.is_lost = asyncio.Event(), asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data

    def eof_received(self) -> None:
        self.has_ended.set()

    def connection_lost(self, exc: Exception | None) -> None:
        assert exc is None
        self.is_lost.set()


async def connected(world: World, network: SimNetwork) -> tuple[Heard, Heard, asyncio.Server]:
    """Return both ends of a connection, and who listens."""
    theirs = Heard()
    server = await world.loop.create_server(lambda: theirs, sock=network.listener(PORT).socket)
    _, mine = await world.loop.create_connection(Heard, HOST, PORT)
    return mine, theirs, server


@options(seeds=SEEDS)
async def test_all_that_was_written_arrives_in_order_and_then_the_end(world: World) -> None:
    with SimNetwork(world.loop) as network:
        mine, theirs, _ = await connected(world, network)
        for number in range(100):
            mine.transport.write(b"%d," % number)
            if number % 7 == 0:
                await asyncio.sleep(0)
        mine.transport.close()
        await theirs.is_lost.wait()
        assert theirs.data == b"".join(b"%d," % number for number in range(100))
        assert theirs.has_ended.is_set()
        await mine.is_lost.wait()


@options(seeds=SEEDS)
async def test_who_does_not_read_hears_nothing_until_it_does(world: World) -> None:
    with SimNetwork(world.loop) as network:
        mine, theirs, _ = await connected(world, network)
        handle = mine.transport.get_extra_info("socket").fileno
        mine.transport.pause_reading()
        theirs.transport.write(b"hello")
        await asyncio.sleep(1)
        assert mine.data == b""
        assert handle() >= 0
        theirs.transport.close()
        await asyncio.sleep(1)
        assert handle() < 0, "the system would say that there is something to read"
        mine.transport.resume_reading()
        await mine.is_lost.wait()
        assert mine.data == b"hello"


@options(seeds=SEEDS)
async def test_where_nobody_listens_any_more_who_connects_is_refused(world: World) -> None:
    with SimNetwork(world.loop) as network:
        mine, theirs, server = await connected(world, network)
        server.close()
        with pytest.raises(ConnectionRefusedError, match=r"127\.0\.0\.1:7"):
            await world.loop.create_connection(Heard, HOST, PORT)
        mine.transport.write(b"still here")
        await asyncio.sleep(1)
        assert theirs.data == b"still here", "who is connected stays so"
