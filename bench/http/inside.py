"""Requests without a socket: the application is called as a server would call it."""

import asyncio
from dataclasses import dataclass

from remuda.http.asgi import ASGIApp, Message, Scope

__all__ = ["Answered", "Request"]


@dataclass(slots=True)
class Answered:
    """What came back."""

    status: int = 0
    length: int = 0


class Request:
    """A request that can be sent again and again."""

    def __init__(
        self, app: ASGIApp, path: str, *, token: str | None, method: str = "GET", body: bytes = b"", query: bytes = b""
    ) -> None:
        self._app, self._body = app, body
        headers = [(b"host", b"bench"), (b"accept", b"*/*")]
        if token is not None:
            headers.append((b"authorization", b"Bearer " + token.encode()))
        if body:
            headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "server": ("127.0.0.1", 8080),
            "client": ("127.0.0.1", 50_000),
            "scheme": "http",
            "method": method,
            "root_path": "",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query,
            "headers": headers,
        }

    async def send(self) -> Answered:
        """Send it once, and return what came back."""
        scope: Scope = dict(self._scope)
        answered = Answered()
        is_read = False

        async def receive() -> Message:
            nonlocal is_read
            if is_read:
                await asyncio.Event().wait()  # the client stays
            is_read = True
            return {"type": "http.request", "body": self._body, "more_body": False}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered.status = message["status"]
            else:
                answered.length += len(message.get("body", b""))

        await self._app(scope, receive, send)
        return answered
