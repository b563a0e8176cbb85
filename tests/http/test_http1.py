"""A request and its response on the wire: framing, one write, and what happens when the application fails."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest
from structlog.testing import capture_logs

from remuda.http.asgi import ClientDisconnect, Receive, Scope, Send
from remuda.http.server.http1 import COPIED, PART, FlowControl, RequestCycle, header_lines

DATE = b"date: now\r\n"
Answer = Callable[[Scope, Receive, Send], Awaitable[None]]


class Wire:
    """What a transport was told."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.shared: list[memoryview] = []
        """What was not copied for it."""
        self.is_closed = False

    @property
    def written(self) -> bytes:
        return b"".join(self.writes)

    def write(self, data: bytes | memoryview) -> None:
        self.writes.append(bytes(data))
        if isinstance(data, memoryview):
            self.shared.append(data)

    def writelines(self, parts: Iterable[bytes | memoryview]) -> None:
        for part in parts:
            self.write(part)

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def cycle_on(
    wire: Wire, *, method: str = "GET", version: str = "1.1", flow: FlowControl | None = None, **more: Any
) -> RequestCycle:
    scope = {"type": "http", "method": method, "http_version": version, "path": "/"}
    transport: Any = wire
    options: dict[str, Any] = {"keep_alive": version != "1.0", "expects_continue": False, "on_complete": lambda: None}
    return RequestCycle(
        scope,
        transport,
        flow or FlowControl(transport),
        loop=asyncio.get_running_loop(),
        default_headers=DATE,
        **options | more,
    )


def answering(*parts: bytes, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Answer:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": [*headers]})
        for number, part in enumerate(parts, start=1):
            await send({"type": "http.response.body", "body": part, "more_body": number < len(parts)})

    return app


def length(number: int) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"content-length", b"%d" % number),)


async def test_a_response_leaves_in_one_write() -> None:
    wire = Wire()
    await cycle_on(wire).run(answering(b"hello", headers=length(5)))
    assert wire.writes == [
        b"HTTP/1.1 200 OK\r\ndate: now\r\ncontent-length: 5\r\nx-content-type-options: nosniff\r\n\r\nhello"
    ]
    await asyncio.sleep(0)
    assert len(wire.writes) == 1
    assert not wire.is_closed


async def test_the_head_of_a_stream_does_not_wait_for_its_first_event() -> None:
    wire, may_continue = Wire(), asyncio.Event()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await may_continue.wait()
        await send({"type": "http.response.body", "body": b"event", "more_body": False})

    running = asyncio.create_task(cycle_on(wire).run(app))
    for _ in range(3):
        await asyncio.sleep(0)
    assert wire.writes == [
        b"HTTP/1.1 200 OK\r\ndate: now\r\nx-content-type-options: nosniff\r\ntransfer-encoding: chunked\r\n\r\n"
    ]
    may_continue.set()
    await running
    assert wire.writes[1:] == [b"5\r\nevent\r\n0\r\n\r\n"]


