"""An answer as it goes to the wire: status, headers and a body that is there or still comes.

What a handler may return besides the answer itself.

ETags: the state of an object that a caller may change.

A tag covers the uid and the writable part of the read view, never the status: an observation that arrives between a
read and a write does not refuse the write. Tags are strong; two objects have the same one if a write to either would
mean the same.

`tagged` makes a view whose bytes carry the tag in front, at a fixed width. The store caches them as one, so a warm GET
hashes nothing, and a list takes the same bytes and cuts the tags off. `untag` gives both back.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from remuda.access.principal import Context
from remuda.http.asgi import Receive, Send
from remuda.kernel.encoding import canonical_json
from remuda.kernel.errors import PreconditionFailed
from remuda.store.contract import Store, View
from remuda.store.objects import Resource, ResourceT

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


AnswerT = TypeVar("AnswerT")
"""What a route answers with."""


class Rendered(msgspec.Struct, Generic[AnswerT], frozen=True):
    """An answer that is JSON already, as `Store.get_view` returns it."""

    body: bytes
    etag: str | None = None
    headers: Mapping[str, str] = {}


class Other(msgspec.Struct, Generic[AnswerT], frozen=True):
    """The answer that a route gives in place of its usual one (`Route.other`), such as to a dry run."""

    answer: AnswerT


class Page(msgspec.Struct, frozen=True):
    """A page for a browser."""

    html: str
    status: int = 200
    headers: Mapping[str, str] = {}
    """They go before those that every page has (`pages`), such as its `Content-Security-Policy`."""
    cookies: tuple[str, ...] = ()
    """Each is the value of a `Set-Cookie` of its own."""


class Redirect(msgspec.Struct, frozen=True):
    """Sends a browser elsewhere, with 302."""

    location: str
    headers: Mapping[str, str] = {}
    cookies: tuple[str, ...] = ()
    """Each is the value of a `Set-Cookie` of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection(Generic[ResourceT, AnswerT]):
    """Stored objects to be listed, paged or watched: the query decides, and each way sees the same ones."""

    store: Store
    kind: type[ResourceT]
    view: View[ResourceT]
    """Renders one item. The store keeps what it renders, so this must be one function, not a new one each time."""
    labels: Mapping[str, str] = field(default_factory=dict)
    index: tuple[str, str] | None = None
    visible: Callable[[ResourceT], bool] | None = None
    """The caller may see it. Left out where the labels already say so, which lets a list be read from the cache.

    A watch notices that an object came into sight or left it only by a change that also changed its labels or a
    declared index, so what this asks must be among those."""


_DIGITS = 32
_WIDTH = _DIGITS + 2
"""The digits and a quote on either side."""


def etag_of(uid: str, writable: msgspec.Struct) -> str:
    """Return the tag of an incarnation in a state, with its quotes."""
    state = hashlib.sha256(uid.encode() + b"\n" + canonical_json(writable)).hexdigest()
    return f'"{state[:_DIGITS]}"'


class Tagged(Generic[ResourceT, AnswerT]):
    """A view with a tag in front. It is its own key in the store's cache, so make one per view, not one per call."""

    __slots__ = ("_writable", "read")

    def __init__(self, read: Callable[[ResourceT], AnswerT], writable: Callable[[ResourceT], msgspec.Struct]) -> None:
        self.read = read
        """Returns an object as clients read it."""
        self._writable = writable

    def __call__(self, resource: ResourceT) -> bytes:
        """Render an object, its tag first."""
        return etag_of(resource.uid, self._writable(resource)).encode() + msgspec.json.encode(self.read(resource))


def tagged(
    read: Callable[[ResourceT], AnswerT], writable: Callable[[ResourceT], msgspec.Struct]
) -> Tagged[ResourceT, AnswerT]:
    """Return a view whose bytes begin with the tag of what `writable` takes from the object. Keep the result."""
    return Tagged(read, writable)


class Shown(msgspec.Struct, Generic[AnswerT], frozen=True):
    """An object as clients read it. Who asks in this process gets just that: it is rendered for the wire alone."""

    view: Tagged[Any, AnswerT]
    resource: Resource

    def read(self) -> AnswerT:
        return self.view.read(self.resource)

    def rendered(self) -> Rendered[AnswerT]:
        """Return it as JSON, with its tag."""
        return untag(self.view(self.resource))


def untag(rendered: bytes) -> Rendered[Any]:
    """Take apart what a tagged view rendered."""
    return Rendered(rendered[_WIDTH:], etag=rendered[:_WIDTH].decode())


def bare(view: View[Any], rendered: bytes) -> bytes:
    """Return what a view rendered, without a tag if it has one."""
    return rendered[_WIDTH:] if isinstance(view, Tagged) else rendered


def bare_all(view: View[Any], rendered: Sequence[bytes]) -> Sequence[bytes]:
    """Do so for many."""
    return [item[_WIDTH:] for item in rendered] if isinstance(view, Tagged) else rendered


def check_match(context: Context, etag: str, *, kind: str, name: str) -> None:
    """Raise PreconditionFailed unless the caller's If-Match, if there is one, allows a write to this state."""
    wanted = context.if_match
    if wanted is None or wanted.strip() == "*":
        return
    # A weak tag keeps its W/ here and so equals none of ours, as the comparison for writes demands.
    if etag not in [tag.strip() for tag in wanted.split(",")]:
        raise PreconditionFailed(kind, name)
