"""Connections of several addresses: who gets a slot, and whose idle connections make space."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from remuda.http.proxies import ForwardingProxies
from remuda.http.server.connection_slots import ConnectionSlots
from remuda.http.server.limits import ConnectionLimits
from tests.kit.http_server import Serving, body_of, request, serving, status_of, until

PROXY = ForwardingProxies(["10.9.0.0/16"])


class Idle:
    """A connection that is idle or not."""

    def __init__(self, *, is_idle: bool = True) -> None:
        self.is_idle, self.is_displaced = is_idle, False

    def displace(self) -> None:
        self.is_displaced = True


def taken(slots: ConnectionSlots, host: str, count: int, *, is_idle: bool = True) -> list[Idle]:
    """Return the connections of an address that got a slot."""
    connections = [Idle(is_idle=is_idle) for _ in range(count)]
    return [each for each in connections if slots.take(each, host) is None]


def test_m27_one_address_has_at_most_half_of_the_slots() -> None:
    slots = ConnectionSlots(200)
    assert len(taken(slots, "192.0.2.1", 300)) == 100
    reason, error = slots.take(Idle(), "192.0.2.1") or ("", None)
    assert reason == "address_connections"
    assert (error and error.status, error and error.code) == (429, "too_many")
    assert len(taken(slots, "192.0.2.2", 300)) == 100


def test_the_addresses_of_one_ipv6_network_are_one_and_an_ipv4_address_is_the_same_in_both_forms() -> None:
    slots = ConnectionSlots(4)
    assert taken(slots, "2001:db8:1:2::1", 1)
    assert taken(slots, "2001:db8:1:2:ffff::9", 1)
    assert not taken(slots, "2001:db8:1:2:3::1", 1)
    assert taken(slots, "192.0.2.1", 1)
    assert taken(slots, "::ffff:192.0.2.1", 1)
    assert not taken(slots, "192.0.2.1", 1)


def test_an_idle_connection_of_the_address_with_most_makes_space() -> None:
    slots = ConnectionSlots(10)
    most, fewer = taken(slots, "192.0.2.1", 5), taken(slots, "192.0.2.2", 4)
    other = taken(slots, "192.0.2.3", 1)
    assert len(taken(slots, "192.0.2.4", 1)) == 1
    assert [each.is_displaced for each in most] == [True, False, False, False, False]
    assert not any(each.is_displaced for each in fewer + other)
    assert len(slots) == 10


def test_addresses_converge_to_equal_shares_and_no_further() -> None:
    slots = ConnectionSlots(12)
    first, second = taken(slots, "192.0.2.1", 6), taken(slots, "192.0.2.2", 6)
    assert len(taken(slots, "192.0.2.3", 20)) == 4
    assert sum(each.is_displaced for each in first) == sum(each.is_displaced for each in second) == 2
    reason, error = slots.take(Idle(), "192.0.2.3") or ("", None)
    assert (reason, error and error.status) == ("connections", 503)


def test_a_connection_with_a_request_in_progress_is_never_displaced() -> None:
    slots = ConnectionSlots(4)
    busy = taken(slots, "192.0.2.1", 2, is_idle=False)
    taken(slots, "192.0.2.2", 2, is_idle=False)
    assert not taken(slots, "192.0.2.3", 1)
    busy[1].is_idle = True
    assert taken(slots, "192.0.2.3", 1)
    assert [each.is_displaced for each in busy] == [False, True]


def test_a_forwarding_proxy_has_no_share_and_keeps_its_connections() -> None:
    slots = ConnectionSlots(10, exempt=PROXY)
    proxied = taken(slots, "10.9.1.1", 10)
    assert len(proxied) == 10
    assert not taken(slots, "192.0.2.1", 1)
    assert not any(each.is_displaced for each in proxied)
    slots.release(proxied[0])
    assert len(taken(slots, "192.0.2.1", 2)) == 1


def test_released_slots_are_free_again() -> None:
    slots = ConnectionSlots(4)
    for _ in range(3):
        held = [*taken(slots, "192.0.2.1", 2), *taken(slots, "192.0.2.2", 2)]
        assert len(held) == len(slots) == 4
        for each in held:
            slots.release(each)
            slots.release(each)
        assert len(slots) == 0


@asynccontextmanager
async def idle(one: Serving, *hosts: str) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Open a connection from each of these addresses, and have its request responded to."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(dialled(one, host)) for host in hosts]


@asynccontextmanager
async def dialled(one: Serving, host: str, sent: bytes = request("/")) -> AsyncIterator[asyncio.StreamReader]:
    reader, writer = await asyncio.open_connection(one.address.host, one.address.port, local_addr=(host, 0))
    try:
        if sent:
            writer.write(sent)
            await reader.readuntil(b"hello")
        yield reader
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def test_m27_idle_connections_of_one_address_keep_no_other_out() -> None:
    async with (
        serving(ConnectionLimits(connections=4)) as one,
        idle(one, *["127.0.0.2"] * 2, *["127.0.0.3"] * 2) as readers,
    ):
        assert status_of(await one.get("/")) == 200
        assert one.cuts == {"displaced": 1}
        await until(lambda: sum(reader.at_eof() for reader in readers) == 1)


async def test_an_address_with_its_share_gets_429_with_the_remedy_and_a_proxy_does_not() -> None:
    async with serving(ConnectionLimits(connections=4)) as one, idle(one, "127.0.0.1", "127.0.0.1"):
        answer = await one.get("/")
        assert (status_of(answer), body_of(answer)["code"]) == (429, "too_many")
        assert b"retry-after: 5\r\n" in answer
        assert "server.forwarding_proxies" in body_of(answer)["error_description"]
        assert one.cuts == {"address_connections": 1}
    limits = ConnectionLimits(connections=4, forwarding=ForwardingProxies(["127.0.0.1/32"]))
    async with serving(limits) as one, idle(one, *["127.0.0.1"] * 3):
        assert status_of(await one.get("/")) == 200


async def test_a_flood_of_rejected_connections_takes_no_slot() -> None:
    async with serving(ConnectionLimits(connections=4)) as one, idle(one, "127.0.0.1", "127.0.0.1"):
        async with AsyncExitStack() as flood:
            for _ in range(100):
                await flood.enter_async_context(dialled(one, "127.0.0.1", b""))
            async with idle(one, "127.0.0.2", "127.0.0.2"):
                pass
        assert one.cuts["address_connections"] == 100
