"""Memory that the process holds for clients: nobody has more than a share, and others are served meanwhile."""

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.http.asgi import Message
from remuda.http.buffer_shares import BufferShares, NoFreeBuffer, TooMuchBuffered
from remuda.http.proxies import ForwardingProxies
from remuda.http.responses import HtmlPage
from remuda.http.server.limits import ConnectionLimits
from remuda.kernel.errors import RemudaError
from tests.kit.asgi.client import Client
from tests.kit.http_server import Serving, body_of, request, serving, status_of, until
from tests.kit.sample_api.browser import HTML, opened
from tests.kit.sample_api.pipeline import HORSES, running
from tests.kit.sample_kinds import horse

KIB = 1024
PART = 48 * KIB
SHARES = 512 * KIB


def taken(shares: BufferShares, holder: str, *, part: int = 10) -> int:
    """Take parts for a holder until they are rejected, and return their sum."""
    found = 0
    while True:
        try:
            shares.take([holder], part)
        except RemudaError:
            return found
        found += part


def test_m27_one_holder_has_half_and_each_further_one_as_much_as_is_left_free() -> None:
    shares = BufferShares(1200)
    assert [taken(shares, name) for name in ("a", "b", "c")] == [600, 300, 150]
    assert taken(shares, "a") == 0
    for _ in range(60):
        shares.release(["a"], 10)
    assert (taken(shares, "b"), taken(shares, "d")) == (220, 260), "what is free again is for others, too"
    assert shares.total == 300 + 150 + 220 + 260


def test_m27_a_request_counts_for_its_caller_and_its_address() -> None:
    shares = BufferShares(1000)
    for number in range(5):
        shares.take(["caller", f"address {number}"], 100)
    with pytest.raises(TooMuchBuffered):
        shares.take(["caller", "another address"], 100)
    shares.take(["another caller", "another address"], 100)


def test_without_free_memory_a_new_holder_is_told_that_it_is_not_its_fault() -> None:
    shares = BufferShares(100)
    assert taken(shares, "a") == 50
    with pytest.raises(NoFreeBuffer) as rejected:
        shares.take(["b"], 30)
    assert (rejected.value.status, rejected.value.retry_after_s) == (503, 5)
    shares.take([], 50)
    with pytest.raises(NoFreeBuffer):
        shares.take([], 1)


def at(client: Client, address: str) -> Client:
    """Return a client with the same token at another address."""
    return Client(app=client.app, token=client.token, peer=(address, 1))


class Exchange:
    """A request whose body does not end, or whose response is not read."""

    def __init__(self, body: bytes = b"") -> None:
        self.status = 0
        self.waits = asyncio.Event()
        self._body = body

    async def receive(self) -> Message:
        if self._body:
            body, self._body = self._body, b""
            return {"type": "http.request", "body": body, "more_body": True}
        self.waits.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif self.status == 200:
            self.waits.set()
            await asyncio.Event().wait()


@asynccontextmanager
async def open_exchanges(
    client: Client, method: str, path: str, count: int, body: bytes = b""
) -> AsyncIterator[list[int]]:
    """Send requests that stay open; yield the statuses of those that do not."""
    exchanges = [Exchange(body) for _ in range(count)]
    headers = {"content-type": "application/x-www-form-urlencoded"} if client.token is None else {}
    scopes = [client._scope(method, path, (), body or None, headers) for _ in exchanges]
    tasks: list[asyncio.Future[None]] = [
        asyncio.ensure_future(client.app(scope, each.receive, each.send))
        for scope, each in zip(scopes, exchanges, strict=True)
    ]
    try:
        for each, task in zip(exchanges, tasks, strict=True):
            waiting = asyncio.ensure_future(each.waits.wait())
            ends: list[asyncio.Future[Any]] = [waiting, task]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
        yield [each.status for each in exchanges if not each.waits.is_set()]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_m27_bodies_of_one_address_that_do_not_end_keep_no_other_address_out(tmp_path: Path) -> None:
    shares = BufferShares(SHARES)
    async with opened(tmp_path, buffers=shares) as tack:
        client = tack.client
        async with open_exchanges(client, "POST", "/login", 20, b"user=" + b"x" * PART) as rejected:
            assert rejected == [429] * 15
            assert shares.total <= SHARES / 2
            form = {"user": "anna", "password": "x" * 5 * KIB}
            assert (await client.post("/login", form=form)).status == 200
            for address in ("192.0.2.1", "192.0.2.2"):
                other = at(client, address)
                assert (await other.post("/login", form=form)).status == 200
        assert shares.total == 0


async def test_m27_bodies_of_one_caller_that_do_not_end_keep_no_other_caller_out(tmp_path: Path) -> None:
    shares = BufferShares(SHARES)
    async with running(tmp_path, buffers=shares) as api, AsyncExitStack() as stack:
        api.tokens.known["weak"] = replace(api.tokens.known["good"], subject="bert@example.com")
        rejected = []
        for number in range(20):
            client = at(api.client, f"192.0.2.{number}")
            rejected += await stack.enter_async_context(open_exchanges(client, "POST", HORSES, 1, bytes(PART)))
        assert rejected == [429] * 15
        large = b'{"metadata":{"name":"bella"},"spec":{"age":7}%b}' % (b" " * PART)
        mine = await api.client.post(HORSES, large)
        assert (mine.status, mine.json["code"], mine.headers["retry-after"]) == (429, "too_many", "5")
        assert "share of the server's memory" in mine.json["error_description"]
        assert (await api.client.having("weak").post(HORSES, large)).status == 201
        await stack.aclose()
        assert shares.total == 0
        assert (await api.client.post(HORSES, large)).status == 201


