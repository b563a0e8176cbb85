"""Lists: bare arrays, in the order of ids.

Without `limit` a list is everything there is. What is short is one body; more is streamed, slice by slice, so that
neither memory nor anybody's turn on the loop grows with the list, whether its reader reads or not. With `limit` it is a
page: `X-Continue`, and the `Link` to the next page, are there as long as there is more. `X-Resource-Version` is always
that of the first page: the place (`places`) from which a watch goes on.

Rights are applied to what was read. So a page may be short, even empty, and still not be the last: `continue` stands
for the last key that was *looked at*, and is sealed, because that may be one that the caller must not know of. A
request for a page looks at ten times its limit at most; a page that is half full goes out as it is.

Lists: a collection of stored objects, whole, in pages, or watched as it changes.

Tokens for the place where a page of a list ended.

That place is the last object that was looked at, which may be one that the caller must not know of. So a token is
sealed: nobody can read it or make one, and it opens for the list and the caller that it was given to, and nowhere else.

Places: from where on a reader follows a collection, as it keeps them for us.

The id of an event and the version of a list are such places. Each is a version and a short digest of what the reader
could see then. Changes alone do not tell of what comes into sight, or leaves it, because rights have changed; so a
place is good under equal rights, whoever's they are, and gone under any other: begin anew there.
"""

import hashlib
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import msgspec

from remuda.access.principal import AccessList, Permission
from remuda.http.responses import JSON, Answer, Collection, Header, bare, bare_all
from remuda.http.routes import ListQuery, PageQuery
from remuda.kernel.clock import let_others_run
from remuda.kernel.errors import Gone, Invalid, Malformed, NotFound, RemudaError, Unsealable
from remuda.kernel.sealing import Sealer
from remuda.kernel.secrets import Secret
from remuda.store.contract import Page, View


class PageTokens:
    """The tokens of one caller at one path, or in one log."""

    __slots__ = ("_caller", "_sealer", "path")

    def __init__(self, sealer: Sealer, *, path: str, caller: str) -> None:
        self._sealer, self._caller = sealer, caller
        self.path = path

    def write(self, collection: Collection[Any, Any], place: str) -> str:
        """Return the token of a place in a collection."""
        return self._sealer.seal(Secret(place), context=self._context(collection))

    def read(self, collection: Collection[Any, Any], token: str) -> str:
        """Return the place, or raise Malformed if the token was not given to this caller for this list."""
        try:
            return self._sealer.open(token, context=self._context(collection)).reveal()
        except Unsealable:
            raise bad_token() from None

    def write_position(self, position: int) -> str:
        """Return the token of a position in a log."""
        return self._sealer.seal(Secret(str(position)), context=self._sealed_for())

    def read_position(self, token: str) -> int:
        """Return the position, or raise Malformed if the token was not given to this caller for this log."""
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


_PLACE = re.compile(r"(.+)-([0-9a-f]{16})")
_DIGEST_BYTES = 8


class SeenOtherwise(Gone):
    """Raised when a reader would go on from what it saw under other rights; list, then watch from the list."""

    def __init__(self, kind: str, version: str) -> None:
        super().__init__(kind, version)
        RemudaError.__init__(
            self,
            "Rights have changed since, so changes alone do not tell what there is to see: "
            "list again, then watch from the version of that list.",
        )


class Places:
    """The places of readers who have these rights."""

    __slots__ = ("_digest",)

    def __init__(self, access: AccessList) -> None:
        self._digest = _digest(access)

    def write(self, version: str) -> str:
        """Return the place where a version was seen."""
        return f"{version}-{self._digest}"

    def read(self, place: str) -> str:
        """Return the version of a place, whoever saw it; raise Malformed if it is no place."""
        found = _PLACE.fullmatch(place)
        if found is None:
            raise bad_place()
        return found[1]

    def check(self, place: str, kind: str) -> None:
        """Raise Gone if a place was seen under other rights."""
        if not place.endswith(f"-{self._digest}"):
            raise SeenOtherwise(kind, self.read(place))


def bad_place() -> Malformed:
    """Return the error for what is not a place in this collection."""
    problem = "is not an id of this stream"
    return Malformed(f"Last-Event-ID {problem}: leave it out to begin anew.", [("Last-Event-ID", problem)])


def _digest(access: AccessList) -> str:
    organizations = sorted(access.organizations.items())
    facts = (
        _plain(access.everywhere),
        [
            (
                name,
                _plain(held.permissions),
                [(project, _plain(some)) for project, some in sorted(held.projects.items())],
            )
            for name, held in organizations
        ],
    )
    return hashlib.blake2b(msgspec.json.encode(facts), digest_size=_DIGEST_BYTES).hexdigest()


def _plain(permissions: Iterable[Permission]) -> list[tuple[str, str]]:
    return sorted((each.endpoint, each.verb) for each in permissions)


SLICE = 100
"""Objects that are read before others get their turn."""
_STREAMED = 25
"""The same where a list may have no end, and where each is rendered by itself: then that takes as long again."""
_WHOLE = 1_000
_WHOLE_BYTES = 1 << 20
"""A list that has no more objects than that, and no more bytes, is one body."""
_PART_BYTES = 32 << 10
"""A longer one comes in parts of this length."""
_LOOKS = 10
"""How many objects a page may look at for each that it may return."""


