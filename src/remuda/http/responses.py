"""Responses: the HTTP response, the results that a service method may return, and ETags.

An ETag covers the uid and the writable part of an object's view, never its status, so an observation that arrives
between a read and a write does not fail the write. ETags are strong: two states have the same one if a write to either
would mean the same.

An `EtagView` renders an object's JSON with its ETag in front, at a fixed width. The store caches both together, so a
cached GET computes no hash, and a list uses the same bytes and drops the ETags. `split_etag` separates them.

A `GuardedView` shows a part of an object only to readers with a further permission. It is two views, and each reader
gets one of them. The ETag of the other one does not depend on the hidden part: otherwise guesses could be compared.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import msgspec

from remuda.access.principal import Context, Principal
from remuda.http.asgi import Receive, Send
from remuda.kernel.encoding import canonical_json
from remuda.kernel.errors import PreconditionFailed
from remuda.store.contract import Event, IndexEntry, Selection, Store, View, field_index
from remuda.store.objects import NAME_LABEL, Resource, ResourceT
from remuda.store.validation import is_label_value

Header = tuple[bytes, bytes]
"""A name in lower case, and its value."""

JSON: Header = (b"content-type", b"application/json")

HTML: Header = (b"content-type", b"text/html; charset=utf-8")

WHOLE = "remuda.whole"
"""Extension of the ASGI message that begins a response: its whole body follows at once."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BODILESS = frozenset({204, 304})


class Response(msgspec.Struct, frozen=True):
    """An HTTP response."""

    status: int
    body: bytes | AsyncIterator[bytes] = b""
    """The whole body, or chunks that are sent as they are produced."""
    headers: tuple[Header, ...] = ()

    async def send(self, send: Send, more: tuple[Header, ...] = (), *, receive: Receive | None = None) -> None:
        """Send the response with further headers. With `receive`, chunks end when the client disconnects."""
        headers = [*self.headers, *more]
        if isinstance(self.body, bytes):
            if self.status not in _BODILESS:
                headers.append((b"content-length", b"%d" % len(self.body)))
            await send({"type": "http.response.start", "status": self.status, "headers": headers, WHOLE: True})
            await send({"type": "http.response.body", "body": self.body})
            return
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        if receive is None:
            await _send_chunks(self.body, send)
        else:
            await _send_until_disconnect(self.body, send, receive)

    async def send_head(self, send: Send, more: tuple[Header, ...] = ()) -> None:
        """Send the response to HEAD: that of GET without the body."""
        headers = [*self.headers, *more]
        if not isinstance(self.body, bytes):
            await _close(self.body)
        elif self.status not in _BODILESS:
            headers.append((b"content-length", b"%d" % len(self.body)))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    def with_headers(self, *headers: Header) -> "Response":
        return msgspec.structs.replace(self, headers=(*self.headers, *headers))


def wire_headers(headers: Mapping[str, str]) -> list[Header]:
    """Encode headers. One with a control character could begin another header, and is a defect."""
    for name, value in headers.items():
        if _CONTROL.search(value):
            raise ValueError(f"the header {name} has a control character")
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


async def _send_chunks(chunks: AsyncIterator[bytes], send: Send) -> None:
    try:
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        await _close(chunks)


