"""Lists: JSON arrays in the order of ids, whole or in pages, with continue tokens and resume cursors.

Without `limit` a list is complete; a long one is streamed in slices, so that neither memory nor the time on the event
loop grows with it. With `limit` it is a page: `X-Continue` and a `Link` to the next page are sent as long as there is
more. `X-Resource-Version` is that of the first page: the cursor from which a watch continues.

Permissions are applied to what was read, so a page may be short, even empty, without being the last: a request reads
ten times its limit at most. The continue token names the last key that was *read*, and is sealed for its list and
caller, who may not know that object. A cursor is a store version with a digest of the reader's permissions. Changes
alone do not show what becomes visible because permissions changed, so it is valid under equal permissions only.
"""

import hashlib
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from remuda.access.principal import AccessList, Permission
from remuda.http.binding import query_pairs
from remuda.http.buffer_shares import SLICE_BYTES
from remuda.http.errors import NO_CACHE, NO_STORE
from remuda.http.list_cache import CachedList, ListCache, LongList, array
from remuda.http.page_reads import Reading, page_slots
from remuda.http.responses import JSON, Collection, Header, Response, is_match, without_etag, without_etags
from remuda.http.schema import ListQuery, PageQuery
from remuda.kernel.clock import yield_to_loop
from remuda.kernel.errors import Gone, Invalid, Malformed, NotFound, RemudaError, Unsealable
from remuda.kernel.sealing import Sealer
from remuda.kernel.secrets import Secret
from remuda.store.contract import Page, View


class PageTokens:
    """Continue tokens of one caller at one path, or in one log."""

    __slots__ = ("_caller", "_sealer", "path")

    def __init__(self, sealer: Sealer, *, path: str, caller: str) -> None:
        self._sealer, self._caller = sealer, caller
        self.path = path

    def write(self, collection: Collection[Any, Any], key: str) -> str:
        return self._sealer.seal(Secret(key), context=self._context(collection))

    def read(self, collection: Collection[Any, Any], token: str) -> str:
        """Return the key, or raise Malformed if the token was not issued to this caller for this list."""
        try:
            return self._sealer.open(token, context=self._context(collection)).reveal()
        except Unsealable:
            raise bad_token() from None

    def write_position(self, position: int) -> str:
        return self._sealer.seal(Secret(str(position)), context=self._sealed_for())

    def read_position(self, token: str) -> int:
        """Return the position, or raise Malformed if the token was not issued to this caller for this log."""
        try:
            return int(self._sealer.open(token, context=self._sealed_for()).reveal())
        except Unsealable:
            raise bad_token() from None

    def _context(self, collection: Collection[Any, Any]) -> str:
        return self._sealed_for(collection.kind.__name__, sorted(collection.labels.items()), collection.index)

    def _sealed_for(self, *listed: object) -> str:
        return msgspec.json.encode(("continue", self.path, self._caller, *listed)).decode()


def bad_token() -> Malformed:
    """Return the error for a token that is not one of this list."""
    problem = "is not a token of this list"
    return Malformed(f'invalid path/query element: "continue" {problem}, start without it', [("continue", problem)])


_CURSOR = re.compile(r"([0-9]{1,18})-([0-9a-f]{16})")
_DIGEST_BYTES = 32
_SHOWN_DIGITS = 16
"""Digits of the digest in a cursor. What a stream shows does not depend on it."""


class CursorAccessChanged(Gone):
    """Raised when a cursor was issued under other permissions; list again, then watch from that list."""

    def __init__(self, kind: str, version: str) -> None:
        super().__init__(kind, version)
        RemudaError.__init__(
            self,
            "Permissions have changed since, so the changes alone are not complete. "
            "List again, then watch from the version of that list.",
        )


class Cursors:
    """Cursors of readers with these permissions."""

    __slots__ = ("digest",)

    def __init__(self, access: AccessList) -> None:
        self.digest = access_digest(access)

    def write(self, version: str) -> str:
        return f"{version}-{self.digest[:_SHOWN_DIGITS]}"

    def read(self, cursor: str) -> str:
        """Return the version of a cursor, under whichever permissions; raise Malformed if it is invalid."""
        found = _CURSOR.fullmatch(cursor)
        if found is None:
            raise invalid_cursor()
        return found[1]

    def check(self, cursor: str, kind: str) -> None:
        """Raise Gone if a cursor was issued under other permissions."""
        if not cursor.endswith(f"-{self.digest[:_SHOWN_DIGITS]}"):
            raise CursorAccessChanged(kind, self.read(cursor))


def invalid_cursor() -> Malformed:
    problem = "is not an id of this stream"
    return Malformed(f"Last-Event-ID {problem}: leave it out to start over.", [("Last-Event-ID", problem)])


