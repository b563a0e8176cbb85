"""Requests without a socket whose answers are read: JSON, forms, and the cookies of a browser."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import msgspec

from remuda.app import IDENTITY_PREFIX
from remuda.http.asgi import ASGIApp, Message, Scope

__all__ = ["Client", "Reply"]

Header = tuple[bytes, bytes]


@dataclass(slots=True)
class Reply:
    """What came back."""

    status: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        """The body."""
        return msgspec.json.decode(self.body)


class Client:
    """Somebody who asks a service, identity unless told, with a token or without, and keeps one cookie."""

    def __init__(self, app: ASGIApp, token: str | None = None, *, prefix: str = IDENTITY_PREFIX) -> None:
        self._app, self._prefix = app, prefix
        self._token = [] if token is None else [(b"authorization", f"Bearer {token}".encode())]
        self._cookie = b""

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Reply:
        """Read something."""
        return _told(await self._send("GET", path, query=urlencode(query or {}).encode()), 200)

    async def put(self, path: str, body: Any) -> Reply:
        """Replace something."""
        headers = [(b"content-type", b"application/json")]
        return _told(await self._send("PUT", path, msgspec.json.encode(body), headers), 200)

    async def delete(self, path: str) -> Reply:
        """Ask for something to go."""
        return _told(await self._send("DELETE", path), 202)

    async def post(self, path: str, body: Any = None, *, key: str = "", status: int = 201) -> Reply:
        """Send JSON, under an idempotency key if there is one."""
        headers = [(b"content-type", b"application/json")]
        if key:
            headers.append((b"idempotency-key", key.encode()))
        return _told(
            await self._send("POST", path, b"" if body is None else msgspec.json.encode(body), headers), status
        )

    async def send_form(self, path: str, fields: Mapping[str, str], *, status: int = 200) -> Reply:
        """Send a form."""
        headers = [(b"content-type", b"application/x-www-form-urlencoded")]
        return _told(await self._send("POST", path, urlencode(fields).encode(), headers), status)

    async def _send(
        self, method: str, path: str, body: bytes = b"", headers: list[Header] | None = None, *, query: bytes = b""
    ) -> Reply:
        cookie = [(b"cookie", self._cookie)] if self._cookie else []
        sent = [(b"host", b"bench"), (b"content-length", b"%d" % len(body)), *self._token, *cookie, *(headers or [])]
        whole = f"{self._prefix}{path}"
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "server": ("127.0.0.1", 8080),
            "client": ("127.0.0.1", 50_000),
            "scheme": "http",
            "method": method,
            "root_path": "",
            "path": whole,
            "raw_path": whole.encode(),
            "query_string": query,
            "headers": sent,
        }
        reply = Reply()
        waiting = [body]

        async def receive() -> Message:
            if not waiting:
                await asyncio.Event().wait()  # the client stays
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                reply.status, reply.headers = message["status"], dict(message["headers"])
            else:
                reply.body += message.get("body", b"")

        await self._app(scope, receive, send)
        self._cookie = reply.headers.get(b"set-cookie", self._cookie).partition(b";")[0]
        return reply


def _told(reply: Reply, status: int) -> Reply:
    assert reply.status == status, (reply.status, reply.body)
    return reply
