"""References that come over the API: what of another service keeps an object of ours, written as a finalizer.

Reading what may not be there, or may be somebody else's.

Something that is marked is about to go. Where `marked` is False it counts as gone already.

What every write of a service has in common.

Asking for an object to go, the same for all of them.

Objects that a release or a configuration brings along, as they come into the store at every start.

Several processes may start at once: who comes second looks at what the first one wrote.

What somebody's request did to an object, told in the object's timeline.

Controllers tell theirs (`reconcile.run`), and so do operations (`operations.reporter`). This is for what a request does
by itself: hand the record over with the write, so that neither is kept without the other.

Turns: who wants to change the same thing waits for the other, instead of colliding with it.

Only within this process, and only for the sake of speed and of callers who would have to try again: what holds between
processes is that writes compare versions.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import msgspec

from remuda.access.principal import Context
from remuda.http.responses import check_match, etag_of
from remuda.kernel.errors import AlreadyExists, Conflict, Invalid, NotFound
from remuda.resources.conventions import ORGANIZATION
from remuda.store.contract import Store
from remuda.store.kinds import Kind
from remuda.store.logs import Record, subject_of
from remuda.store.objects import OURS, Resource, ResourceT
from remuda.store.validation import check_qualified


async def find(store: Store, kind: type[ResourceT], name: str, *, marked: bool = True) -> ResourceT | None:
    """Return an object, or None if it is not there."""
    try:
        found = await store.get(kind, name)
    except NotFound:
        return None
    return found if marked or not found.is_marked else None


async def is_there(store: Store, kind: type[ResourceT], name: str, *, marked: bool = True) -> bool:
    """Tell whether an object is there."""
    return await find(store, kind, name, marked=marked) is not None


async def find_in(
    store: Store, kind: type[ResourceT], name: str, organization: str | None, *, marked: bool = True
) -> ResourceT | None:
    """Return an object of this organization (of none, if that is None), or None if there is no such one."""
    found = await find(store, kind, name, marked=marked)
    return found if found is not None and found.metadata.labels.get(ORGANIZATION) == organization else None


async def get_in(
    store: Store, kind: type[ResourceT], name: str, organization: str, *, marked: bool = True
) -> ResourceT:
    """Return an object of this organization, or raise NotFound: another one's is as good as none."""
    found = await find_in(store, kind, name, organization, marked=marked)
    if found is None:
        raise NotFound(kind.__name__, name)
    return found


T = TypeVar("T")

_TRIES = 10


def check_state(context: Context, found: Resource, writable: msgspec.Struct) -> None:
    """Raise PreconditionFailed unless the object is what the caller has seen, if it says what that was."""
    check_match(context, etag_of(found.uid, writable), kind=type(found).__name__, name=found.name)


def witnessed(context: Context, plural: str, found: Resource) -> Sequence[Record]:
    """Return the audit record of a write to an object, for the commit of that write."""
    return context.witness(plural, found.name, organization=found.metadata.labels.get(ORGANIZATION))


def each_once(names: Iterable[str]) -> tuple[str, ...]:
    """Return what somebody lists without repetitions, in their order."""
    return tuple(dict.fromkeys(names))


async def until_written(write: Callable[[], Awaitable[T]]) -> T:
    """Read, judge and write again when somebody else wrote in between: a controller's status is no lost update."""
    for _ in range(_TRIES - 1):
        try:
            return await write()
        except Conflict:
            continue
    return await write()


async def request_deletion(
    store: Store,
    context: Context,
    found: Resource,
    writable: msgspec.Struct,
    log: Sequence[Record],
    *,
    unused: bool = False,
    judged: bool = False,
) -> None:
    """Mark what was found, if it is what the caller has seen. What is marked already stays as it is, unwitnessed.

    With `unused` it raises Conflict if something refers to it by now, and with `judged` if it is not as it was found,
    so that its caller looks again.
    """
    check_state(context, found, writable)
    if found.is_marked:
        return
    version = found.version if judged or context.if_match is not None else None
    await store.delete(type(found), found.name, uid=found.uid, version=version, unused=unused, log=log)


async def seed(store: Store, wanted: ResourceT, changed: Callable[[ResourceT], ResourceT]) -> None:
    """Make `wanted` where it is missing; where it is there, write what `changed` makes of it, if that is another."""

    async def write() -> None:
        found = await find(store, type(wanted), wanted.name)
        if found is None:
            await _create(store, wanted)
        elif (after := changed(found)) != found:
            await store.update(after)

    await until_written(write)


async def _create(store: Store, wanted: ResourceT) -> None:
    try:
        await store.create(wanted)
    except AlreadyExists:  # another process was faster: look at what it wrote
        raise Conflict(type(wanted).__name__, wanted.name) from None


_encode = msgspec.json.Encoder(order="deterministic").encode


def requested(context: Context, kind: Kind[ResourceT], found: ResourceT, event: str, **facts: Any) -> Record:
    """Return the entry for what a caller did to an object.

    `event` is for programs: one CamelCase word that says what was done, such as `DeletionRequested`. Facts are JSON,
    for everybody's eyes.
    """
    said = {
        **facts,
        "event": event,
        "uid": found.uid,
        "generation": found.metadata.generation,
        "actor": context.principal.who,
        "traceId": context.trace_id,
    }
    return Record(stream="timeline", subject=subject_of(kind.qualified, found.name), data=msgspec.Raw(_encode(said)))


class Turns:
    """A queue for each key that anybody asks for."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def of(self, key: str) -> AsyncIterator[None]:
        """Have the key to oneself."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            yield


_NAMED = 5
_NOUNS: Mapping[str, str] = {
    "computeinstances": "instance",
    "filestorages": "file storage",
    "loadbalancers": "load balancer",
    "networks": "network",
    "securitygroups": "security group",
    "servers": "server",
    "sshcertificateauthorities": "SSH certificate authority",
}
"""What people call a kind."""
_HIDDEN: Mapping[str, str] = {"identities": "network"}
"""What stands for something else, which people know, and has an id that nobody is shown."""


def check_reference(reference: str, *, own: str) -> None:
    """Refuse what is no reference of another service's, on its way in and on its way out alike.

    Such are the finalizers by which we keep things ourselves (what begins as `own`, and the store's), and what no
    backend could keep.
    """
    owner, _, name = reference.partition("/")
    if "." not in owner or not name or owner == own.partition("/")[0] or reference in OURS:
        raise Invalid("reference", "is not a resource's", remedy="write it as plural.group/id")
    check_qualified("reference", reference)


def in_words(references: Sequence[str]) -> str:
    """Say what refers to an object: of which sort, which one, and of which service, where it is to be looked at."""
    said = [_said(*thing, count) for thing, count in Counter(map(_read, references)).items()]
    return ", ".join(said[:_NAMED]) + (" and more" if len(said) > _NAMED else "")


def _read(reference: str) -> tuple[str, str, str]:
    """Return the noun, the name, which is empty if nobody knows it, and the service."""
    owner, _, name = reference.partition("/")
    plural, _, group = owner.partition(".")
    service = group.partition(".")[0]
    return (_HIDDEN[plural], "", service) if plural in _HIDDEN else (_NOUNS.get(plural, plural), name, service)


def _said(noun: str, name: str, service: str, count: int) -> str:
    if name:
        return f"{noun} {name} of {service}"
    return f"a {noun} of {service}" if count == 1 else f"{count} {noun}s of {service}"
