"""The client against servers that fail in every way, and what their words become."""

import asyncio
import subprocess
import sys
from contextlib import aclosing
from dataclasses import replace

import msgspec
import pytest

from remuda.access.principal import Principal
from remuda.http.authentication import read_claim_of_bearer, read_credentials
from remuda.http.remote_errors import error_from
from remuda.http.transport import ClientSettings, ServiceCredentials
from remuda.kernel import errors
from remuda.kernel.errors import (
    Conflict,
    Gone,
    Malformed,
    NotFound,
    OutcomeUnknown,
    RemudaError,
    ServerUnreachable,
    TooMany,
    Unavailable,
)
from tests.kit.certificates import authority, certificate_proxies
from tests.kit.clocks import HandClock
from tests.kit.sample_api.client import BAY, CONTEXT, client_of
from tests.kit.sample_api.service import CREATE, GET, LIST, HorsePath
from tests.kit.scripted_transport import Scripted, answering


def response(status: int, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


CUT = b"HTTP/1.1 201 X\r\nContent-Length: 100\r\n\r\n{"
MADE = response(201, b'{"id":"h","colour":"bay"}')
FOUND = response(200, b'{"id":"h","colour":"bay"}')


async def test_a_write_whose_answer_is_lost_again_and_again_has_an_unknown_outcome() -> None:
    async with Scripted(answering(CUT)) as url, client_of(url) as client:
        with pytest.raises(OutcomeUnknown, match="create_horse"):
            await client.send(CREATE, body=BAY)
        with pytest.raises(ServerUnreachable):
            await client.send(GET, path=HorsePath(horse="h"))


async def test_a_lost_answer_is_asked_for_again() -> None:
    async with Scripted(answering(CUT, b"", MADE)) as url, client_of(url) as client:
        assert (await client.send(CREATE, body=BAY)).id == "h"
    async with Scripted(answering(CUT, FOUND)) as url, client_of(url) as client:
        assert (await client.send(GET, path=HorsePath(horse="h"))).id == "h"


async def test_a_public_write_has_no_key_so_it_is_not_sent_again_if_it_may_have_been_done() -> None:
    asked: list[int] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        asked.append(number)
        await answering(CUT)(reader, writer, number)

    async with Scripted(script) as url, client_of(url) as client:
        with pytest.raises(OutcomeUnknown):
            await client.send(replace(CREATE, scope="public"), body=BAY)
    assert asked == [0]


async def test_a_server_that_is_not_there_has_done_nothing() -> None:
    async with Scripted(answering(MADE)) as url:
        pass
    async with client_of(url) as client:
        with pytest.raises(ServerUnreachable):
            await client.send(CREATE, body=BAY)


async def test_a_server_that_goes_after_an_answer_was_lost_leaves_the_outcome_unknown() -> None:
    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _number: int) -> None:
        server.leave()
        writer.write(CUT)
        await writer.drain()

    server = Scripted(script)
    async with server as url, client_of(url) as client:
        with pytest.raises(OutcomeUnknown):
            await client.send(CREATE, body=BAY)


async def test_the_pause_that_a_server_asks_for_is_kept() -> None:
    body = b'{"error":"too_many_requests","error_description":"slower","trace_id":"0","code":"too_many"}'
    times: list[float] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        times.append(asyncio.get_running_loop().time())
        await answering(response(429, body, "Retry-After: 1"), MADE)(reader, writer, number)

    async with Scripted(script) as url, client_of(url) as client:
        assert (await client.send(CREATE, body=BAY)).id == "h"
    assert times[1] - times[0] >= 1
    impatient = ClientSettings(total_s=60)
    slow = Scripted(answering(response(429, body, "Retry-After: 90")))
    async with slow as url, client_of(url, settings=impatient) as client:
        with pytest.raises(TooMany, match="slower") as told:
            await client.send(CREATE, body=BAY)
        assert told.value.retry_after_s == 90


async def test_a_request_has_a_deadline_for_all_its_attempts() -> None:
    async def silence(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter, _number: int) -> None:
        await reader.read()

    async with Scripted(silence) as url, client_of(url, settings=ClientSettings(total_s=0.2)) as client:
        with pytest.raises(OutcomeUnknown):
            await client.send(CREATE, body=BAY)
        with pytest.raises(Unavailable):
            await client.send(GET, path=HorsePath(horse="h"))


@pytest.mark.parametrize(
    "answer",
    [
        response(200, b"<html>"),
        response(200, b'{"id":7}'),
        response(200, b"\xff"),
        response(500, b"<html>"),
        response(404, b'{"detail":"x"}'),
        response(302, b"", "Location: http://elsewhere/"),
        b"SSH-2.0-OpenSSH\r\n\r\n",
    ],
)
async def test_words_that_are_not_ours_are_a_server_that_cannot_be_reached(answer: bytes) -> None:
    async with Scripted(answering(answer)) as url, client_of(url) as client:
        with pytest.raises(ServerUnreachable):
            await client.send(GET, path=HorsePath(horse="h"))


