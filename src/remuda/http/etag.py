"""ETags: the state of an object that a caller may change.

A tag covers the uid and the writable part of the read view, never the status: an observation that arrives between a
read and a write does not refuse the write. Tags are strong; two objects have the same one if a write to either would
mean the same.

`tagged` makes a view whose bytes carry the tag in front, at a fixed width. The store caches them as one, so a warm GET
hashes nothing, and a list takes the same bytes and cuts the tags off. `untag` gives both back.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Generic

import msgspec

from remuda.access.principal import Context
from remuda.http.replies import AnswerT, Rendered
from remuda.kernel.encoding import canonical_json
from remuda.kernel.errors import PreconditionFailed
from remuda.store.contract import View
from remuda.store.objects import Resource, ResourceT

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