@pytest.mark.parametrize(
    ("method", "version", "app", "sent"),
    [
        ("GET", "1.1", answering(b"a", b"", b"bc"), b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"),
        ("GET", "1.0", answering(b"a", b"bc"), b"abc"),
        ("GET", "1.1", answering(b"a", b"bc", headers=length(3)), b"abc"),
        ("HEAD", "1.1", answering(b"abc", headers=length(3)), b""),
        ("GET", "1.1", answering(b"", status=204), b""),
        ("GET", "1.1", answering(b"", status=304), b""),
    ],
)
async def test_a_body_is_framed_by_its_length_in_chunks_or_by_the_end(
    method: str, version: str, app: Answer, sent: bytes
) -> None:
    wire = Wire()
    await cycle_on(wire, method=method, version=version).run(app)
    head, _, body = wire.written.partition(b"\r\n\r\n")
    assert body == sent
    assert (b"transfer-encoding" in head) == sent.endswith(b"0\r\n\r\n")
    assert wire.is_closed == (version == "1.0") == (b"connection: close" in head)


class SlowWire(Wire):
    """A transport that pauses the response after each write, until the client has read."""

    def __init__(self) -> None:
        super().__init__()
        transport: Any = self
        self.flow = FlowControl(transport)

    def write(self, data: bytes | memoryview) -> None:
        super().write(data)
        self.flow.pause_writing()


@pytest.mark.parametrize("headers", [length(3 * PART + 1), ()], ids=["length", "chunked"])
async def test_m27_a_long_body_is_written_in_parts_as_its_client_reads_and_never_copied(
    headers: tuple[tuple[bytes, bytes], ...],
) -> None:
    body, wire = bytes(3 * PART + 1), SlowWire()
    cycle = cycle_on(wire, flow=wire.flow)
    running = asyncio.create_task(cycle.run(answering(body, headers=headers)))
    for parts in range(1, 5):
        await until_idle()
        assert len(wire.shared) == parts
        assert all(each.obj is body and len(each) <= PART for each in wire.shared)
        assert cycle.is_complete == running.done() == (parts == 4)
        wire.flow.resume_writing()
    assert body in wire.written
    assert len(wire.written) - sum(map(len, wire.shared)) < 300


async def test_m27_a_body_that_fits_one_part_is_not_copied_either() -> None:
    body, wire = bytes(COPIED + 1), Wire()
    await cycle_on(wire).run(answering(body, headers=length(len(body))))
    assert [each.obj for each in wire.shared] == [body]
    assert wire.shared[0].obj is body


async def test_a_client_that_leaves_in_the_middle_of_a_long_body_ends_it() -> None:
    wire, ends = SlowWire(), list[type[BaseException]]()
    cycle = cycle_on(wire, flow=wire.flow)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await answering(bytes(3 * PART), headers=length(3 * PART))(scope, receive, send)
        except ClientDisconnect:
            ends.append(ClientDisconnect)

    running = asyncio.create_task(cycle.run(app))
    await until_idle()
    cycle.disconnect()
    wire.flow.resume_writing()
    await running
    assert ends == [ClientDisconnect]
    assert not cycle.is_complete


async def until_idle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    "app", [answering(b"abcd", headers=length(3)), answering(b"ab", headers=length(3)), answering(headers=length(3))]
)
async def test_a_body_of_another_length_than_it_says_is_no_response(app: Answer) -> None:
    wire = Wire()
    with capture_logs():
        await cycle_on(wire).run(app)
    assert wire.is_closed
    assert not any(b" 200 " in each and each.endswith((b"ab", b"abcd")) for each in wire.writes)


async def test_an_application_that_fails_is_answered_500_or_broken_off() -> None:
    async def late(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"some", "more_body": True})
        raise RuntimeError("late")

    async def early(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise RuntimeError("early")

    for app, expected in ((early, b" 500 "), (late, b" 200 ")):
        wire = Wire()
        with capture_logs() as lines:
            await cycle_on(wire).run(app)
        assert wire.is_closed
        assert expected in wire.writes[0]
        assert DATE in wire.writes[0], "what all responses have is in this one, too"
        assert not any(each.endswith(b"0\r\n\r\n") and b"chunked" in each for each in wire.writes)
        assert [line["event"] for line in lines] == ["application failed"]


async def test_an_application_that_is_cancelled_ends_its_connection() -> None:
    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        await asyncio.Event().wait()

    wire = Wire()
    running = asyncio.create_task(cycle_on(wire).run(app))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert wire.is_closed
    assert b" 500 " in wire.writes[0]


@pytest.mark.parametrize(
    "header", [(b"x: y\r\nz", b"1"), (b"x", b"1\r\nset-cookie: a=b"), (b"x", b"1\x00"), (b"X", b"1")]
)
async def test_a_header_that_would_be_read_as_another_is_never_sent(header: tuple[bytes, bytes]) -> None:
    with pytest.raises(ValueError, match="header"):
        header_lines([header])
    wire = Wire()
    with capture_logs():
        await cycle_on(wire).run(answering(b"", headers=(header,)))
    assert [each.split(b"\r\n")[0] for each in wire.writes] == [b"HTTP/1.1 500 Internal Server Error"]


async def test_the_body_arrives_in_parts_and_its_end_is_told() -> None:
    wire = Wire()
    cycle = cycle_on(wire, method="POST", expects_continue=True)
    cycle.add_body(b"one")
    assert await cycle.receive() == {"type": "http.request", "body": b"one", "more_body": True}
    assert wire.writes == [b"HTTP/1.1 100 Continue\r\n\r\n"], "sent once, when the body is wanted"
    receiving = asyncio.create_task(cycle.receive())
    await asyncio.sleep(0)
    cycle.add_body(b"two")
    cycle.end_body()
    assert await receiving == {"type": "http.request", "body": b"two", "more_body": False}
    assert len(wire.writes) == 1


async def test_a_client_that_left_ends_reading_and_writing() -> None:
    cycle = cycle_on(Wire())
    cycle.disconnect()
    assert await cycle.receive() == {"type": "http.disconnect"}
    with pytest.raises(ClientDisconnect):
        await cycle.send({"type": "http.response.start", "status": 200, "headers": []})
