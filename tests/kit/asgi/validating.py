"""An app whose every answer is held against the API's own document as it passes, whoever asked and in whichever way.

An answer that is not documented never gets out: 599 comes in its place, with the complaint as its body, which no client
takes for anything else. A stream that tells of an undocumented event breaks off. In case that a client has time
with either, each complaint is kept for `assert_documented`, and is a line of the log, for processes that are killed.
"""

import structlog

from remuda.http.asgi import ASGIApp, Message, Receive, Scope, Send
from remuda.http.dispatch import path_of
from remuda.http.sse import EventReader
from tests.kit.asgi.contract import STREAM, Contract, Reply, UndocumentedError

UNDOCUMENTED = 599
"""The status that stands for an answer which is in no document."""


LINE = "undocumented answer"
"""What the log says of each complaint."""


class Validated:
    """An app, validated by a contract."""

    def __init__(self, app: ASGIApp, contract: Contract) -> None:
        self._app, self._contract = app, contract
        self._complaints: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        passage = _Passage(scope["method"], path_of(scope), self._contract, send)
        try:
            await self._app(scope, receive, passage.send)
        finally:
            if passage.complaint is not None:
                self._complaints.append(str(passage.complaint))
                structlog.get_logger().error(LINE, complaint=str(passage.complaint))
        if passage.complaint is not None and passage.has_broken_off:
            raise passage.complaint

    def assert_documented(self) -> None:
        """Fail if there was anything to complain of."""
        assert not self._complaints, self._complaints

    def forgive(self) -> None:
        """Forget the complaints so far, for whoever wanted them."""
        self._complaints.clear()


class _Passage:
    """One answer on its way out."""

    def __init__(self, method: str, path: str, contract: Contract, send: Send) -> None:
        self.complaint: UndocumentedError | None = None
        """What is wrong."""
        self.has_broken_off = False
        self._method, self._path, self._contract, self._out = method, path, contract, send
        self._start: Message = {}
        self._body = b""
        self._events = EventReader()
        self._is_stream = False

    async def send(self, message: Message) -> None:
        """Take what the app sends, and let out what is documented."""
        if message["type"] == "http.response.start":
            self._start = message
            self._is_stream = self._reply().media == STREAM and self._method == "GET"
            if self._is_stream and await self._passes():
                await self._out(message)
        elif self._is_stream:
            await self._send_events(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body", False) and await self._passes():
                await self._out(self._start)
                await self._out({"type": "http.response.body", "body": self._body})

    async def _send_events(self, message: Message) -> None:
        try:
            for event in self._events.feed(message.get("body", b"")):
                self._contract.check_event(self._path, event)
        except UndocumentedError as complaint:
            self.complaint, self.has_broken_off = complaint, True
            raise
        await self._out(message)

    async def _passes(self) -> bool:
        try:
            self._contract.check(self._method, self._path, self._reply())
        except UndocumentedError as complaint:
            self.complaint, self.has_broken_off = complaint, self._is_stream
            if self._is_stream:
                raise
            await self._out({"type": "http.response.start", "status": UNDOCUMENTED, "headers": []})
            await self._out({"type": "http.response.body", "body": str(complaint).encode()})
            return False
        return True

    def _reply(self) -> Reply:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in self._start["headers"]}
        return Reply(self._start["status"], headers, self._body)
