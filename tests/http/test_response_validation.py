"""Validation of responses by the test client: an undocumented response fails the test."""

from collections.abc import Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from remuda.http.asgi import Message, Receive, Scope, Send
from remuda.http.responses import JSON, Response
from remuda.http.sse import sse_event
from tests.kit.asgi.client import Client
from tests.kit.asgi.contract import UndocumentedError, contract_of
from tests.kit.asgi.validating import LINE, UNDOCUMENTED, Validated
from tests.kit.sample_api.service import TABLE

HORSES = "/horses"
ERROR = b'{"error":"not_found","error_description":"no","trace_id":"%b","code":"absent"}' % (b"a" * 32)
EVENTS = (b"content-type", b"text/event-stream")


def answering(answer: Response) -> Client:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await answer.send(send)

    return Client(app=Validated(app, contract_of(TABLE)))


@pytest.mark.parametrize(
    ("method", "path", "answer", "complaint"),
    [
        ("GET", HORSES, Response(200, b"[{}]", (JSON,)), "required property"),
        ("GET", HORSES, Response(200, b"[]", (JSON, (b"x-extra", b"1"))), "undocumented headers"),
        ("GET", HORSES, Response(200, b"[]", ((b"content-type", b"text/plain"),)), "is text/plain"),
        ("GET", HORSES, Response(418, b"{}", (JSON,)), "not documented"),
        ("HEAD", HORSES, Response(200, b"[]", (JSON,)), "has a body"),
        ("HEAD", HORSES, Response(200, b"", (JSON, (b"x-extra", b"1"))), "undocumented headers"),
        ("GET", "/nowhere", Response(404, b"{}", (JSON,)), "required property"),
        ("GET", "/nowhere", Response(404, b"no"), "is "),
        ("GET", "/nowhere", Response(200, b"{}", (JSON,)), "in no document"),
        ("PATCH", HORSES, Response(405, ERROR, (JSON,)), "what is allowed"),
        ("PATCH", HORSES, Response(404, ERROR, (JSON,)), "in no document"),
        ("OPTIONS", HORSES, Response(204, b"", ((b"x-extra", b"1"),)), "undocumented headers"),
        ("GET", "/docs", Response(200, b"{}", (JSON,)), "is application/json"),
    ],
)
async def test_an_undocumented_answer_is_a_complaint(method: str, path: str, answer: Response, complaint: str) -> None:
    with pytest.raises(UndocumentedError, match=complaint):
        await answering(answer).send(method, path)


@pytest.mark.parametrize(
    ("method", "path", "answer"),
    [
        ("GET", HORSES, Response(200, b"[]", (JSON,))),
        ("HEAD", HORSES, Response(200, b"", (JSON,))),
        ("GET", "/nowhere", Response(404, ERROR, (JSON,))),
        ("PATCH", HORSES, Response(405, ERROR, (JSON, (b"allow", b"GET")))),
        ("OPTIONS", HORSES, Response(204)),
    ],
)
async def test_a_documented_answer_passes_as_it_is(method: str, path: str, answer: Response) -> None:
    reply = await answering(answer).send(method, path)
    assert (reply.status, reply.body) == (answer.status, answer.body)


async def test_a_complaint_is_a_status_of_its_own_and_is_not_forgotten() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await Response(418, b"secret").send(send)

    scope = {"type": "http", "method": "GET", "path": HORSES, "headers": []}
    validated = Validated(app, contract_of(TABLE))
    validated.assert_documented()
    with capture_logs() as lines:
        await validated(scope, _never, send)
    assert [line["event"] for line in lines] == [LINE]
    with pytest.raises(AssertionError, match="not documented"):
        validated.assert_documented()
    assert sent[0]["status"] == UNDOCUMENTED
    assert b"not documented" in sent[1]["body"]


async def _never() -> Any:
    raise AssertionError("nobody asks for the body")


@pytest.mark.parametrize(
    "events",
    [
        [sse_event("added", b"{}")],
        [sse_event("bookmark", b"{}", cursor="7"), sse_event("deleted", b"{}", cursor="8")],
        [sse_event("surprise", b"{}")],
        [sse_event("end", b"[]")],
    ],
)
async def test_a_stream_with_an_undocumented_event_breaks_off(events: Sequence[bytes]) -> None:
    with pytest.raises(UndocumentedError):
        await _read(answering(Response(200, _chunks(events), (EVENTS,))))


async def test_a_stream_that_begins_undocumented_never_begins() -> None:
    with pytest.raises(UndocumentedError, match="undocumented headers"):
        await _read(answering(Response(200, _chunks([]), (EVENTS, (b"x-extra", b"1")))))


async def test_documented_events_pass() -> None:
    sent = [b":\n\n", sse_event("bookmark", b"{}", cursor="7"), sse_event("end", b'{"reason":"closing"}')]
    assert await _read(answering(Response(200, _chunks(sent), (EVENTS,)))) == sent


async def _chunks(events: Sequence[bytes]) -> Any:
    for each in events:
        yield each


async def _read(client: Client) -> list[bytes]:
    async with client.stream(HORSES, {"watch": "true"}) as stream:
        return [chunk async for chunk in stream.chunks()]
