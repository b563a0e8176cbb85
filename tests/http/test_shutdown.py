"""How a server ends, and where it may begin."""

import asyncio
import json

import pytest

from remuda.http.server.server import CannotListen, ListenAddress
from remuda.kernel.errors import Invalid
from tests.kit.http_server import Serving, body_of, request, serving, status_of


async def stopping(one: Serving) -> asyncio.Task[None]:
    task = asyncio.create_task(one.server.stop())
    await one.server.closing.wait()
    return task


async def test_stopping_finishes_what_is_in_flight_and_takes_nothing_new() -> None:
    async with serving() as one:
        _idle_reader, idle = await one.dial()
        asking = asyncio.create_task(one.exchange(request("/wait")))
        await one.app.asked.wait()
        stop = await stopping(one)
        with pytest.raises(ConnectionError):
            await one.dial()
        assert not stop.done()
        one.app.may_answer.set()
        answer = await asking
        await stop
        assert answer.endswith(b"at last")
        assert b"connection: close" in answer
        assert not one.server.connections
        idle.close()


async def test_stopping_tells_streams_to_end_and_lets_them_say_so() -> None:
    async with serving() as one:
        reader, writer = await one.dial()
        writer.write(request("/quiet"))
        await reader.readuntil(b"hello")
        await one.server.stop()
        assert (await reader.read()).endswith(b"3\r\nbye\r\n0\r\n\r\n")
        assert "aborted" not in json.loads(one.lines.lines[0])
        writer.close()


async def test_what_is_not_done_after_the_grace_period_is_answered_503() -> None:
    async with serving(grace_s=0.1) as one:
        asking = asyncio.create_task(one.exchange(request("/wait")))
        await one.app.asked.wait()
        await one.server.stop()
        answer = await asking
        assert status_of(answer) == 503
        assert body_of(answer)["code"] == "unavailable"


async def test_who_is_in_a_hurry_waits_for_no_grace_period() -> None:
    async with serving(grace_s=3600) as one:
        asking = asyncio.create_task(one.exchange(request("/wait")))
        await one.app.asked.wait()
        stop = await stopping(one)
        one.server.hurry()
        await stop
        assert status_of(await asking) == 503


async def test_a_port_that_is_taken_is_one_clear_sentence() -> None:
    async with serving() as one, serving() as other:
        await other.server.stop()
        with pytest.raises(
            CannotListen, match=r"^The address 127\.0\.0\.1:\d+ is taken by another process: stop .*\.$"
        ):
            await other.server.start(one.address)


async def test_a_host_that_is_not_here_is_one_clear_sentence() -> None:
    async with serving() as one:
        with pytest.raises(CannotListen, match=r"^The address 192\.0\.2\.1:0 is not an address of this machine: .*\.$"):
            await one.server.start(ListenAddress("192.0.2.1", 0))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:80", ListenAddress("127.0.0.1", 80)),
        ("[::1]:0", ListenAddress("::1", 0)),
        ("there:65535", ListenAddress("there", 65535)),
    ],
)
def test_an_address_is_read_and_written_the_same(text: str, address: ListenAddress) -> None:
    assert ListenAddress.parse(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    "text",
    ["", "8080", ":8080", "here", "here:", "here:http", "here:65536", "here:-1", "::1:80", "a:٣", "a:" + "9" * 5_000],
)
def test_what_is_no_address_is_refused_by_the_name_of_its_option(text: str) -> None:
    with pytest.raises(Invalid, match=r"^--listen .*: .*\.$"):
        ListenAddress.parse(text)