async def answer_list(
    collection: Collection[Any, Any],
    query: ListQuery,
    tokens: PageTokens,
    places: Places,
    *,
    query_string: str = "",
) -> Answer:
    """Answer with a page, or with all there is."""
    if query.limit is None and query.continue_ is None:
        return await _everything(collection, places)
    limit = query.limit or _WHOLE
    token = tokens.read(collection, query.continue_) if query.continue_ is not None else None
    try:
        page = await _page(collection, limit, token)
    except Invalid as error:
        if token is not None and error.field == "continue":
            raise bad_token() from None
        raise
    headers = [JSON, _version(page, places)]
    last = Page(page.items, page.version, None)
    if page.next is not None:
        more = tokens.write(collection, page.next)
        headers += [(b"x-continue", more.encode()), (b"link", _link(tokens.path, query_string, limit, more))]
    return Answer(200, _body(collection, last), tuple(headers))


async def read_items(collection: Collection[Any, Any], *, limit: int, after: str | None = None) -> Page[bytes]:
    """Look at up to `limit` objects, and return those that the caller may see, rendered, with tags if the view has any.

    Many readers share what is rendered. Whoever takes tags off has a copy, and should take few at a time.
    """
    store, kind, view, visible = collection.store, collection.kind, collection.view, collection.visible
    labels, index = collection.labels, collection.index
    if visible is None:
        return await store.list_views(kind, view, labels=labels, index=index, limit=limit, after=after)
    found = await store.list(kind, labels=labels, index=index, limit=limit, after=after)
    items = []
    for number, resource in enumerate(found.items):
        if number % _STREAMED == 0:
            await let_others_run()
        if visible(resource):
            try:
                items.append(await store.get_view(kind, resource.name, view))
            except NotFound:
                continue  # it went while the list was read
    return Page(items, found.version, found.next)


async def _everything(collection: Collection[Any, Any], places: Places) -> Answer:
    first = await read_items(collection, limit=_WHOLE if collection.visible is None else SLICE)
    return Answer(200, _body(collection, first), (JSON, _version(first, places)))


def _body(collection: Collection[Any, Any], first: Page[bytes]) -> bytes | AsyncIterator[bytes]:
    """Return a page and all that follows it: whole, or in parts where a client that does not read would cost much."""
    if first.next is None and sum(map(len, first.items)) <= _WHOLE_BYTES:
        return _array(bare_all(collection.view, first.items))
    return _chunks(collection, first)


async def _chunks(collection: Collection[Any, Any], page: Page[bytes]) -> AsyncIterator[bytes]:
    """Yield an array in parts, of which each is read when the one before has been sent."""
    opening = b"["
    while True:
        for batch in batches(collection.view, page.items, _PART_BYTES):
            yield opening + b",".join(batch)
            opening = b","
        if page.next is None:
            break
        await let_others_run()
        page = await read_items(collection, limit=_STREAMED, after=page.next)
    yield b"]" if opening == b"," else b"[]"


def batches(view: View[Any], items: Sequence[bytes], size: int) -> Iterator[list[bytes]]:
    """Yield items without their tags, as many at a time as fit a size: a copy of that is all that a reader can hold."""
    start, held = 0, 0
    for end, item in enumerate(items):
        if held and held + len(item) > size:
            yield [bare(view, each) for each in items[start:end]]
            start, held = end, 0
        held += len(item)
    if held:
        yield [bare(view, each) for each in items[start:]]


async def _page(collection: Collection[Any, Any], limit: int, after: str | None) -> Page[bytes]:
    if collection.visible is None:
        return await read_items(collection, limit=limit, after=after)
    items: list[bytes] = []
    looked = 0
    while True:
        look = min(limit - len(items), SLICE, _LOOKS * limit - looked)
        page = await read_items(collection, limit=look, after=after)
        items += page.items
        looked, after = looked + look, page.next
        if page.next is None or 2 * len(items) >= limit or looked >= _LOOKS * limit:
            return Page(items, page.version, page.next)
        await let_others_run()


def _array(items: Sequence[bytes]) -> bytes:
    """Join items, copying each once: a bracket added to the whole would copy the whole."""
    if not items:
        return b"[]"
    first, *others = items
    return b",".join([b"[" + first, *others[:-1], others[-1] + b"]"]) if others else b"[" + first + b"]"


def _version(page: Page[bytes], places: Places) -> Header:
    return b"x-resource-version", places.write(page.version).encode()


def _link(path: str, query_string: str, limit: int, token: str) -> bytes:
    """Return the way to the next page: this request's, with another `continue`."""
    kept = [pair for pair in parse_qsl(query_string, keep_blank_values=True) if pair[0] not in {"limit", "continue"}]
    query = urlencode([*kept, ("limit", str(limit)), ("continue", token)])
    return f'<{quote(path, safe="/%:@!$&()*+,;=~")}?{query}>; rel="next"'.encode()


def page_headers(query: PageQuery, token: str | None) -> Mapping[str, str]:
    """Return how a list that is no collection says where its page ended, if there is more."""
    if token is None:
        return {}
    asked = msgspec.to_builtins(query, str_keys=True) | {"continue": token}
    target = urlencode([(name, value) for name, value in asked.items() if value is not None], doseq=True)
    return {"X-Continue": token, "Link": f'<?{target}>; rel="next"'}
