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

from remuda.access.principal import Principal
from remuda.http.asgi import Message
from remuda.http.buffer_shares import Buffered, BufferShares, NoFreeBuffer, TooMuchBuffered
from remuda.http.proxies import ForwardingProxies
from remuda.http.responses import HtmlPage
from remuda.http.server.limits import ConnectionLimits
from remuda.http.shares import Holder, NoneFree, OverShare, Shares, holders_at
from tests.kit.asgi.client import Client
from tests.kit.http_server import Serving, body_of, request, serving, status_of, until
from tests.kit.sample_api.browser import HTML, opened
from tests.kit.sample_api.collections import ANNA
from tests.kit.sample_api.pipeline import HORSES, running
from tests.kit.sample_kinds import horse

KIB = 1024
PART = 48 * KIB
SHARES = 4096 * KIB
OF_ONE_ADDRESS = SHARES / 16
"""Its share of what is for requests without verified credentials."""


def stranger(number: int) -> tuple[Holder, ...]:
    return holders_at(f"192.0.2.{number}")


def taken(shares: Shares, holders: tuple[Holder, ...], *, part: int = 10) -> int:
    """Take parts for holders until they are rejected, and return their sum."""
    found = 0
    while True:
        try:
            shares.take(holders, part)
        except (OverShare, NoneFree):
            return found
        found += part


def test_m27_sites_cannot_take_all_one_after_the_other_and_each_further_one_gets_what_is_reserved_for_it() -> None:
    shares = Shares(1600, least=20)
    assert [taken(shares, stranger(number)) for number in range(24)] == [400] * 3 + [20] * 20 + [0]
    shares.release(stranger(0), 400)
    assert taken(shares, stranger(24)) == 20, "the reserve is used, so more than that is not free"
    shares.release(stranger(1), 400)
    assert taken(shares, stranger(25)) == 380


def test_m27_networks_of_one_ipv6_site_have_the_share_of_the_site() -> None:
    shares = Shares(1600, least=10)
    networks = [holders_at(f"2001:db8:1:{number:x}::1") for number in range(12)]
    assert [taken(shares, each) for each in networks] == [200, 200] + [0] * 10
    assert taken(shares, holders_at("2001:db8:2::1")) == 200


def test_m27_callers_of_one_organization_have_its_share_from_any_number_of_sites() -> None:
    shares = Shares(1600, least=10)

    def caller(number: int, organization: str) -> tuple[Holder, ...]:
        principal = Principal(subject=f"bot-{number}", type="user", organizations=(organization,))
        return shares.holders(principal, f"192.0.2.{number}")

    assert [taken(shares, caller(number, "a")) for number in range(8)] == [200, 200] + [0] * 6
    others = [taken(shares, caller(number, f"b{number}")) for number in range(8, 16)]
    assert others == [200] * 4 + [10] * 4, "what is reserved is for organizations that have nothing"
    assert taken(shares, caller(0, "c")) == 10, "also at an address whose share is used"


def test_m27_a_member_of_a_second_organization_does_not_depend_on_what_the_others_there_hold() -> None:
    shares = Shares(1600, least=10)
    bot, anna = (Principal(subject=name, type="user", organizations=("a",)) for name in ("bot", "anna"))
    shares.take(shares.holders(bot, "192.0.2.1"), 200)
    both = replace(anna, organizations=("a", "b"))
    assert shares.holders(both, "192.0.2.2")[0] == Holder("organization", "b")
    system = replace(bot, type="system")
    assert shares.used(shares.holders(system, "192.0.2.1")[0]) == 0


def test_m27_strangers_have_a_quarter_of_the_memory_and_callers_the_rest() -> None:
    shares = BufferShares(6400)
    for number in range(200):
        taken(shares.anonymous, stranger(number))
    assert shares.anonymous.total == shares.total == 1600
    anna = shares.callers.holders(ANNA, "192.0.2.1")
    assert taken(shares.callers, anna) == 600
    with pytest.raises(TooMuchBuffered):
        Buffered(shares.callers, anna).add(10)


def test_without_free_memory_a_new_holder_is_told_that_it_is_not_its_fault() -> None:
    shares = BufferShares(6400)
    Buffered(shares.anonymous, ()).add(1200)
    with pytest.raises(NoFreeBuffer):
        Buffered(shares.anonymous, ()).add(1)
    with pytest.raises(NoFreeBuffer) as rejected:
        Buffered(shares.anonymous, stranger(1)).add(200)
    assert (rejected.value.status, rejected.value.retry_after_s) == (503, 5)
    Buffered(shares.anonymous, stranger(1)).add(100)


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
            assert shares.total <= OF_ONE_ADDRESS
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
        assert rejected == [429] * 12
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
        async with open_exchanges(api.client, "GET", "/api/v1/all", 8) as rejected:
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
            assert shares.total <= OF_ONE_ADDRESS
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
        await until(lambda: shares.total > OF_ONE_ADDRESS)
        assert not one.cuts
