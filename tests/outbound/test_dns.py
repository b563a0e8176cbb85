"""TXT records from a real name server on loopback: what it says, what it does not, and when it says nothing."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import cast

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest

from remuda.kernel.errors import Unavailable
from remuda.outbound.addresses import read_name_server
from remuda.outbound.dns import TxtResolver

NAME = "_remuda-challenge.acme.example"
LONG = [f"{number} {'x' * 200}" for number in range(30)]
"""More than fits into a datagram."""

Zone = Mapping[str, list[str]]
Respond = Callable[[dns.message.Message], bytes | None]


def zone(records: Zone, aliases: Mapping[str, str] | None = None) -> Respond:
    """Return what a server of these records responds."""

    def respond(query: dns.message.Message) -> bytes:
        reply = dns.message.make_response(query)
        reply.flags |= dns.flags.RA
        name = query.question[0].name.to_text().rstrip(".")
        if alias := (aliases or {}).get(name):
            reply.answer.append(dns.rrset.from_text(f"{name}.", 60, "IN", "CNAME", f"{alias}."))
            name = alias
        if name not in records:
            reply.set_rcode(dns.rcode.NXDOMAIN)
        elif records[name]:
            texts = [" ".join(f'"{part}"' for part in text.split("|")) for text in records[name]]
            reply.answer.append(dns.rrset.from_text(f"{name}.", 60, "IN", "TXT", *texts))
        return reply.to_wire(max_size=65535)

    return respond


def failure(code: dns.rcode.Rcode) -> Respond:
    def respond(query: dns.message.Message) -> bytes:
        reply = dns.message.make_response(query)
        reply.set_rcode(code)
        return reply.to_wire()

    return respond


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, respond: Respond) -> None:
        self._respond = respond

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        query = dns.message.from_wire(data)
        wire = self._respond(query)
        if wire is not None and len(wire) > query.payload:
            reply = dns.message.make_response(query)
            reply.flags |= dns.flags.TC
            wire = reply.to_wire()
        if wire is not None:
            self._transport.sendto(wire, addr)


@asynccontextmanager
async def serving(respond: Respond) -> AsyncIterator[str]:
    """Run a name server, over UDP and TCP on one port, and return its address."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (size,) = struct.unpack("!H", await reader.readexactly(2))
        wire = respond(dns.message.from_wire(await reader.readexactly(size))) or b""
        writer.write(struct.pack("!H", len(wire)) + wire)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(respond), local_addr=("127.0.0.1", port))
    try:
        yield f"127.0.0.1:{port}"
    finally:
        transport.close()
        server.close()
        await server.wait_closed()


def look_up(respond: Respond, name: str = NAME, *, time_s: float = 20.0) -> list[str]:
    async def run() -> list[str]:
        async with serving(respond) as address:
            return list(await TxtResolver([address], time_s=time_s)(name, organization="acme"))

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("records", "found"),
    [
        ({NAME: ["remuda-domain-verification=1", "v=spf1 -all"]}, ["remuda-domain-verification=1", "v=spf1 -all"]),
        ({NAME: ["in two| parts"]}, ["in two parts"]),
        ({NAME: []}, []),
        ({}, []),
    ],
    ids=["two records", "one in two parts", "no TXT record", "no such name"],
)
def test_m27_texts_are_those_that_the_name_server_has(records: Zone, found: list[str]) -> None:
    assert sorted(look_up(zone(records))) == sorted(found)


def test_an_alias_leads_to_the_texts_of_another_name() -> None:
    assert look_up(zone({"verify.host.example": ["here"]}, {NAME: "verify.host.example"})) == ["here"]


def test_what_does_not_fit_into_a_datagram_is_read_over_tcp() -> None:
    assert sorted(look_up(zone({NAME: LONG}))) == sorted(LONG)


@pytest.mark.parametrize("name", [f"_remuda-challenge.{'a.' * 125}example", f"{'a' * 64}.example", "a..example"])
def test_a_name_that_cannot_exist_has_no_texts(name: str) -> None:
    assert look_up(zone({}), name) == []


@pytest.mark.parametrize(
    "respond",
    [failure(dns.rcode.SERVFAIL), failure(dns.rcode.NOTAUTH), lambda _query: None],
    ids=["failure", "rejection", "silence"],
)
def test_a_server_that_does_not_know_is_not_taken_for_absence(respond: Respond) -> None:
    with pytest.raises(Unavailable):
        look_up(respond, time_s=0.3)


def test_a_server_that_is_not_there_is_not_taken_for_absence() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

    async def run() -> None:
        with pytest.raises(Unavailable):
            await TxtResolver([f"127.0.0.1:{port}"], time_s=0.3)(NAME, organization="acme")

    asyncio.run(run())


def test_m27_silent_domains_of_one_organization_leave_the_lookups_of_others_served() -> None:
    asked, answer, is_asked = set[str](), zone({NAME: ["here"]}), asyncio.Event()

    def respond(query: dns.message.Message) -> bytes | None:
        name = query.question[0].name.to_text()
        if not name.endswith("evil.example."):
            return answer(query)
        asked.add(name)
        is_asked.set()
        return None

    async def run() -> None:
        async with serving(respond) as address:
            resolver = TxtResolver([address], time_s=20.0)
            names = [f"{number}.evil.example" for number in range(40)]
            silent = [asyncio.create_task(resolver(name, organization="evil")) for name in names]
            await is_asked.wait()
            assert await resolver(NAME, organization="acme") == ["here"]
            assert len(asked) <= 2
            for each in silent:
                each.cancel()
            await asyncio.wait(silent)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("9.9.9.9", ("9.9.9.9", 53)),
        ("127.0.0.1:5353", ("127.0.0.1", 5353)),
        ("2620:fe::9", ("2620:fe::9", 53)),
        ("[::1]:5353", ("::1", 5353)),
        ("[::1]", ("::1", 53)),
    ],
)
def test_a_name_server_is_an_address_with_or_without_a_port(text: str, read: tuple[str, int]) -> None:
    assert read_name_server(text) == read


@pytest.mark.parametrize("text", ["", "dns.example.com", "9.9.9.9:0", "9.9.9.9:65536", "9.9.9.9:x", "9.9.9.9/32"])
def test_a_name_server_that_is_no_address_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"address|port"):
        read_name_server(text)