_KNOWN_DIGESTS: OrderedDict[int, tuple[AccessList, str]] = OrderedDict()
"""Digests by the identity of the access list, which is kept so that the identity stays its own."""
_MAX_DIGESTS = 1_024


def access_digest(access: AccessList) -> str:
    """Return a digest of permissions: equal permissions have equal ones."""
    known = _KNOWN_DIGESTS.get(id(access))
    if known is not None:
        return known[1]
    digest = _digest(access)
    _KNOWN_DIGESTS[id(access)] = access, digest
    if len(_KNOWN_DIGESTS) > _MAX_DIGESTS:
        _KNOWN_DIGESTS.popitem(last=False)
    return digest


def _digest(access: AccessList) -> str:
    organizations = sorted(access.organizations.items())
    permissions = (
        _plain(access.everywhere),
        [
            (
                name,
                _plain(granted.permissions),
                [(project, _plain(some)) for project, some in sorted(granted.projects.items())],
            )
            for name, granted in organizations
        ],
    )
    return hashlib.blake2b(msgspec.json.encode(permissions), digest_size=_DIGEST_BYTES).hexdigest()


def _plain(permissions: Iterable[Permission]) -> list[tuple[str, str]]:
    return sorted((each.endpoint, each.verb) for each in permissions)


SLICE = 100
"""Objects that are read before the event loop continues with other work."""
_STREAMED = 25
"""The same for a list that may be endless, and for objects that are rendered one by one, which takes longer."""
_WHOLE = 1_000
_WHOLE_BYTES = 1 << 20
"""A list of at most so many objects and bytes is one body."""
_PART_BYTES = 32 << 10
"""A longer list is sent in parts of this length."""
_FIRST_SLICE = 10
"""Objects in the first slice, whose size is not known."""
_READS_PER_ITEM = 10
"""Number of objects that a page may read for each that it may return."""


async def list_response(
    collection: Collection[Any, Any],
    query: ListQuery,
    tokens: PageTokens,
    cursors: Cursors,
    *,
    reading: Reading | None = None,
    query_string: str = "",
    lists: ListCache | None = None,
    if_none_match: bytes | None = None,
) -> Response:
    """Return the response with a page or the complete list, from the cache if there is one for it."""
    reading = reading or Reading(page_slots(), "")
    if query.limit is None and query.continue_ is None:
        if lists is None or collection.selection is None:
            return await _everything(collection, cursors, reading)
        found = await lists.get(collection, access=cursors.digest, query_length=len(query_string), reading=reading)
        if isinstance(found, CachedList):
            return _cached(found, cursors, if_none_match)
        return _long(collection, found, cursors, reading)
    limit = query.limit or _WHOLE
    token = tokens.read(collection, query.continue_) if query.continue_ is not None else None
    try:
        async with reading.page(limit):
            page = await _page(collection, limit, token, reading)
            body = array(without_etags(collection.view, page.items))
    except Invalid as error:
        if token is not None and error.field == "continue":
            raise bad_token() from None
        raise
    headers = [JSON, _version(page, cursors)]
    if page.next is not None:
        more = tokens.write(collection, page.next)
        headers += [(b"x-continue", more.encode()), (b"link", _link(tokens.path, query_string, limit, more))]
    return Response(200, body, tuple(headers))


async def read_items(collection: Collection[Any, Any], *, limit: int, after: str | None = None) -> Page[bytes]:
    """Read up to `limit` objects, and return those that the caller may see, rendered, with ETags if the view has them.

    The rendered bytes are shared by many readers. Removing ETags copies them, so do it for few at a time.
    """
    store, kind, visible = collection.store, collection.kind, collection.visible
    if visible is None and not collection.has_secret:
        return await store.list_views(kind, collection.view, **collection.listed, limit=limit, after=after)
    found = await store.list(kind, **collection.listed, limit=limit, after=after)
    items = []
    for number, resource in enumerate(found.items):
        if number % _STREAMED == 0:
            await yield_to_loop()
        if visible is None or visible(resource):
            try:
                items.append(await store.get_view(kind, resource.name, collection.view_of(resource)))
            except NotFound:
                continue  # it was deleted while the list was read
    return Page(items, found.version, found.next)


async def _everything(collection: Collection[Any, Any], cursors: Cursors, reading: Reading) -> Response:
    """Return a complete list: whole, or in parts if that could use much memory."""
    limit = _WHOLE if collection.visible is None else SLICE
    async with reading.page():
        first = await _page(collection, limit, None, reading, most_read=limit)
        headers = JSON, _version(first, cursors)
        if first.next is None and sum(map(len, first.items)) <= _WHOLE_BYTES:
            return Response(200, array(without_etags(collection.view, first.items)), headers)
    return Response(200, _chunks(collection, reading), headers)