async def _send_until_disconnect(chunks: AsyncIterator[bytes], send: Send, receive: Receive) -> None:
    # A server reports a disconnect to `receive`, and not to `send`.
    sending = asyncio.ensure_future(_send_chunks(chunks, send))
    disconnect = asyncio.ensure_future(_wait_for_disconnect(receive))
    sending.add_done_callback(_retrieve_exception)
    try:
        await asyncio.wait((sending, disconnect), return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
    finally:
        for task in (sending, disconnect):
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task


def _retrieve_exception(task: asyncio.Future[None]) -> None:
    """Retrieve the exception of a task that may no longer be awaited, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _close(chunks: AsyncIterator[bytes]) -> None:
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()


ResponseT = TypeVar("ResponseT")


class Rendered(msgspec.Struct, Generic[ResponseT], frozen=True):
    """A response that is JSON already, as `Store.get_view` returns it."""

    body: bytes
    etag: str | None = None
    headers: Mapping[str, str] = {}
    has_secret: bool = False
    """Whether it must not be stored by anyone on its way (`no-store`)."""


class OtherResponse(msgspec.Struct, Generic[ResponseT], frozen=True):
    """The alternative response of a route (`Route.other`), such as that of a dry run."""

    response: ResponseT


class HtmlPage(msgspec.Struct, frozen=True):
    """An HTML page."""

    html: str
    status: int = 200
    headers: Mapping[str, str] = {}
    """They replace those that every page has (`pages`), such as `Content-Security-Policy`."""
    cookies: tuple[str, ...] = ()
    """Values of `Set-Cookie` headers."""


class Redirect(msgspec.Struct, frozen=True):
    """A redirect of the browser, with status 302."""

    location: str
    headers: Mapping[str, str] = {}
    cookies: tuple[str, ...] = ()
    """Values of `Set-Cookie` headers."""


@dataclass(frozen=True, slots=True)
class StoredForm:
    """The form of rendered objects in the store. Only objects that exist for callers are stored in it."""

    name: str
    is_visible: Callable[[Mapping[str, str]], bool]
    """Returns whether the caller may see such an object with these labels, the display name left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection(Generic[ResourceT, ResponseT]):
    """Stored objects to be listed, paged or watched. The query decides which, and all three see the same objects."""

    store: Store
    kind: type[ResourceT]
    view: View[ResourceT]
    """Renders one object. The store caches by this function, so it must not be created for each call."""
    labels: Mapping[str, str] = field(default_factory=dict)
    index: tuple[str, str] | None = None
    scopes: Sequence[IndexEntry] | None = None
    """Index entries under one of which each object is found that the caller may read: only what is there is read, and
    of none nothing. None if that is everything, or more than a union of indexes is good for. `visible` decides."""
    visible: Callable[[ResourceT], bool] | None = None
    """Whether the caller may see an object. None if the labels already decide it, which lets a list be served from the
    cache. A watch notices a change of visibility only if the labels or a declared index changed too, so this must
    depend on nothing else."""
    selection: Hashable = None
    """Equal for collections that select the same objects for readers with the same permissions: then whole lists are
    kept for the next request (`list_cache`). None if `visible` depends on anything else."""
    stored_form: StoredForm | None = None
    """The form in which the store keeps rendered objects without guarded parts; None if it keeps none."""
    reader: Principal | None = None
    """The reader, if the view is guarded; without one, all objects are shown without their guarded parts."""

    @property
    def is_empty(self) -> bool:
        """Whether the caller may read nothing, whatever there is."""
        return self.scopes is not None and not self.scopes

    @property
    def listed(self) -> Selection:
        """The filter with which the store lists the objects; `visible` decides about each."""
        return Selection(labels=self.labels, index=self.index, any_of=self.scopes)

    def changes(self, store: Store, since: str) -> AsyncIterator[Event[ResourceT]]:
        """Return the store's watch of the objects after a version; `visible` decides about each."""
        any_of = self.scopes
        if any_of is None and self.index is not None:
            any_of = [(field_index(self.index[0]), self.index[1])]
        return store.watch(self.kind, since=since, labels=self.labels, any_of=any_of)

    def named(self, name: str) -> "Collection[ResourceT, ResponseT]":
        """Return the objects with exactly this name."""
        selection = None if self.selection is None else (self.selection, name)
        if NAME_LABEL in self.store.registry.of(self.kind).unindexed:
            return replace(self, visible=self._name_filter(name), selection=selection, stored_form=None)
        if not is_label_value(name):  # no object has it
            return replace(self, scopes=(), selection=selection)
        return replace(self, labels={**self.labels, NAME_LABEL: name}, selection=selection)

    def _name_filter(self, name: str) -> Callable[[ResourceT], bool]:
        is_visible = self.visible

        def is_named(resource: ResourceT) -> bool:
            return resource.metadata.labels.get(NAME_LABEL) == name and (is_visible is None or is_visible(resource))

        return is_named

    def view_of(self, resource: ResourceT) -> View[ResourceT]:
        """Return the view of an object for the reader."""
        return self.view.of(self.reader, resource) if isinstance(self.view, GuardedView) else self.view

    def is_same_for_all(self, resource: ResourceT) -> bool:
        """Return whether all readers see the same of an object, and nothing of it is secret."""
        if isinstance(self.view, GuardedView):
            return not self.view.hides_part_of(resource)
        return not self.store.registry.of(self.kind).has_secrets

    @property
    def has_secret(self) -> bool:
        """Whether a response may contain guarded parts."""
        return isinstance(self.view, GuardedView)


_DIGITS = 32
_WIDTH = _DIGITS + 2
"""The digits and two quotes."""


def etag_of(uid: str, writable: msgspec.Struct) -> str:
    """Return the ETag of an object's incarnation and state, with quotes."""
    state = hashlib.sha256(uid.encode() + b"\n" + canonical_json(writable)).hexdigest()
    return f'"{state[:_DIGITS]}"'


class EtagView(Generic[ResourceT, ResponseT]):
    """A view that renders the ETag before the JSON. The store caches by this object: create one per view."""

    __slots__ = ("read", "writable")

    def __init__(self, read: Callable[[ResourceT], ResponseT], writable: Callable[[ResourceT], msgspec.Struct]) -> None:
        self.read = read
        """Converts an object into its schema."""
        self.writable = writable
        """Returns the part that a client may change, which determines the ETag."""

    def __call__(self, resource: ResourceT) -> bytes:
        return etag_of(resource.uid, self.writable(resource)).encode() + msgspec.json.encode(self.read(resource))

    def of(self, reader: Principal | None, resource: ResourceT) -> "EtagView[ResourceT, ResponseT]":  # noqa: ARG002  see GuardedView
        """Return the view of an object for a reader: the same for all."""
        return self

    def shows_secret(self, resource: ResourceT) -> bool:  # noqa: ARG002  see GuardedView
        """Return whether the view shows a guarded part of an object."""
        return False


class _WholeView(EtagView[ResourceT, ResponseT]):
    """The view of a guarded object for readers who may see all of it."""

    __slots__ = ("_hidden",)

    def __init__(self, view: EtagView[ResourceT, ResponseT], hidden: Callable[[ResourceT], ResourceT]) -> None:
        super().__init__(view.read, view.writable)
        self._hidden = hidden

    def shows_secret(self, resource: ResourceT) -> bool:
        return self._hidden(resource) is not resource


class GuardedView(EtagView[ResourceT, ResponseT]):
    """Two views of an object, of which each reader gets one. By itself it shows no guarded part."""

    __slots__ = ("_is_shown", "_whole")

    def __init__(
        self,
        whole: EtagView[ResourceT, ResponseT],
        *,
        hidden: Callable[[ResourceT], ResourceT],
        is_shown: Callable[[Principal, ResourceT], bool],
    ) -> None:
        """Take as `hidden` the function that returns an object without its guarded part: the same if it has none."""
        super().__init__(lambda found: whole.read(hidden(found)), lambda found: whole.writable(hidden(found)))
        self._whole, self._is_shown = _WholeView(whole, hidden), is_shown

    def hides_part_of(self, resource: ResourceT) -> bool:
        """Return whether an object has a guarded part."""
        return self._whole.shows_secret(resource)

    def of(self, reader: Principal | None, resource: ResourceT) -> EtagView[ResourceT, ResponseT]:
        """Return the view of an object for a reader."""
        return self._whole if reader is not None and self._is_shown(reader, resource) else self


def etag_view(
    read: Callable[[ResourceT], ResponseT], writable: Callable[[ResourceT], msgspec.Struct]
) -> EtagView[ResourceT, ResponseT]:
    """Return a view whose bytes begin with the ETag of what `writable` returns. Create it once."""
    return EtagView(read, writable)


class Viewed(msgspec.Struct, Generic[ResponseT], frozen=True):
    """An object with its view. A caller in this process gets the schema; only an HTTP response renders JSON."""

    view: EtagView[Any, ResponseT]
    resource: Resource

    def schema(self) -> ResponseT:
        return self.view.read(self.resource)

    def rendered(self) -> Rendered[ResponseT]:
        return split_etag(self.view(self.resource), has_secret=self.view.shows_secret(self.resource))


def split_etag(rendered: bytes, *, has_secret: bool = False) -> Rendered[Any]:
    return Rendered(rendered[_WIDTH:], etag=rendered[:_WIDTH].decode(), has_secret=has_secret)


def without_etag(view: View[Any], rendered: bytes) -> bytes:
    """Return what a view rendered, without the ETag if there is one."""
    return rendered[_WIDTH:] if isinstance(view, EtagView) else rendered


def body_of(view: View[ResourceT], resource: ResourceT) -> bytes:
    """Render an object as it is in a list, without computing an ETag."""
    return msgspec.json.encode(view.read(resource)) if isinstance(view, EtagView) else view(resource)


def without_etags(view: View[Any], rendered: Sequence[bytes]) -> Sequence[bytes]:
    return [item[_WIDTH:] for item in rendered] if isinstance(view, EtagView) else rendered


def check_if_match(context: Context, etag: str, *, kind: str, name: str) -> None:
    """Raise PreconditionFailed unless If-Match is absent or matches this ETag."""
    expected = context.if_match
    if expected is None or expected.strip() == "*":
        return
    # A weak ETag keeps its W/ and equals none of ours, as the strong comparison for writes requires.
    if etag not in [tag.strip() for tag in expected.split(",")]:
        raise PreconditionFailed(kind, name)


def is_match(if_none_match: bytes, etag: bytes) -> bool:
    """Return whether an If-None-Match header names this ETag, by the weak comparison that reads use."""
    return if_none_match.strip() == b"*" or etag in [
        tag.strip().removeprefix(b"W/") for tag in if_none_match.split(b",")
    ]
