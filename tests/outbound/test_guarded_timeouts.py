"""Fetching from servers that are slow, endless, or speak nonsense: over real sockets."""

import asyncio

import pytest

from remuda.outbound.fetch import FetchFailed, FetchTimeouts, GuardedFetcher, OpenResponse
from tests.kit.clocks import skip
from tests.kit.outbound_servers import HERE, Answer, Names, Served, rejection_of, serving

NO_NAMES = Names({})


async def silent(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(10_000)
    writer.write(b"never")


async def stalling(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbegun")
    await writer.drain()
    await asyncio.sleep(10_000)


async def trickling(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


async def until_asked(served: Served, times: int) -> None:
    while len(served.asked) < times:  # noqa: ASYNC110  the server has no event for it
        await asyncio.sleep(0.01)


async def read_all(opened: OpenResponse) -> None:
    while await opened.read():
        pass


async def test_a_server_that_says_nothing_is_left() -> None:
    async with serving(silent) as served:
        guarded = GuardedFetcher(resolve=NO_NAMES, reach=HERE, timeouts=FetchTimeouts(stall_s=10))
        fetching = asyncio.create_task(rejection_of(guarded, served.url(), total_s=1000))
        await until_asked(served, 1)
        skip(10)
        assert await fetching == ("it does not respond correctly", True)
        guarded = GuardedFetcher(resolve=NO_NAMES, reach=HERE, timeouts=FetchTimeouts(stall_s=1000))
        fetching = asyncio.create_task(rejection_of(guarded, served.url(), total_s=10))
        await until_asked(served, 2)
        skip(10)
        assert await fetching == ("it does not respond in time", True)


@pytest.mark.parametrize(
    ("answer", "limits"),
    [
        (stalling, {"stall_s": 10, "total_s": 1000}),
        (stalling, {"stall_s": 1000, "total_s": 10}),
        (trickling, {"stall_s": 1000, "total_s": 10}),
    ],
    ids=["it stalls", "it stalls until the end", "it never ends"],
)
async def test_a_server_that_stops_or_never_ends_is_left(answer: Answer, limits: dict[str, float]) -> None:
    timeouts = FetchTimeouts(stall_s=limits["stall_s"])
    async with serving(answer) as served:
        guarded = GuardedFetcher(resolve=NO_NAMES, reach=HERE, timeouts=timeouts)
        async with guarded.open(served.url(), {}, total_s=limits["total_s"]) as opened:
            assert await opened.read()
            asyncio.get_running_loop().call_soon(skip, 10)  # when the next part is being waited for
            with pytest.raises(FetchFailed) as left:
                await read_all(opened)
        assert (left.value.reason, left.value.is_temporary) == ("its response stalls or takes too long", True)


async def test_a_resolver_that_hangs_is_left() -> None:
    async def hanging(host: str, port: int) -> list[object]:
        skip(10)
        await asyncio.Event().wait()
        return [host, port]

    guarded = GuardedFetcher(resolve=hanging, reach=HERE)  # type: ignore[arg-type]  # it never gets to answering
    assert await rejection_of(guarded, "http://images.example/", total_s=10) == ("it does not respond in time", True)


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
