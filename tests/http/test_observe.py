import asyncio
import json
import re
from typing import Any

import pytest
import structlog
from prometheus_client import CollectorRegistry

from remuda.http.asgi import ASGIApp, ClientDisconnect, Message, Receive, Scope, Send
from remuda.http.request import observation_of
from remuda.http.responses import Response
from remuda.http.server.access_log import AccessLog
from remuda.http.server.health import PROCESS
from remuda.http.server.metrics import Metrics
from remuda.kernel.randomness import SeededRandomness
from tests.kit.clocks import HandClock
from tests.kit.http_server import Lines

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


class Heard:
    """Everything that became known of one request."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.lines = Lines()
        self.registry = CollectorRegistry()
        self.clock = HandClock()

    @property
    def line(self) -> dict[str, Any]:
        (line,) = self.lines.lines
        decoded: dict[str, Any] = json.loads(line)
        return decoded

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])

    def sample(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)

    async def send(self, message: Message) -> None:
        self.sent.append(message)


async def receive_nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def ask(
    app: ASGIApp, *headers: tuple[bytes, bytes], receive: Receive = receive_nothing, heard: Heard | None = None
) -> Heard:
    heard = heard or Heard()
    observe = AccessLog(
        app,
        clock=heard.clock,
        randomness=SeededRandomness(1),
        metrics=Metrics(heard.registry, [PROCESS]),
        sink=heard.lines,
    )
    scope: Scope = {
        "type": "http",
        "method": "GET",
        "path": "/things",
        "query_string": b"token=secret",
        "headers": [(b"authorization", b"Bearer secret"), *headers],
        "client": ("192.0.2.7", 4711),
    }
    await observe(scope, receive, heard.send)
    return heard


async def greet(_scope: Scope, _receive: Receive, send: Send) -> None:
    await Response(200, b"hello").send(send)


async def test_every_answer_has_a_new_trace_id_and_continues_as_a_trace() -> None:
    heard = await ask(greet)
    trace_id = heard.headers[b"x-trace-id"].decode()
    assert re.fullmatch("[0-9a-f]{32}", trace_id)
    assert re.fullmatch(f"00-{trace_id}-[0-9a-f]{{16}}-01", heard.headers[b"traceparent"].decode())
    assert heard.line["trace_id"] == trace_id


@pytest.mark.parametrize(
    ("value", "flags"),
    [(f"00-{TRACE}-{SPAN}-01", "01"), (f"00-{TRACE}-{SPAN}-00", "00"), (f"cc-{TRACE}-{SPAN}-01-more", "01")],
)
async def test_the_callers_trace_is_continued(value: str, flags: str) -> None:
    heard = await ask(greet, (b"traceparent", value.encode()))
    assert heard.headers[b"x-trace-id"].decode() == TRACE
    sent = heard.headers[b"traceparent"].decode()
    assert re.fullmatch(f"00-{TRACE}-[0-9a-f]{{16}}-{flags}", sent)
    assert SPAN not in sent, "it is a span of our own"


@pytest.mark.parametrize(
    "value",
    [
        "",
        "nonsense",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-1",
        f"cc-{TRACE}-{SPAN}-01more",
    ],
)
async def test_a_trace_that_is_none_is_not_continued(value: str) -> None:
    heard = await ask(greet, (b"traceparent", value.encode()))
    assert re.fullmatch("[0-9a-f]{32}", heard.line["trace_id"])
    assert heard.line["trace_id"] != TRACE


async def test_the_line_tells_what_happened_and_no_secret() -> None:
    heard = Heard()

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        seen = observation_of(scope)
        seen.service, seen.route, seen.principal, seen.error_code = "process", "get_health", "ann", "conflict"
        heard.clock.seconds += 0.25
        await Response(409, b"12345").send(send)

    await ask(app, heard=heard)
    line = heard.line
    del line["trace_id"]
    assert line == {
        "event": "request",
        "time": "2026-01-01T00:16:40.250000Z",
        "method": "GET",
        "path": "/things",
        "service": "process",
        "route": "get_health",
        "status": 409,
        "duration_ms": 250.0,
        "bytes": 5,
        "principal": "ann",
        "peer": "192.0.2.7",
        "error": "conflict",
    }
    assert b"secret" not in heard.lines.lines[0]
    place = {"service": "process", "route": "get_health"}
    assert heard.sample("remuda_http_requests_total", **place, status="4xx") == 1
    assert heard.sample("remuda_http_request_duration_seconds_sum", **place) == 0.25


async def test_a_defect_is_answered_500_and_logged_under_its_trace_id() -> None:
    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise ZeroDivisionError("secret detail")

    with structlog.testing.capture_logs() as logs:
        heard = await ask(app)
    assert heard.sent[0]["status"] == 500
    told = json.loads(heard.sent[1]["body"])
    assert told["error"] == "server_error"
    assert told["trace_id"] == heard.line["trace_id"] == logs[0]["trace_id"]
    assert "secret" not in heard.sent[1]["body"].decode()
    assert (logs[0]["event"], logs[0]["exc_info"]) == ("request failed", True)
    assert heard.line["error"] == "internal"
    assert heard.sample("remuda_http_requests_total", service="none", route="none", status="5xx") == 1
    assert heard.sample("remuda_http_requests_in_flight") == 0


async def test_a_defect_after_the_answer_began_sends_no_second_answer() -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError

    with structlog.testing.capture_logs():
        heard = await ask(app)
    assert [message["type"] for message in heard.sent] == ["http.response.start"]
    assert (heard.line["status"], heard.line["error"]) == (200, "internal")


async def test_a_client_that_leaves_is_noted() -> None:
    async def leave() -> Message:
        return {"type": "http.disconnect"}

    async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
        await receive()
        raise ClientDisconnect

    heard = await ask(app, receive=leave)
    assert heard.sent == []
    assert (heard.line["status"], heard.line["aborted"]) == (499, True)
    assert heard.sample("remuda_http_requests_total", service="none", route="none", status="4xx") == 1


async def test_a_cancelled_request_is_answered_503() -> None:
    begun = asyncio.Event()

    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        begun.set()
        await asyncio.Event().wait()

    asking = asyncio.create_task(ask(app))
    await begun.wait()
    asking.cancel()
    heard = await asking
    assert heard.sent[0]["status"] == 503
    assert heard.line["error"] == "unavailable"


async def test_a_stream_of_events_is_counted_while_it_is_open_and_has_no_duration() -> None:
    counts: list[float | None] = []
    heard = Heard()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": b"1", "more_body": True})
        await send({"type": "http.response.body", "body": b"2", "more_body": True})
        counts.append(heard.sample("remuda_http_watch_streams"))
        await send({"type": "http.response.body", "body": b"3"})

    await ask(app, heard=heard)
    assert counts == [1]
    assert heard.sample("remuda_http_watch_streams") == 0
    assert heard.sample("remuda_http_request_duration_seconds_count", service="none", route="none") == 0
    assert heard.line["bytes"] == 3


async def test_a_list_in_chunks_is_no_stream_of_events() -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": b"[", "more_body": True})
        await send({"type": "http.response.body", "body": b"]"})

    heard = await ask(app)
    assert heard.sample("remuda_http_request_duration_seconds_count", service="none", route="none") == 1


async def test_refused_bodies_and_callers_are_counted_by_the_code_of_their_error() -> None:
    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        observation_of(scope).error_code = "too_large"
        await Response(413).send(send)

    heard = await ask(app)
    assert heard.sample("remuda_http_body_rejects_total", reason="too_large") == 1


async def test_only_http_is_served() -> None:
    observe = AccessLog(
        greet,
        clock=HandClock(),
        randomness=SeededRandomness(1),
        metrics=Metrics(CollectorRegistry()),
        sink=Lines(),
    )
    with pytest.raises(ValueError, match="only HTTP"):
        await observe({"type": "websocket"}, receive_nothing, Heard().send)
