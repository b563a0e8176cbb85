"""Clients that read slowly but steadily get all of their answer, however their connection ends; others are cut.

They run on the loop that production has, because loops differ in what they say of a transport's buffer.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

import pytest
import uvloop

from remuda.http.server.limits import ConnectionLimits, Progress
from tests.kit.http_server import LONG, Serving, request, serving, until

ATTEMPTS = ConnectionLimits(read_stall_s=1, idle_s=0.5, linger_s=0.5)
"""Much less than the slow reader needs for all."""
BITE, PAUSE_S = 16 * 1024, 0.05
RECEIVE_BUFFER = 16 * 1024
SLOW = len(LONG) * 3 // 4
"""So much is read slowly, which takes longer than any timeout here."""
KEPT = request("/long")
CLOSED = request("/long", "Connection: close")
OLD = b"GET /long HTTP/1.0\r\n\r\n"


def run(test: Coroutine[None, None, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(test)


class Reader:
    """A client with a small buffer."""

    def __init__(self, client: socket.socket) -> None:
        self.client = client
        self.read = b""

    async def send(self, sent: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.client, sent)

    async def bite(self) -> bool:
        """Read a little, and return whether there was something."""
        bite = await asyncio.get_running_loop().sock_recv(self.client, BITE)
        self.read += bite
        # The last that the sockets hold is read without delay: meanwhile the server, which is done, waits for us.
        if len(self.read) < SLOW:
            await asyncio.sleep(PAUSE_S)
        return bool(bite)

    async def read_slowly(self, *, enough: Callable[[], bool] = lambda: False) -> None:
        """Read until it is enough or the server closes the connection."""
        while not enough() and await self.bite():
            pass

    def has_all(self) -> bool:
        return self.read.partition(b"\r\n\r\n")[2] == LONG


@asynccontextmanager
async def asking(one: Serving, sent: bytes) -> AsyncIterator[Reader]:
    """Ask, and wait until the answer begins."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        client.settimeout(0)
        await asyncio.get_running_loop().sock_connect(client, (one.address.host, one.address.port))
        reader = Reader(client)
        await reader.send(sent)
        await reader.bite()
        yield reader


@pytest.mark.parametrize("sent", [CLOSED, OLD], ids=["closed", "old"])
def test_a_slow_reader_gets_all_of_an_answer_that_ends_its_connection(sent: bytes) -> None:
    async def test() -> None:
        async with serving(ATTEMPTS) as one, asking(one, sent) as reader:
            await reader.read_slowly()
            assert reader.has_all()
            assert not one.cuts

    run(test())


def test_a_slow_reader_gets_all_and_may_then_ask_again() -> None:
    async def test() -> None:
        async with serving(ATTEMPTS) as one, asking(one, KEPT) as reader:
            await reader.read_slowly(enough=reader.has_all)
            await reader.send(request("/", "Connection: close"))
            await reader.read_slowly()
            assert reader.read.endswith(b"hello")
            assert not one.cuts

    run(test())


def test_a_slow_reader_gets_all_of_its_answer_before_it_is_told_that_it_talks_nonsense() -> None:
    async def test() -> None:
        async with serving(ATTEMPTS) as one, asking(one, KEPT) as reader:
            await reader.send(b"nonsense\r\n\r\n")
            await reader.read_slowly()
            answer, _, rejection = reader.read.partition(LONG)
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert rejection.startswith(b"HTTP/1.1 400 ")
            assert one.cuts == {"malformed": 1}

    run(test())


def test_stopping_waits_for_a_slow_reader() -> None:
    async def test() -> None:
        async with serving(ATTEMPTS, grace_s=30) as one, asking(one, KEPT) as reader:
            stopping = asyncio.create_task(one.server.stop())
            await reader.read_slowly()
            await stopping
            assert reader.has_all()
            assert not one.cuts

    run(test())


def test_stopping_waits_for_a_slow_reader_no_longer_than_its_grace() -> None:
    async def test() -> None:
        async with serving(grace_s=0.5) as one, asking(one, KEPT) as reader:
            stopping = asyncio.create_task(one.server.stop())
            with contextlib.suppress(ConnectionResetError):
                await reader.read_slowly()
            await stopping
            assert not reader.has_all()
            assert one.cuts == {"write_timeout": 1}

    run(test())


@pytest.mark.parametrize("sent", [KEPT, CLOSED, OLD], ids=["kept", "closed", "old"])
def test_who_stops_reading_is_cut_and_counted(sent: bytes) -> None:
    async def test() -> None:
        async with serving(ATTEMPTS) as one, asking(one, sent):
            await until(lambda: one.cuts)
            assert one.cuts == {"write_timeout": 1}
            await until(lambda: not one.server.connections)

    run(test())


def test_progress_is_becoming_less_within_the_time_since_it_last_did() -> None:
    progress = Progress(10)
    seen = [(100, 0.0), (90, 9.0), (90, 19.0), (80, 19.5), (85, 29.0)]
    assert not any(progress.record(left, now) for left, now in seen)
    assert progress.record(80, 29.6)
    progress.begin()
    assert not progress.record(200, 100.0)
    assert progress.record(200, 111.0)
