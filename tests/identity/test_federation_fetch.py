"""Asking other users's servers, within limits: over real sockets."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import IPv4Address

import pytest

from remuda.identity.federation.provider_client import Fetcher, is_loopback
from remuda.kernel.errors import ServerUnreachable
from remuda.outbound.addresses import AddressPolicy, SystemResolver
from remuda.outbound.fetch import GuardedFetcher
from tests.kit.outbound_servers import HERE

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Serve one answer to everybody, and tell what was asked."""
    asked: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        try:
            await answer(writer)
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def plain(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")


def fetching(*, reach: AddressPolicy = HERE, **more: float) -> Fetcher:
    """Return a fetcher of servers on this machine, with these limits."""
    return Fetcher(GuardedFetcher(resolve=SystemResolver(), reach=reach), **more)  # type: ignore[arg-type]  # by name


async def test_an_answer_comes_back_and_nothing_compressed_is_asked_for() -> None:
    fetch = fetching()
    async with serving(plain) as (url, asked):
        fetched = await fetch("POST", f"{url}/token", {"X-One": "1"}, b"a=b", organization="")
        assert (fetched.status, fetched.body) == (200, b"{}")
        head = asked[0].lower()
        assert head.startswith(b"post /token http/1.1\r\n")
        assert b"x-one: 1\r\n" in head
        assert b"accept-encoding: identity\r\n" in head


async def test_an_organization_sends_a_few_requests_at_once_and_others_meanwhile() -> None:
    running, most, is_busy, may_answer = 0, 0, asyncio.Event(), asyncio.Event()

    async def slow(writer: asyncio.StreamWriter) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 8:
            is_busy.set()
        await may_answer.wait()
        running -= 1
        await plain(writer)

    fetch = fetching()
    async with serving(slow) as (busy, _), serving(plain) as (idle, _):
        waiting = [asyncio.create_task(fetch("GET", busy, {}, None, organization="evil")) for _ in range(20)]
        await is_busy.wait()
        assert (await fetch("GET", idle, {}, None, organization="bank")).status == 200
        may_answer.set()
        assert [each.status for each in await asyncio.gather(*waiting)] == [200] * 20
        assert most == 8


async def test_a_redirect_is_not_followed() -> None:
    async def elsewhere(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 302 Found\r\nlocation: /secret\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

    fetch = fetching()
    async with serving(elsewhere) as (url, asked):
        assert (await fetch("GET", url, {}, None, organization="")).status == 302
        assert len(asked) == 1


async def test_an_answer_without_end_is_cut_off() -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    fetch = fetching()
    async with serving(endless) as (url, _):
        with pytest.raises(ServerUnreachable, match="exceeds 262144 bytes"):
            await fetch("GET", url, {}, None, organization="")


async def test_a_server_that_trickles_does_not_hold_us_for_ever() -> None:
    async def trickle(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    fetch = fetching(time_s=0.2)
    async with serving(trickle) as (url, _):
        with pytest.raises(ServerUnreachable, match="takes too long"):
            await fetch("GET", url, {}, None, organization="")


async def test_a_server_that_is_not_there_or_speaks_nonsense_is_unreachable() -> None:
    async def nonsense(writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 smtp.example.com ESMTP\r\n")

    fetch = fetching()
    async with serving(nonsense) as (url, _):
        with pytest.raises(ServerUnreachable):
            await fetch("GET", url, {}, None, organization="")
        with pytest.raises(ServerUnreachable):
            await fetch("GET", "http://127.0.0.1:1/", {}, None, organization="")


@pytest.mark.parametrize(
    "url",
    [
        "http://idp.test/",
        "ftp://idp.test/",
        "file:///etc/passwd",
        "idp.test",
        "",
        "https://[::1",
        "https://127.0.0.1/",
        "http://127.0.0.1/",
        "http://localhost./",
        "https://LOCALHOST/",
        "https://[::1]/",
        "https://127.1.2.3/",
        "https://[::ffff:127.0.0.1]/",
        "https://0.0.0.0/",
    ],
)
async def test_without_tls_or_on_this_machine_nothing_is_asked(url: str) -> None:
    with pytest.raises(ServerUnreachable, match=r"https://|not on the public Internet|not a plain"):
        await fetching(reach=AddressPolicy())("GET", url, {}, None, organization="")


async def test_a_name_that_resolves_to_this_machine_is_not_asked() -> None:
    async def resolve(host: str, port: int) -> list[IPv4Address]:  # noqa: ARG001  of the port
        return [IPv4Address("127.0.0.1")]

    async with serving(plain) as (url, asked):
        port = url.rpartition(":")[2]
        fetch = Fetcher(GuardedFetcher(resolve=resolve))
        with pytest.raises(ServerUnreachable, match="not on the public Internet"):
            await fetch("GET", f"https://idp.example.com:{port}/keys", {}, None, organization="")
        assert not asked


def test_loopback_is_told_from_other_hosts() -> None:
    assert not any(map(is_loopback, ("", "localhost.evil.test", "128.0.0.1", "idp.test", "::2")))
