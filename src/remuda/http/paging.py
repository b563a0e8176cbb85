"""Lists: bare arrays, in the order of ids.

Without `limit` a list is everything there is. What fits one slice is one body; more is streamed, slice by slice, so
that neither memory nor anybody's turn on the loop grows with the list. With `limit` it is a page: `X-Continue`, and the
`Link` to the next page, are there as long as there is more. `X-Resource-Version` is always that of the first page.

Rights are applied to what was read. So a page may be short, even empty, and still not be the last: `continue` stands
for the last key that was *looked at*. A request for a page looks at ten times its limit at most; a page that is half
full goes out as it is.
"""

import hashlib
from collections.abc import AsyncIterator, Sequence
from types import coroutine
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import msgspec

from remuda.http.answers import JSON, Answer, Header
from remuda.http.etag import bare, bare_all
from remuda.http.replies import Collection
from remuda.http.routes import ListQuery
from remuda.kernel.errors import Invalid, Malformed, NotFound
from remuda.store.contract import Page

__all__ = ["SLICE", "answer_list", "let_others_run", "read_items"]

SLICE = 100
"""Objects of a long list that are read before others get their turn."""
_WHOLE = 1_000
"""A list up to this long is one body."""
_LOOKS = 10
"""How many objects a page may look at for each that it may return."""


async def answer_list(
    collection: Collection[Any, Any], query: ListQuery, *, path: str, query_string: str = ""
) -> Answer:
    """Answer with a page, or with all there is."""
    if query.limit is None and query.continue_ is None:
        return await _everything(collection)
    limit = query.limit or _WHOLE
    token = _read_token(collection, query.continue_) if query.continue_ is not None else None
    try:
        page = await _page(collection, limit, token)
    except Invalid as error:
        if token is not None and error.field == "continue":
            raise _bad_token() from None
        raise
    headers = [JSON, _version(page)]
    if page.next is not None:
        more = _write_token(collection, page.next)
        headers += [(b"x-continue", more.encode()), (b"link", _link(path, query_string, limit, more))]
    return Answer(200, _array(page.items), tuple(headers))


async def read_items(collection: Collection[Any, Any], *, limit: int, after: str | None = None) -> Page[bytes]:
    """Look at up to `limit` objects, and return those that the caller may see, rendered."""
    store, kind, view, visible = collection.store, collection.kind, collection.view, collection.visible
    labels, index = collection.labels, collection.index
    if visible is None:
        rendered = await store.list_views(kind, view, labels=labels, index=index, limit=limit, after=after)
        return Page(bare_all(view, rendered.items), rendered.version, rendered.next)
    found = await store.list(kind, labels=labels, index=index, limit=limit, after=after)
    items = []
    for resource in found.items:
        if visible(resource):
            try:
                items.append(bare(view, await store.get_view(kind, resource.name, view)))
            except NotFound:
                continue  # it went while the list was read
    return Page(items, found.version, found.next)


@coroutine
def let_others_run() -> Any:
    """Give up the loop for a turn. No time passes, so no clock is asked."""
    yield


async def _everything(collection: Collection[Any, Any]) -> Answer:
    first = await read_items(collection, limit=_WHOLE if collection.visible is None else SLICE)
    headers = (JSON, _version(first))
    if first.next is None:
        return Answer(200, _array(first.items), headers)
    return Answer(200, _chunks(collection, first), headers)


async def _chunks(collection: Collection[Any, Any], page: Page[bytes]) -> AsyncIterator[bytes]:
    """Yield an array in parts, of which each is read when the one before has been sent."""
    opening = b"["
    while True:
        if page.items:
            yield opening + b",".join(page.items)
            opening = b","
        if page.next is None:
            break
        await let_others_run()
        page = await read_items(collection, limit=SLICE, after=page.next)
    yield b"]" if opening == b"," else b"[]"


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


def _version(page: Page[bytes]) -> Header:
    return b"x-resource-version", page.version.encode()


def _link(path: str, query_string: str, limit: int, token: str) -> bytes:
    """Return the way to the next page: this request's, with another `continue`."""
    kept = [pair for pair in parse_qsl(query_string, keep_blank_values=True) if pair[0] not in {"limit", "continue"}]
    query = urlencode([*kept, ("limit", str(limit)), ("continue", token)])
    return f'<{quote(path, safe="/%:@!$&()*+,;=~")}?{query}>; rel="next"'.encode()


def _scope(collection: Collection[Any, Any]) -> str:
    """Return what tells the tokens of one list from those of another."""
    facts = (collection.kind.__name__, sorted(collection.labels.items()), collection.index)
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()[:12]


def _write_token(collection: Collection[Any, Any], token: str) -> str:
    return f"{_scope(collection)}.{token}"


def _read_token(collection: Collection[Any, Any], text: str) -> str:
    scope, _, token = text.partition(".")
    if scope != _scope(collection) or not token:
        raise _bad_token()
    return token


def _bad_token() -> Malformed:
    problem = "is not a token of this list"
    return Malformed(f'invalid path/query element: "continue" {problem}, start without it', [("continue", problem)])
