"""A client that calls an ASGI app in its own process, and holds every answer against the API's own documents.

So does an app that is `validated`; then the client fails with what that complains of.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import msgspec

from remuda.http.asgi import ASGIApp, Message, Scope
from remuda.http.bodies import FORM
from tests.kit.asgi.contract import Contract, Reply, UndocumentedError
from tests.kit.asgi.validating import UNDOCUMENTED

Form = Mapping[str, str] | Sequence[tuple[str, str]] | str
"""The fields of a form, or all of it as it is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Sends requests to an app, as whoever has the token."""

    app: ASGIApp
    token: str | None = None
    contract: Contract | None = None
    peer: tuple[str, int] = ("127.0.0.1", 4711)

    def having(self, token: str | None) -> "Client":
        """Return a client of somebody else's."""
        return Client(app=self.app, token=token, contract=self.contract, peer=self.peer)

    async def get(self, path: str, query: Any = (), **headers: str) -> Reply:
        """Read."""
        return await self.send("GET", path, query=query, headers=headers)

    async def post(self, path: str, body: Any = None, *, form: Form | None = None, **headers: str) -> Reply:
        """Make, from JSON or from a form."""
        return await self.send("POST", path, body=body, form=form, headers=headers)

    async def put(self, path: str, body: Any = None, **headers: str) -> Reply:
        """Change."""
        return await self.send("PUT", path, body=body, headers=headers)

    async def delete(self, path: str, **headers: str) -> Reply:
        """Remove."""
        return await self.send("DELETE", path, headers=headers)

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        body: Any = None,
        form: Form | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request and wait for all of the answer; `if_match` stands for the header If-Match."""
        if form is not None:
            body = (form if isinstance(form, str) else urlencode(form)).encode()
            headers = {"content-type": FORM, **(headers or {})}
        exchange = _Exchange(b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body))
        await self.app(self._scope(method, path, query, body, headers or {}), exchange.receive, exchange.send)
        reply = exchange.reply()
        if self.contract is not None:
            self.contract.check(method, path, reply)
        return reply

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str] | Sequence[tuple[str, str]] = (), **headers: str
    ) -> AsyncIterator["Stream"]:
        """Open an answer that has no end, and leave it when the block ends."""
        exchange = _Exchange(b"")
        scope = self._scope("GET", path, query, None, headers)
        task = asyncio.create_task(_run(self.app, scope, exchange), name=f"stream {path}")
        try:
            yield Stream(exchange)
        finally:
            exchange.leave()
            await asyncio.wait({task}, timeout=5)
            task.cancel()
            (end,) = await asyncio.gather(task, return_exceptions=True)
            if isinstance(end, UndocumentedError):
                raise end

    def _scope(self, method: str, path: str, query: Any, body: Any, headers: Mapping[str, str]) -> Scope:
        sent = {name.replace("_", "-").lower(): value for name, value in headers.items()}
        if self.token is not None:
            sent.setdefault("authorization", f"Bearer {self.token}")
        if body is not None:
            sent.setdefault("content-type", "application/json")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": urlencode(query).encode(),
            "root_path": "",
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in sent.items()],
            "client": self.peer,
            "server": ("remuda.test", 80),
            "state": {},
        }


class Stream:
    """An answer that is still coming."""

    def __init__(self, exchange: "_Exchange") -> None:
        self._exchange = exchange

    async def head(self) -> Reply:
        """Return status and headers."""
        await self._exchange.has_begun.wait()
        assert self._exchange.status != UNDOCUMENTED, "see the complaint in the body"
        return Reply(self._exchange.status, self._exchange.headers, b"")

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield what comes, until it ends."""
        while (chunk := await self._exchange.chunks.get()) is not None:
            if chunk:
                yield chunk


class _Exchange:
    """Both ends of one request."""

    def __init__(self, body: bytes) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.cookies: tuple[str, ...] = ()
        self.chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.has_begun = asyncio.Event()
        self._body: bytes | None = body
        self._is_left = asyncio.Event()

    async def receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._is_left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            self.cookies = tuple(value.decode() for name, value in message["headers"] if name == b"set-cookie")
            self.has_begun.set()
            return
        self.chunks.put_nowait(message.get("body", b""))
        if not message.get("more_body", False):
            self.chunks.put_nowait(None)

    def leave(self) -> None:
        self._is_left.set()

    def reply(self) -> Reply:
        chunks = []
        while not self.chunks.empty():
            chunks.append(self.chunks.get_nowait() or b"")
        assert self.status, "the app answered"
        body = b"".join(chunks)
        if self.status == UNDOCUMENTED:
            raise UndocumentedError(body.decode())
        return Reply(self.status, self.headers, body, self.cookies)


async def _run(app: ASGIApp, scope: Scope, exchange: _Exchange) -> None:
    try:
        await app(scope, exchange.receive, exchange.send)
    finally:
        exchange.chunks.put_nowait(None)
