"""Store contract: one Protocol, which every backend implements.

It asks for what a Kubernetes API server can guarantee; SQLite is stricter where it can be. `tests/contract` has a test
for each guarantee and runs them on every backend. A value that is derived from several reads names its dependencies:
kinds, or the objects under one name, label or value of a declared index. A read by several of these depends on any one
of them, because each change of its result changes an object that is, or was, found under all of them.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypedDict, TypeVar, Unpack

import msgspec

from remuda.store.kinds import Kind, Registry
from remuda.store.logs import Record
from remuda.store.objects import Resource, ResourceT

IndexEntry = tuple[str, str]
"""An index entry: the name of an index, and a value under which an object is found."""

Dependency = type[Resource] | tuple[type[Resource], IndexEntry]
"""A dependency of a read: a kind as a whole, or the objects under one of its index entries."""

NAME_INDEX = "name"
"""The index of objects by name. It needs no entries."""


def label_index(key: str) -> str:
    """Return the name of the index of objects by one label."""
    return f"label:{key}"


def field_index(name: str) -> str:
    """Return the name of the index that a kind declares as `name`."""
    return f"field:{name}"


def named(kind: type[Resource], name: str) -> Dependency:
    """Return the dependency of a `get` by name."""
    return kind, (NAME_INDEX, name)


def labelled(kind: type[Resource], key: str, value: str) -> Dependency:
    """Return the dependency of a list by label."""
    return kind, (label_index(key), value)


def indexed(kind: type[Resource], index: str, value: str) -> Dependency:
    """Return the dependency of a list by the value of a declared index."""
    return kind, (field_index(index), value)


ItemT = TypeVar("ItemT")
View = Callable[[ResourceT], bytes]
"""Renders an object for readers. The store caches the result until the object changes."""


class Selection(TypedDict, total=False):
    """Filter of a list: it returns the objects that match all of it. Without any, those are all of a kind."""

    labels: Mapping[str, str] | None
    index: tuple[str, str] | None
    """A declared index and the value that the objects have in it."""
    any_of: Sequence[IndexEntry] | None
    """Index entries: each object has at least one of them. Of none there are no objects, and nothing is read."""


class ListOptions(Selection, total=False):
    """Options of a list: what it returns, and which part of it."""

    limit: int | None
    after: str | None
    """The token of the page, from the one before."""


@dataclass(frozen=True, slots=True)
class Page(Generic[ItemT]):
    """A part of a list, ordered by name."""

    items: Sequence[ItemT]
    version: str
    """The version of the first page. A watch from here misses nothing, but may repeat changes of meanwhile."""
    next: str | None
    """The token for the next page; None on the last one."""


class Rendering(msgspec.Struct, frozen=True, gc=False):
    """A rendered state of an object without secrets, as lists show it to all who may read the object."""

    name: str
    version: str
    """The version of the object: with another one it is not returned any more."""
    labels: bytes
    """The labels as JSON, except the display name, so that many objects have the same."""
    body: bytes


class Change(msgspec.Struct, Generic[ResourceT], frozen=True, gc=False):
    """A change of one object."""

    type: Literal["added", "modified", "deleted"]
    version: str
    """The version from which a watch continues after this change."""
    resource: ResourceT
    """The object after the change; if it was deleted, its last state."""
    before: ResourceT | None = None
    """The state before, if labels or index values changed: then the object may have become visible or invisible."""


class Mark(msgspec.Struct, frozen=True):
    """A state of one kind, as reads in this process saw it."""

    version: str
    """The version from which a watch misses nothing that came after."""
    unrecorded: int = 0
    """Number of changes before it that are known only as such."""


class RecentChanges(msgspec.Struct, Generic[ResourceT], frozen=True):
    """The present state of a kind, and how it came from an earlier one."""

    mark: Mark
    changes: Sequence[Change[ResourceT]] | None
    """The changes in their order; None if they are not known any more: then read everything again."""


@dataclass(frozen=True, slots=True)
class Bookmark:
    """A statement that nothing else changed up to this version, from which a reader may resume."""

    version: str


Event = Change[ResourceT] | Bookmark
"""An item of a watch."""


@dataclass(frozen=True, slots=True)
class Referrer:
    """An object that refers to another one and so blocks its deletion."""

    kind: Kind[Any]
    name: str


class Store(Protocol):
    """Objects with versions, in one flat namespace per kind.

    **Create.** Fails with AlreadyExists if the name is taken. Ignores the caller's status and uid: the store assigns a
    new uid at each create, so an object that is created again is another incarnation.

    **Update.** `update` writes metadata and spec, `update_status` writes status; neither touches the other's part. Both
    take the version that was read and fail with Conflict on any other, before anything else is validated. Fields that
    our types do not know are preserved. Maps are merged by key and lists replaced as a whole, except lists with a
    declared key, which are merged item by item. A write that changes nothing is no write: no version, no event.

    **Generation.** Increases when the spec changes or deletion is requested, and only then.

    **Delete.** Takes the uid and optionally the version as a precondition (Conflict). An object with finalizers gets a
    deletion time and is removed with its last finalizer; none can be added after that. Deleting such an object again
    succeeds and writes nothing.

    **Owners.** No child is left behind: deleting an owner deletes its children, and the owner is removed last. A child
    with several owners is deleted with the last of them. A child of an owner that is being deleted is rejected, or,
    where a backend cannot reject it, collected.

    **References.** A referenced object cannot be removed: its deletion is pending until its last referrer is removed. A
    reference to a target that is absent or being deleted is rejected. Referrers are found through an index and never
    written to the target. References from objects that the deletion of an owner removes do not block that deletion.

    **Reads.** A list is ordered by name, by label through an index, in pages by key. A caller reads its own writes.
    Names, labels and references that some backend would reject are rejected by all (Invalid). A list by index entries
    reads what is under them, and not what is between.

    **Watch.** One kind, from a version: every change after it, in order, once, filtered by labels and index entries (an
    object that leaves the filter arrives as deleted, one that enters it as added), with bookmarks. Changes beyond the
    filter do not wake a watcher. A reader that is too old or too slow gets Gone: it lists again, then watches from that
    list's version. A version in the future is waited for, then Gone. The versions of one object never decrease.
    Versions are opaque. There is no guarantee across kinds. A change of labels, or of values in a declared index,
    carries the state before.

    Every method raises Unavailable while the storage fails. An acknowledged write is never lost.
    """

    registry: Registry

    async def create(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
        """Store a new object, together with its log records."""

    async def get(self, kind: type[ResourceT], name: str) -> ResourceT:
        """Return the object, or raise NotFound."""

    async def get_view(self, kind: type[ResourceT], name: str, view: View[ResourceT]) -> bytes:
        """Return the rendered object, from the cache if possible."""

    async def list(self, kind: type[ResourceT], **options: Unpack[ListOptions]) -> Page[ResourceT]:
        """Return the objects that match the options, in pages if `limit` is given."""

    async def list_views(
        self, kind: type[ResourceT], view: View[ResourceT], **options: Unpack[ListOptions]
    ) -> Page[bytes]:
        """Return the objects of `list`, rendered."""

    async def list_renderings(
        self, kind: type[ResourceT], form: str, **options: Unpack[ListOptions]
    ) -> Page[Rendering | ResourceT]:
        """Return the objects of `list`, each as its rendering in this form if one of its present state is stored."""

    def store_renderings(self, kind: type[Resource], form: str, renderings: Sequence[Rendering]) -> None:
        """Store renderings of present states later, at low priority, or never: they only save work after a start.

        Nothing in a rendering may be a secret. Renderings by another revision of the code are not returned.
        """

    async def list_names(self, kind: type[ResourceT], **options: Unpack[ListOptions]) -> Page[str]:
        """Return the names of the objects of `list`. No object is decoded, so an unreadable one is no obstacle."""

    async def update(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
        """Write metadata and spec, if the stored version is still the one that was read."""

    async def update_status(self, resource: ResourceT, *, log: Sequence[Record] = ()) -> ResourceT:
        """Write status, if the stored version is still the one that was read."""

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
        """Request deletion. Return the object that is being deleted, or None if it was removed at once.

        With `unused` it raises Conflict if there is a referrer, because one may have been created between the caller's
        check and this write. Kubernetes has no such precondition, so there a short interval remains: a referrer that is
        created in it blocks the removal, but the deletion stays requested.
        """

    def change_counter(self, dependencies: Iterable[Dependency] | None = None) -> int:
        """Return the change counter of these dependencies, or of the whole store.

        It increases whenever a read that depends on one of them could return something else. A value that is derived
        from several objects may be cached while the counter of its dependencies is not higher than the counter of the
        whole store was before they were read. It is local to this process.
        """

    def recent_changes(self, kind: type[ResourceT], since: Mark | None = None) -> RecentChanges[ResourceT]:
        """Return what changed since a mark of this process, from memory, up to the state that reads see now.

        Without a mark the changes are unknown, and there is only the mark of the present.
        """

    async def referrers(self, kind: type[ResourceT], name: str, *, limit: int = 10) -> Sequence[Referrer]:
        """Return some of the objects that block the object's removal."""

    def watch(
        self,
        kind: type[ResourceT],
        *,
        since: str,
        labels: Mapping[str, str] | None = None,
        any_of: Sequence[IndexEntry] | None = None,
    ) -> AsyncIterator[Event[ResourceT]]:
        """Yield the changes after version `since`, without end."""
