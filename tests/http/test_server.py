import asyncio
import contextlib
import json
import socket

import pytest
from structlog.testing import capture_logs

from remuda.http.proxies import ForwardingProxies
from remuda.http.server.limits import ConnectionLimits
from tests.kit.http_server import body_of, request, serving, status_of, until

SOON = ConnectionLimits(head_s=0.5, body_stall_s=0.5, read_stall_s=0.5, idle_s=0.5, linger_s=0.5)


async def test_a_request_is_answered_with_a_date_and_without_the_servers_name() -> None:
    async with serving() as one:
        head, _, body = (await one.get("/")).partition(b"\r\n\r\n")
    assert status_of(head) == 200
    assert body == b"hello"
    names = [line.partition(b":")[0] for line in head.split(b"\r\n")[1:]]
    assert b"date" in names
    assert b"server" not in names


async def test_a_head_that_does_not_end_in_time_is_answered_408_and_closed() -> None:
    async with serving(SOON) as one:
        answer = await one.exchange(b"GET / HTTP/1.1\r\nHost: he")
        assert status_of(answer) == 408
        assert body_of(answer)["error"] == "request_timeout"
        assert one.cuts == {"head_timeout": 1}


async def dribble(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while True:
            writer.write(b"X: 1\r\n")
            await writer.drain()
            await asyncio.sleep(0.05)


async def test_a_head_that_dribbles_is_given_no_more_time() -> None:
    async with serving(SOON) as one:
        reader, writer = await one.dial()
        writer.write(b"GET / HTTP/1.1\r\n")
        dribbling = asyncio.create_task(dribble(writer))
        assert status_of(await reader.read()) == 408
        dribbling.cancel()
        writer.close()


async def test_a_connection_that_says_nothing_is_closed() -> None:
    async with serving(SOON) as one:
        assert status_of(await one.exchange(b"")) == 408
        await until(lambda: not one.server.connections)


async def test_a_head_that_is_too_long_is_answered_431() -> None:
    async with serving() as one:
        for head in (
            request("/", "X: " + "a" * 70_000),
            request("/" + "a" * 70_000),
            b"GET / HTTP/1.1\r\n" + b"X: 1\r\n" * 20_000,
        ):
            answer = await one.exchange(head)
            assert status_of(answer) == 431
            assert body_of(answer)["code"] == "head_too_large"
        assert one.cuts == {"head_too_large": 3}


async def test_m27_a_path_that_is_too_long_is_answered_414() -> None:
    async with serving() as one:
        assert status_of(await one.get("/" + "%41" * 1_365)) == 200
        for path in ("/" + "a" * 4_096, "/" + "%/" * 2_048):
            answer = await one.get(path)
            assert (status_of(answer), body_of(answer)["code"]) == (414, "path_too_long")
        assert status_of(await one.get("/?a=" + "a" * 20_000)) == 200
        assert one.cuts == {"head_too_large": 2}


async def test_m27_a_percent_sign_that_begins_no_escape_never_reaches_the_application() -> None:
    async with serving() as one:
        for path in ("/%", "/%/a", "/a%4", "/%zz?a=b"):
            answer = await one.get(path)
            assert status_of(answer) == 400
            assert "percent sign" in body_of(answer)["error_description"]
        assert one.cuts == {"malformed": 4}


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.2\r\nHost: a\r\n\r\n",
        b"GET / HTTP/0.9\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n",
        b"GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://a@b/ HTTP/1.1\r\nHost: b\r\n\r\n",
        b"GET http://a:81/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://b?a HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)
async def test_m27_a_head_that_a_proxy_may_understand_otherwise_is_rejected(head: bytes) -> None:
    async with serving() as one:
        assert status_of(await one.exchange(head)) == 400
        assert one.cuts == {"malformed": 1}


@pytest.mark.parametrize(
    "head",
    [
        b"GET http://a:81/ HTTP/1.1\r\nHost: A:81\r\nConnection: close\r\n\r\n",
        b"GET http://a/?b=http://c/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        b"GET /?b=http://c/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        b"GET http://a/ HTTP/1.0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\nConnection: close\r\n\r\n0\r\n\r\n",
    ],
)
async def test_the_url_of_a_request_may_name_its_host(head: bytes) -> None:
    async with serving() as one:
        assert status_of(await one.exchange(head)) == 200


async def test_too_many_headers_are_answered_431() -> None:
    async with serving(ConnectionLimits(headers=10)) as one:
        assert status_of(await one.get("/", *[f"X-{number}: 1" for number in range(8)])) == 200
        assert status_of(await one.get("/", *[f"X-{number}: 1" for number in range(9)])) == 431


async def test_too_many_headers_are_answered_431_before_the_head_ends() -> None:
    async with serving() as one:
        answer = await one.exchange(b"GET / HTTP/1.1\r\n" + b"X: 1\r\n" * 102)
        assert status_of(answer) == 431
        assert one.cuts == {"head_too_large": 1}


async def test_a_long_body_does_not_make_a_head_too_long() -> None:
    async with serving(ConnectionLimits(head_bytes=1024)) as one:
        sent = request("/echo", "Content-Length: 20000", "Connection: close", method="POST") + b"x" * 20_000
        assert (await one.exchange(sent)).endswith(b"x" * 20_000)


async def test_what_is_no_http_is_answered_400() -> None:
    async with serving() as one:
        for nonsense in (
            b"\x16\x03\x01\x02\x00",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET / HTTP/1.1\r\nBad Header: 1\r\n\r\n",
        ):
            answer = await one.exchange(nonsense)
            assert status_of(answer) == 400
            assert body_of(answer)["error"] == "invalid_request"
        assert one.cuts == {"malformed": 3}


async def test_a_request_has_one_host() -> None:
    async with serving() as one:
        for hosts in (b"", b"Host: a.example.com\r\nHost: b.example.com\r\n"):
            answer = await one.exchange(b"GET / HTTP/1.1\r\n" + hosts + b"Connection: close\r\n\r\n")
            assert status_of(answer) == 400
            assert "needs one Host header" in body_of(answer)["error_description"]
        assert (await one.exchange(b"GET / HTTP/1.0\r\n\r\n")).endswith(b"hello")
        assert one.cuts == {"malformed": 2}


async def test_m27_fields_of_a_trailer_are_no_headers() -> None:
    chunks, forged = b"3\r\nabc\r\n0\r\n", b"Authorization: Bearer x\r\nssl-client-cert: y\r\n\r\n"
    head = request("/headers", "Transfer-Encoding: chunked", "Connection: close", method="POST")
    async with serving() as one:
        for parts in ((head + chunks + forged,), (head, chunks + forged), (head, chunks, forged)):
            shown = str(body_of(await one.exchange(*parts))).lower()
            assert "transfer-encoding" in shown
            assert "authorization" not in shown
            assert "ssl-client-cert" not in shown


async def test_m27_a_trailer_and_extensions_of_chunks_have_a_largest_size() -> None:
    head = request("/headers", "Transfer-Encoding: chunked", method="POST")
    async with serving(ConnectionLimits(head_bytes=8192)) as one:
        for endless in (b"3\r\nabc\r\n0\r\nx: ", b"3\r\nabc\r\n3;x="):
            answer = await one.exchange(head + endless, b"a" * 8000, b"a" * 8000)
            assert status_of(answer) == 431
        assert one.cuts == {"head_too_large": 2}


async def test_many_requests_of_a_connection_are_no_trailer() -> None:
    get = request("/", "X-Long: " + "a" * 4000)
    post = request("/echo", "Content-Length: 6", "Connection: close", method="POST")
    async with serving(ConnectionLimits(head_bytes=8192)) as one:
        answer = await one.exchange(get, get, get, post, b"abc", b"def")
        assert answer.count(b"HTTP/1.1 200") == 4
        assert answer.endswith(b"abcdef")


async def test_no_response_is_sniffed() -> None:
    async with serving() as one:
        for sent in (request("/", "Connection: close"), b"GET / HTTP/1.1\r\n\r\n"):
            assert (await one.exchange(sent)).lower().count(b"x-content-type-options: nosniff\r\n") == 1


async def test_a_body_that_stalls_is_answered_408_although_the_application_waits_longer() -> None:
    async with serving(SOON) as one:
        answer = await one.exchange(request("/echo", "Content-Length: 10", method="POST") + b"12345")
        assert status_of(answer) == 408
        assert one.cuts == {"body_stalled": 1}
        await until(lambda: one.lines.lines)
        assert json.loads(one.lines.lines[0])["aborted"]


async def test_an_application_that_thinks_is_not_taken_for_a_client_that_stalls() -> None:
    async with serving(SOON) as one:
        asking = asyncio.create_task(
            one.exchange(request("/wait", "Content-Length: 200000", method="POST") + b"x" * 200_000)
        )
        await one.app.asked.wait()
        await asyncio.sleep(2)
        one.app.may_answer.set()
        assert b"at last" in await asking


async def test_an_answer_to_an_unfinished_request_can_be_read_before_the_connection_ends() -> None:
    async with serving(SOON) as one:
        answer = await one.exchange(request("/echo", "Content-Length: 1000000000", method="POST") + b"x" * 500_000)
        assert status_of(answer) == 413
        assert one.cuts == {"body_unused": 1}


async def test_an_unwanted_body_that_ends_soon_leaves_the_connection_usable() -> None:
    async with serving() as one:
        reader, writer = await one.dial()
        writer.write(request("/echo", "Content-Length: 100000", method="POST") + b"x" * 50_000)
        assert b" 413 " in await reader.readline()
        writer.write(b"x" * 50_000 + request("/", "Connection: close"))
        assert (await reader.read()).endswith(b"hello")
        writer.close()


async def test_a_client_that_waits_for_100_continue_never_sends_a_body_that_is_too_long() -> None:
    async with serving() as one:
        reader, writer = await one.dial()
        writer.write(request("/echo", "Content-Length: 100000", "Expect: 100-continue", method="POST"))
        assert b" 413 " in await reader.readline()
        writer.close()


async def test_an_idle_connection_is_closed() -> None:
    async with serving(SOON) as one:
        answer = await one.exchange(request("/"))
        assert status_of(answer) == 200
        assert one.cuts == {"idle": 1}


async def test_a_connection_is_used_again() -> None:
    async with serving() as one:
        reader, writer = await one.dial()
        for _ in range(3):
            writer.write(request("/"))
            assert (await reader.readuntil(b"hello")).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_a_client_that_does_not_read_is_cut_and_its_stream_ends() -> None:
    async with serving(SOON) as one:
        with socket.create_connection((one.address.host, one.address.port)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(request("/stream"))
            await until(lambda: one.cuts["write_timeout"])
            await until(lambda: not one.app.streams)
        assert not one.server.connections


async def test_a_stream_ends_when_its_client_leaves_even_if_it_never_asks() -> None:
    async with serving() as one:
        reader, writer = await one.dial()
        writer.write(request("/stream"))
        await reader.readuntil(b"hello")
        writer.transport.abort()
        await until(lambda: not one.app.streams)


async def test_a_stream_with_a_request_behind_it_ends_when_its_client_leaves() -> None:
    async with serving() as one:
        reader, writer = await one.dial()
        writer.write(request("/quiet") + request("/"))
        await reader.readuntil(b"hello")
        writer.transport.abort()
        await until(lambda: not one.app.streams)


async def test_requests_sent_ahead_are_answered_in_order_but_not_without_end() -> None:
    async with serving(ConnectionLimits(pipelined=3)) as one:
        assert (await one.exchange(request("/") * 3 + request("/", "Connection: close"))).count(b"hello") == 4
        assert await one.exchange(request("/wait") + request("/") * 100) == b""
        assert one.cuts == {"pipelined": 1}


async def test_connections_beyond_the_cap_are_told_503() -> None:
    here = ForwardingProxies(["127.0.0.1/32"])
    async with serving(ConnectionLimits(connections=2, forwarding=here)) as one:
        first, second = await one.dial(), await one.dial()
        await until(lambda: one.server.connections == 2)
        answer = await one.get("/")
        assert status_of(answer) == 503
        assert body_of(answer)["error"] == "unavailable"
        first[1].close()
        await until(lambda: one.server.connections < 2)
        assert status_of(await one.get("/")) == 200
        second[1].close()
        assert one.cuts == {"connections": 1}


async def test_an_upgrade_that_is_not_known_is_answered_as_a_plain_request() -> None:
    async with serving() as one:
        answer = await one.exchange(request("/", "Connection: Upgrade", "Upgrade: h2c"))
        assert answer.endswith(b"hello")


async def test_what_never_became_a_request_is_in_the_log_under_its_trace_id() -> None:
    async with serving(SOON) as one:
        with capture_logs() as lines:
            answers = [
                await one.exchange(b"GET / HTTP/1.1\r\nHost: he"),
                await one.exchange(b"GET / HTTP/1.1\r\n" + b"X: 1\r\n" * 20_000),
                await one.exchange(b"\x16\x03\x01 this is TLS"),
            ]
    told = [(body_of(answer)["trace_id"], status_of(answer), body_of(answer)["code"]) for answer in answers]
    assert [(line["trace_id"], line["status"], line["error"]) for line in lines] == told
    assert [line["reason"] for line in lines] == ["head_timeout", "head_too_large", "malformed"]
    assert {(line["event"], line["peer"]) for line in lines} == {("connection rejected", "127.0.0.1")}
