"""What a handler may return besides the answer itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from remuda.store.contract import Store, View
from remuda.store.objects import ResourceT

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
