"""An answer as it goes to the wire: status, headers and a body that is there or still comes."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress

import msgspec
from starlette.types import Receive, Send

Header = tuple[bytes, bytes]
"""A name in lower case, and its value."""

JSON: Header = (b"content-type", b"application/json")
"""What almost every answer is."""

HTML: Header = (b"content-type", b"text/html; charset=utf-8")
"""What a page is."""

_UNSPEAKABLE = re.compile(r"[\x00-\x1f\x7f]")
_BODILESS = frozenset({204, 304})


class Answer(msgspec.Struct, frozen=True):
    """What is sent back."""

    status: int
    body: bytes | AsyncIterator[bytes] = b""
    """All of it, or chunks that are sent as they come."""
    headers: tuple[Header, ...] = ()

    async def send(self, send: Send, more: tuple[Header, ...] = (), *, receive: Receive | None = None) -> None:
        """Send it, with some more headers. With `receive`, chunks end when the client leaves."""
        headers = [*self.headers, *more]
        if isinstance(self.body, bytes):
            if self.status not in _BODILESS:
                headers.append((b"content-length", b"%d" % len(self.body)))
            await send({"type": "http.response.start", "status": self.status, "headers": headers})
            await send({"type": "http.response.body", "body": self.body})
            return
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        if receive is None:
            await _send_chunks(self.body, send)
        else:
            await _send_while_there(self.body, send, receive)

    async def send_head(self, send: Send, more: tuple[Header, ...] = ()) -> None:
        """Send what a GET would have been answered, without the body."""
        headers = [*self.headers, *more]
        if isinstance(self.body, bytes):
            headers.append((b"content-length", b"%d" % len(self.body)))
        else:
            await _close(self.body)
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    def with_headers(self, *headers: Header) -> "Answer":
        """Return it with some more headers."""
        return msgspec.structs.replace(self, headers=(*self.headers, *headers))


def wire_headers(headers: Mapping[str, str]) -> list[Header]:
    """Return headers as they go to the wire. One that could end its line, and begin another, is a defect."""
    for name, value in headers.items():
        if _UNSPEAKABLE.search(value):
            raise ValueError(f"the header {name} has a control character")
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


async def _send_chunks(chunks: AsyncIterator[bytes], send: Send) -> None:
    try:
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        await _close(chunks)


async def _send_while_there(chunks: AsyncIterator[bytes], send: Send, receive: Receive) -> None:
    # A server does not tell who writes that nobody is there any more; it tells who reads.
    sending = asyncio.ensure_future(_send_chunks(chunks, send))
    leaving = asyncio.ensure_future(_client_leaves(receive))
    sending.add_done_callback(_look_at)
    try:
        await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
    finally:
        for task in (sending, leaving):
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task


def _look_at(task: asyncio.Future[None]) -> None:
    """Take note of how sending has ended: whoever waits for that may be told to stop, and then nobody asks."""
    if not task.cancelled():
        task.exception()


async def _client_leaves(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _close(chunks: AsyncIterator[bytes]) -> None:
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()
