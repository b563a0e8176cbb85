"""Fetching from servers that are slow, endless, or speak nonsense: over real sockets."""

import asyncio
from dataclasses import replace

import pytest

from remuda.outbound.fetch import FetchTimeouts, GuardedFetcher
from tests.kit.outbound_servers import HERE, Names, rejection_of, serving

NO_NAMES = Names({})


async def silent(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)
    writer.write(b"never")


async def stalling(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbegun")
    await writer.drain()
    await asyncio.sleep(60)


async def trickling(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


async def test_a_server_that_says_nothing_is_left() -> None:
    patient = FetchTimeouts(connect_s=5, stall_s=0.1)
    async with serving(silent) as served:
        guarded = GuardedFetcher(resolve=NO_NAMES, reach=HERE, timeouts=patient)
        assert await rejection_of(guarded, served.url()) == ("it does not respond correctly", True)
        guarded = GuardedFetcher(resolve=NO_NAMES, reach=HERE, timeouts=replace(patient, stall_s=60))
        assert await rejection_of(guarded, served.url(), total_s=0.1) == ("it does not respond in time", True)


async def test_a_server_that_stops_or_never_ends_is_left() -> None:
    slow = ("its response stalls or takes too long", True)
    async with serving(stalling) as stopped, serving(trickling) as endless:
        hasty = GuardedFetcher(resolve=NO_NAMES, reach=HERE, timeouts=FetchTimeouts(stall_s=0.1))
        assert await rejection_of(hasty, stopped.url()) == slow
        guarded = GuardedFetcher(resolve=NO_NAMES, reach=HERE)
        assert await rejection_of(guarded, stopped.url(), total_s=0.2) == slow
        assert await rejection_of(guarded, endless.url(), total_s=0.2) == slow


async def test_a_resolver_that_hangs_is_left() -> None:
    async def hanging(host: str, port: int) -> list[object]:
        await asyncio.sleep(60)
        return [host, port]

    guarded = GuardedFetcher(resolve=hanging, reach=HERE)  # type: ignore[arg-type]  # it never gets to answering
    assert await rejection_of(guarded, "http://images.example/", total_s=0.1) == ("it does not respond in time", True)


@pytest.mark.parametrize(
    "said",
    [
        *(
            b"",
            b"220 smtp.example.com ESMTP\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n",
            b"HTTP/9.9 x\r\n\r\n",
        ),
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: " + b"9" * 5000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100_000 + b"\r\n",
        b"HTTP/1.1 302 Found\r\nlocation: \xff\xfe://\r\n\r\n",
    ],
)
async def test_a_server_that_speaks_nonsense_is_left(said: bytes) -> None:
    async def nonsense(writer: asyncio.StreamWriter) -> None:
        writer.write(said)

    async with serving(nonsense) as served:
        reason, _ = await rejection_of(GuardedFetcher(resolve=NO_NAMES, reach=HERE), served.url())
        assert "127.0.0.1" not in reason


@pytest.mark.parametrize("rest", [b"content-length: 100\r\n\r\nshort", b"transfer-encoding: chunked\r\n\r\nzz\r\n"])
async def test_an_answer_that_is_not_as_long_as_it_says_breaks_off(rest: bytes) -> None:
    async def lying(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + rest)

    async with serving(lying) as served:
        guarded = GuardedFetcher(resolve=NO_NAMES, reach=HERE)
        assert await rejection_of(guarded, served.url()) == ("its response breaks off", True)


async def test_whoever_reads_may_stop_and_may_fail() -> None:
    async with serving(trickling) as served:
        guarded = GuardedFetcher(resolve=NO_NAMES, reach=HERE)
        async with guarded.open(served.url(), {}, total_s=20) as answer:
            assert await answer.read()
        with pytest.raises(ZeroDivisionError):
            async with guarded.open(served.url(), {}, total_s=20) as answer:
                raise ZeroDivisionError