async def test_a_watch_that_is_cut_off_before_it_is_synced_has_to_restart() -> None:
    head = b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    item = b'event: added\ndata: {"id":"h","colour":"bay"}\n\n'
    server = Scripted(answering(b"", head, head + item, head + item))
    async with server as url, client_of(url) as client, aclosing(client.watch(LIST)) as watch:
        assert (await anext(watch)).type == "added"
        with pytest.raises(Gone):
            await anext(watch)


async def test_an_item_that_cannot_be_read_ends_a_watch() -> None:
    head = b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\n\r\n"
    server = Scripted(answering(head + b"event: added\nid: 4\ndata: {}\n\n"))
    async with server as url, client_of(url) as client, aclosing(client.watch(LIST)) as watch:
        with pytest.raises(ServerUnreachable, match="does not match the route"):
            await anext(watch)


@pytest.mark.parametrize("name", sorted({each.__name__ for each in errors.ERRORS} - {"RemudaError"}))
def test_each_error_survives_the_journey(name: str) -> None:
    kind: type[RemudaError] = getattr(errors, name)
    body = msgspec.json.encode({"error": "x", "error_description": "What. Why.", "trace_id": "0", "code": kind.code})
    back = error_from(kind.status, {}, body, server="s")
    assert type(back) is kind
    assert (str(back), back.message) == ("What. Why.", "What. Why.")


@pytest.mark.parametrize(
    ("status", "kind"), [(400, Malformed), (404, NotFound), (409, Conflict), (418, Unavailable), (500, Unavailable)]
)
def test_an_unknown_code_is_told_by_its_status(status: int, kind: type[RemudaError]) -> None:
    body = b'{"error":"x","error_description":"Something.","trace_id":"0"}'
    assert type(error_from(status, {}, body, server="s")) is kind


def test_a_service_says_for_whom_it_acts_in_words_that_the_server_reads() -> None:
    certificate = authority().issue("compute").pem.replace("\n", " ").encode()
    proxies, clock = certificate_proxies("10.0.0.0/8"), HandClock()
    service = ServiceCredentials("compute")
    itself = Principal(subject="compute", type="system")
    impersonating = msgspec.structs.replace(CONTEXT, principal=itself, impersonated=CONTEXT.principal)
    for context in (CONTEXT, impersonating):
        told = [(name.lower().encode(), value.encode()) for name, value in service.headers(context).items()]
        sent = [*told, (b"ssl-client-cert", certificate), (b"ssl-client-verify", b"SUCCESS")]
        read = read_credentials(dict(sent), all_headers=sent, peer="10.0.0.1", proxies=proxies, clock=clock)
        assert read.claim is not None
        assert (read.claim.actor, read.claim.type, read.claim.organization) == ("anna", "user", "o-1")
        assert (read.claim.project, read.claim.organizations) == ("p-1", ("o-1", "o-2"))
        assert (read.claim.issuer, read.claim.member_of_only) == ("", None)
        assert read.impersonate == (context is impersonating)
    vouched = msgspec.structs.replace(CONTEXT.principal, issuer="https://login.example", member_of_only="o-1")
    headers = ServiceCredentials("compute").headers(msgspec.structs.replace(CONTEXT, principal=vouched))
    claim = read_claim_of_bearer(headers["X-Principal"].encode())
    assert claim is not None
    assert (claim.issuer, claim.member_of_only) == ("https://login.example", "o-1")
    assert "X-Impersonate" not in ServiceCredentials("compute").headers(None)
    assert ServiceCredentials("compute").headers(None)["X-Principal"]


@pytest.mark.parametrize("asked", ["9" * 5_000, "-1", "soon", "\uff11"])
def test_a_pause_that_makes_no_sense_is_not_kept(asked: str) -> None:
    body = b'{"error":"too_many_requests","error_description":"slow down"}'
    assert not hasattr(error_from(429, {"retry-after": asked}, body, server="s"), "retry_after_s")


def test_a_first_client_imports_nothing_any_more() -> None:
    code = """
import asyncio, sys
from remuda.kernel.errors import ServerUnreachable
from tests.kit.certificates import authority, certificate_proxies
from tests.kit.clocks import HandClock
from tests.kit.sample_api.client import client_of
from tests.kit.sample_api.service import GET, HorsePath

async def main():
    before = set(sys.modules)
    async with client_of("http://127.0.0.1:9") as client:
        try:
            await client.send(GET, path=HorsePath(horse="x"))
        except ServerUnreachable:
            print(sorted(set(sys.modules) - before))

asyncio.run(main())
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"