def _cached(found: CachedList, cursors: Cursors, if_none_match: bytes | None) -> Response:
    """Return a list, or 304 if the client has it already."""
    cursor = b"x-resource-version", cursors.write(found.mark.version).encode()
    headers = (cursor, (b"etag", found.etag), NO_STORE[0] if found.secrets else NO_CACHE)
    if if_none_match is not None and is_match(if_none_match, found.etag):
        return Response(304, b"", headers)
    return Response(200, found.body, (JSON, *headers))


def _long(collection: Collection[Any, Any], found: LongList, cursors: Cursors, reading: Reading) -> Response:
    """Return a list in parts that is too long for the cache."""
    cursor = b"x-resource-version", cursors.write(found.version).encode()
    cache_control = NO_STORE[0] if collection.has_secret else NO_CACHE
    return Response(200, _chunks(collection, reading, found.first), (JSON, cursor, cache_control))


async def _chunks(
    collection: Collection[Any, Any], reading: Reading, first: Page[bytes] | None = None
) -> AsyncIterator[bytes]:
    """Yield an array in parts; each is read after the previous one was sent. `first` is without ETags."""
    opening, slices = b"[", SliceReader(collection, most=_STREAMED, slice_bytes=SLICE_BYTES)
    if first is None:
        async with reading.slice():
            view, page = collection.view, await slices.read()
    else:
        view, page = bytes, first
    del first
    while True:
        for batch in batches(view, page.items, _PART_BYTES):
            yield opening + b",".join(batch)
            opening = b","
        view = collection.view
        if page.next is None:
            break
        await yield_to_loop()
        async with reading.slice():
            page = await slices.read(page.next)
    yield b"]" if opening == b"," else b"[]"


class SliceReader:
    """Reader of a collection in slices, of which a slow reader occupies no more than some bytes, or one object."""

    def __init__(self, collection: Collection[Any, Any], *, most: int, slice_bytes: int) -> None:
        """Read at most `most` objects at once."""
        self._collection, self._most, self._slice_bytes = collection, most, slice_bytes
        self._limit = min(_FIRST_SLICE, most)

    async def read(self, after: str | None = None) -> Page[bytes]:
        """Return the next slice: again with fewer objects if they are large."""
        while True:
            page = await read_items(self._collection, limit=self._limit, after=after)
            size = sum(map(len, page.items))
            if size <= self._slice_bytes or self._limit == 1:
                break
            self._limit = max(1, self._limit // 4)
        if 2 * size <= self._slice_bytes:
            self._limit = min(2 * self._limit, self._most)
        return page


def batches(view: View[Any], items: Sequence[bytes], size: int) -> Iterator[list[bytes]]:
    """Yield items without ETags, in batches up to a size, which limits the copies that a reader can occupy."""
    start, size_so_far = 0, 0
    for end, item in enumerate(items):
        if size_so_far and size_so_far + len(item) > size:
            yield [without_etag(view, each) for each in items[start:end]]
            start, size_so_far = end, 0
        size_so_far += len(item)
    if size_so_far:
        yield [without_etag(view, each) for each in items[start:]]


async def _page(
    collection: Collection[Any, Any], limit: int, after: str | None, reading: Reading, *, most_read: int | None = None
) -> Page[bytes]:
    """Return a page of the version at which its read began: shorter if objects are large or few of them visible."""
    items: list[bytes] = []
    read = size = 0
    enough = limit if collection.visible is None else (limit + 1) // 2
    most_read, version = most_read or _READS_PER_ITEM * limit, ""
    while True:
        count = min(limit - len(items), SLICE, most_read - read)
        page = await read_items(collection, limit=count, after=after)
        reading.count(len(page.items) if page.next is None else count)
        items += page.items
        size += sum(map(len, page.items))
        read, after, version = read + count, page.next, version or page.version
        if after is None or len(items) >= enough or read >= most_read or size > _WHOLE_BYTES:
            return Page(items, version, after)
        await yield_to_loop()


def _version(page: Page[bytes], cursors: Cursors) -> Header:
    return b"x-resource-version", cursors.write(page.version).encode()


def _link(path: str, query_string: str, limit: int, token: str) -> bytes:
    """Return the link to the next page: this request with another `continue`."""
    kept = [pair for pair in query_pairs(query_string.encode()) if pair[0] not in {"limit", "continue"}]
    query = urlencode([*kept, ("limit", str(limit)), ("continue", token)])
    return f'<{quote(path, safe="/%:@!$&()*+,;=~")}?{query}>; rel="next"'.encode()


def page_headers(query: PageQuery, token: str | None) -> Mapping[str, str]:
    """Return the headers of a page of a list that is not a collection, if there is more."""
    if token is None:
        return {}
    parameters = msgspec.to_builtins(query, str_keys=True) | {"continue": token}
    target = urlencode([(name, value) for name, value in parameters.items() if value is not None], doseq=True)
    return {"X-Continue": token, "Link": f'<?{target}>; rel="next"'}