async def test_m27_responses_that_are_not_read_keep_no_other_caller_out(tmp_path: Path) -> None:
    shares = BufferShares(SHARES)
    async with opened(tmp_path, buffers=shares) as tack:
        tack.service.reply = lambda: HtmlPage(HTML + "x" * PART)
        async with open_exchanges(tack.client, "GET", "/login", 20) as rejected:
            assert rejected == [429] * 15
            mine = await tack.client.get("/login", accept="application/json")
            assert (mine.status, mine.json["code"], mine.headers["retry-after"]) == (429, "too_many", "5")
            assert (await at(tack.client, "192.0.2.1").get("/login")).status == 200
        assert shares.total == 0
        assert (await tack.client.get("/login")).status == 200


async def test_m27_lists_in_parts_that_are_not_read_count_for_their_caller(tmp_path: Path) -> None:
    shares = BufferShares(SHARES)
    async with running(tmp_path, buffers=shares) as api:
        for number in range(1_001):
            await api.store.create(horse(f"h-{number:05}"))
        async with open_exchanges(api.client, "GET", "/api/v1/all", 6) as rejected:
            assert rejected == [429] * 2
        assert shares.total == 0


async def test_m27_a_public_route_takes_short_bodies_only(tmp_path: Path) -> None:
    async with opened(tmp_path) as tack:
        for length, status in ((63 * KIB, 200), (64 * KIB, 413)):
            assert (await tack.client.post("/login", form={"user": "anna", "password": "x" * length})).status == status


LARGE_HEAD = b"GET / HTTP/1.1\r\nHost: here\r\n" + b"X-Header: " + b"x" * PART
FORM_HEAD = request("/wait", *[f"x{number}:" for number in range(90)])


@asynccontextmanager
async def sent(
    one: Serving, count: int, data: bytes, host: str = "127.0.0.1"
) -> AsyncIterator[list[asyncio.StreamReader]]:
    async with AsyncExitStack() as stack:
        readers = []
        for _ in range(count):
            reader, writer = await asyncio.open_connection(one.address.host, one.address.port, local_addr=(host, 0))
            stack.callback(writer.close)
            writer.write(data)
            readers.append(reader)
        yield readers


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(LARGE_HEAD, id="incomplete"),
        pytest.param(request("/wait", f"X-Header: {'x' * PART}"), id="in progress"),
        pytest.param(request("/wait") + request("/", f"X-Header: {'x' * PART}"), id="pipelined"),
        pytest.param(request("/wait") + 2 * FORM_HEAD, id="many headers"),
        pytest.param(request("/wait") + LARGE_HEAD, id="incomplete behind another"),
    ],
)
async def test_m27_heads_of_one_address_are_held_within_its_share(data: bytes) -> None:
    shares = BufferShares(SHARES)
    async with serving(ConnectionLimits(pipelined=16), buffers=shares) as one:
        async with sent(one, 30, data) as readers:
            await until(lambda: one.cuts["buffers"] >= 10)
            assert shares.total <= SHARES / 2
            answers = [reader for reader in readers if reader.at_eof() or reader._buffer]  # type: ignore[attr-defined]
            for reader in answers:
                answer = await reader.read()
                assert (status_of(answer), body_of(answer)["code"]) == (429, "too_many")
            async with sent(one, 1, request("/", f"X-Header: {'x' * PART}", "Connection: close"), "127.0.0.2") as (
                other,
            ):
                assert status_of(await other.read()) == 200
        one.app.may_answer.set()
        await until(lambda: not one.server.connections)
        assert shares.total == 0


async def test_m27_an_idle_connection_keeps_nothing_of_its_last_request() -> None:
    clients = 40
    large = request("/", f"X-Header: {'x' * PART}", f"Content-Length: {PART}", method="POST") + bytes(PART)
    async with serving() as one, sent(one, 1, request("/")) as (first,):
        await first.readuntil(b"hello")
        tracemalloc.start()
        try:
            async with sent(one, clients, large) as readers:
                for reader in readers:
                    await reader.readuntil(b"hello")
                await until(lambda: one.server.connections == clients + 1)
                gc.collect()
                held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert held < clients * PART / 2, "each has sent two of these"


async def test_heads_count_no_more_when_their_responses_are_complete_and_those_of_a_proxy_have_no_share() -> None:
    shares = BufferShares(SHARES)
    large = request("/", f"X-Header: {'x' * PART}")
    async with serving(buffers=shares) as one, sent(one, 1, large) as (reader,):
        await reader.readuntil(b"hello")
        assert shares.total == 0
    proxied = ConnectionLimits(forwarding=ForwardingProxies(["127.0.0.1/32"]))
    async with serving(proxied, buffers=shares) as one, sent(one, 8, LARGE_HEAD):
        await until(lambda: shares.total > SHARES * 0.7)
        assert not one.cuts
