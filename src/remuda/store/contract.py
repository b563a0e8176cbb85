"""The store contract: one Protocol, one law, every backend.

Services see only this module. It was chosen so that a Kubernetes API server can keep it; the embedded SQLite backend
keeps it more strictly where it can. `tests/contract` holds one test per law and runs them on every backend.

Parts of what is stored, as far as a read can depend on them.

Whoever keeps what was made of several reads says of which: of a kind as a whole, or of what is found under one name,
label or value of a declared index. A read by several of these depends on any one of them: whatever changes its result
is, or was, found under all.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec

from remuda.store.kinds import Kind, Registry
from remuda.store.logs import Record
from remuda.store.objects import Resource, ResourceT

Term = tuple[str, str]
"""The name of an index and a value: what an object is found under."""

Part = type[Resource] | tuple[type[Resource], Term]
"""A kind as a whole, or what of it is found under one term."""

NAME_INDEX = "name"
"""The index, which needs no entries, that finds an object by its name."""


def label_index(key: str) -> str:
    """Return the index that finds objects by one label."""
    return f"label:{key}"


def field_index(name: str) -> str:
    """Return the index that a kind declares under `name`."""
    return f"field:{name}"


def named(kind: type[Resource], name: str) -> Part:
    """Return what `get` of this name depends on."""
    return kind, (NAME_INDEX, name)


def labelled(kind: type[Resource], key: str, value: str) -> Part:
    """Return what a list by this label depends on."""
    return kind, (label_index(key), value)


def indexed(kind: type[Resource], index: str, value: str) -> Part:
    """Return what a list by this value of a declared index depends on."""
    return kind, (field_index(index), value)


ItemT = TypeVar("ItemT")
View = Callable[[ResourceT], bytes]
"""Renders an object for readers. The store keeps its result beside the object until the object changes."""


@dataclass(frozen=True, slots=True)
class Page(Generic[ItemT]):
    """A part of a list, in the order of names."""

    items: Sequence[ItemT]
    version: str
    """The version of the list's first page: watch from here and nothing is missed. What was written while the list was
    read may be in it already, and is told again."""
    next: str | None
    """Hand this to the next call to go on; None on the last page."""


class Change(msgspec.Struct, Generic[ResourceT], frozen=True, gc=False):
    """Something happened to one object."""

    type: Literal["added", "modified", "deleted"]
    version: str
    """Watch from here to continue after this change."""
    resource: ResourceT
    """The object after the change; of a deleted one, its last state."""
    before: ResourceT | None = None
    """The state before, if its labels or what a declared index finds it by were another: only then can an object have
    entered or left what a reader may see."""


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Nothing happened up to this version: a reader that was away may resume here."""

    version: str


Event = Change[ResourceT] | Bookmark
"""What a watch yields."""


@dataclass(frozen=True, slots=True)
class Referrer:
    """An object that names another, which therefore cannot go."""

    kind: Kind[Any]
    name: str


class Store(Protocol):
    """Objects with versions, in one flat space.

    **Create.** Fails with AlreadyExists on a taken name. Stores neither a status nor a uid of the caller's: the store
    gives a new uid at each create, so an object made again is another incarnation.

    **Update.** `update` writes metadata and spec, `update_status` writes status, neither touches the other's part.
    Both take the version that was read and fail with Conflict on any other, before anything else is judged. Fields
    that our types do not know survive. Maps are merged by key and lists replaced whole, except lists with a declared
    key, which are merged item by item. A write that changes nothing is no write: no version, no event.

    **Generation.** Moves when the spec changes or deletion is requested, and by nothing else.

    **Delete.** Takes the uid and, if wanted, the version as a precondition (Conflict). An object with finalizers is
    marked with a deletion time and goes when its last finalizer goes; none can be added after the mark. Deleting a
    marked object again is fine and writes nothing.

    **Owners.** No child is left behind: deleting an owner deletes its children, and the owner goes last. A child with
    several owners goes with the last of them. A child of a dying owner is refused, or, where a backend cannot refuse
    it, collected.

    **References.** What is referred to cannot go: it is marked and goes when its last referrer went. A referrer to an
    absent or marked target is refused. Who refers to whom is read from an index and never written onto the target.
    What an owner's own cascade removes does not block that cascade.

    **Reads.** A list is in the order of names, by label through an index, in pages by key. You read your own writes.
    Names, labels and references that some backend would refuse are refused by all (Invalid).

    **Watch.** One kind, from a version: every change after it, in order, once, filtered by label (an object that
    leaves the filter arrives as deleted, one that enters it as added), with bookmarks. A reader that is too old or
    too slow is told Gone: list again, then watch from that list's version. A version that lies ahead is waited for,
    then Gone. The versions of one object never go back. Versions are opaque. Nothing is promised across kinds. A change
    of labels, or of what a declared index finds an object by, carries the state before.

    Every method raises Unavailable while the storage behind it fails; what was acknowledged is never lost.
    """

    registry: Registry

    async def create(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
        """Store a new object, together with its log records."""
        ...

    async def get(self, kind: type[ResourceT], name: str) -> ResourceT:
        """Return the object, or raise NotFound."""
        ...

    async def get_view(self, kind: type[ResourceT], name: str, view: View[ResourceT]) -> bytes:
        """Return the rendered object, from the cache if it is there."""
        ...

    async def list(
        self,
        kind: type[ResourceT],
        *,
        labels: Mapping[str, str] | None = None,
        index: tuple[str, str] | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Page[ResourceT]:
        """Return the objects that carry all `labels` and lie under this value of a declared index."""
        ...

    async def list_views(
        self,
        kind: type[ResourceT],
        view: View[ResourceT],
        *,
        labels: Mapping[str, str] | None = None,
        index: tuple[str, str] | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Page[bytes]:
        """Return what `list` does, rendered."""
        ...

    async def list_names(
        self,
        kind: type[ResourceT],
        *,
        labels: Mapping[str, str] | None = None,
        index: tuple[str, str] | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Page[str]:
        """Return the names of what `list` does. No object is read, so none that is unreadable stands in the way."""
        ...

    async def update(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
        """Write metadata and spec over the version that was read."""
        ...

    async def update_status(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
        """Write status over the version that was read."""
        ...

    async def delete(
        self,
        kind: type[ResourceT],
        name: str,
        *,
        uid: str,
        version: str | None = None,
        unused: bool = False,
        log: Sequence[Record] = (),
    ) -> ResourceT | None:
        """Request deletion. Return the marked object, or None if it is gone already.

        With `unused` it raises Conflict if something refers to the object: between a look and this write somebody may
        have come. Kubernetes has no such condition of a write, so there the very last moment is not covered: what comes
        in it keeps the object, marked as it is, until it goes itself.
        """
        ...

    def stamp(self, parts: Iterable[Part] | None = None) -> int:
        """Return a number that is a higher one as soon as a read of one of these parts, or of anything, could be.

        It is of this process and of no meaning elsewhere: what is made of several objects can be kept for as long as
        the stamp of the parts that they were read from is no higher than that of everything was before they were read.
        """
        ...

    async def referrers(self, kind: type[ResourceT], name: str, *, limit: int = 10) -> Sequence[Referrer]:
        """Return some of those that keep the object from going."""
        ...

    def watch(
        self, kind: type[ResourceT], *, since: str, labels: Mapping[str, str] | None = None
    ) -> AsyncIterator[Event[ResourceT]]:
        """Yield what happened after version `since`, without end."""
        ...
