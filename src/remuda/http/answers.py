"""An answer as it goes to the wire: status, headers and a body that is there or still comes."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from starlette.types import Send

__all__ = ["JSON", "Answer", "Header"]

Header = tuple[bytes, bytes]
"""A name in lower case, and its value."""

JSON: Header = (b"content-type", b"application/json")
"""What almost every answer is."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back."""

    status: int
    body: bytes | AsyncIterator[bytes] = b""
    """All of it, or chunks that are sent as they come."""
    headers: tuple[Header, ...] = ()

    async def send(self, send: Send, more: tuple[Header, ...] = ()) -> None:
        """Send it, with some more headers."""
        headers = [*self.headers, *more]
        if isinstance(self.body, bytes):
            if self.status not in {204, 304}:
                headers.append((b"content-length", b"%d" % len(self.body)))
            await send({"type": "http.response.start", "status": self.status, "headers": headers})
            await send({"type": "http.response.body", "body": self.body})
            return
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        async for chunk in self.body:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
