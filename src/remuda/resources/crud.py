"""Steps of a write that all services share: find, lock, check, delete, seed and audit; references between services.

A reference of another service is stored as a finalizer of our object, so that it blocks the deletion.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from remuda.access.principal import Context
from remuda.http.responses import check_if_match, etag_of
from remuda.kernel.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound
from remuda.resources.conventions import CONTROLLER_FINALIZER, ORGANIZATION
from remuda.store.contract import Store
from remuda.store.kinds import Kind
from remuda.store.logs import Record, timeline_event
from remuda.store.objects import STORE_FINALIZERS, Resource, ResourceT
from remuda.store.validation import check_qualified


async def find(store: Store, kind: type[ResourceT], name: str, *, include_deleting: bool = True) -> ResourceT | None:
    """Return an object, or None if it does not exist, or is being deleted and `include_deleting` is false."""
    try:
        found = await store.get(kind, name)
    except NotFound:
        return None
    return found if include_deleting or not found.is_deleting else None


async def find_by_index(store: Store, kind: type[ResourceT], index: str, value: str) -> ResourceT | None:
    """Return the first object with a value in a declared index, or None.

    On Kubernetes nothing is requested of the API server, whether there is one or not.
    """
    return next(iter((await store.list(kind, index=(index, value), limit=1)).items), None)


async def exists(store: Store, kind: type[ResourceT], name: str, *, include_deleting: bool = True) -> bool:
    """Return whether an object exists."""
    return await find(store, kind, name, include_deleting=include_deleting) is not None


async def find_in(
    store: Store, kind: type[ResourceT], name: str, organization: str | None, *, include_deleting: bool = True
) -> ResourceT | None:
    """Return an object of this organization (of none, if that is None), or None."""
    found = await find(store, kind, name, include_deleting=include_deleting)
    return found if found is not None and found.metadata.labels.get(ORGANIZATION) == organization else None


async def get_in(
    store: Store, kind: type[ResourceT], name: str, organization: str, *, include_deleting: bool = True
) -> ResourceT:
    """Return an object of this organization, or raise NotFound, also for one of another organization."""
    found = await find_in(store, kind, name, organization, include_deleting=include_deleting)
    if found is None:
        raise NotFound(kind.__name__, name)
    return found


T = TypeVar("T")

_TRIES = 10


def check_state(context: Context, found: Resource, writable: msgspec.Struct) -> None:
    """Raise PreconditionFailed unless the object has the caller's If-Match, if there is one."""
    check_if_match(context, etag_of(found.uid, writable), kind=type(found).__name__, name=found.name)


def audit_records(context: Context, plural: str, found: Resource) -> Sequence[Record]:
    """Return the audit record of a write to an object, for the commit of that write."""
    return context.audit(plural, found.name, organization=found.metadata.labels.get(ORGANIZATION))


def each_once(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names without repetitions, in their order."""
    return tuple(dict.fromkeys(names))


async def retry_on_conflict(write: Callable[[], Awaitable[T]]) -> T:
    """Repeat a read and write after a conflict: a status written by a controller is no lost update."""
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
    check: Callable[[], Awaitable[None]] | None = None,
    unused: bool = False,
    if_unchanged: bool = False,
) -> None:
    """Delete an object, if it has the caller's If-Match. One that is being deleted is left as it is, without a record.

    `check` raises an error for an object that must not be deleted: a caller who read an older state learns that first.
    With `unused` it raises Conflict if there is a referrer by now, and with `if_unchanged` if the object has changed
    since it was read, so that the caller validates again.
    """
    check_state(context, found, writable)
    if found.is_deleting:
        return
    if check is not None:
        await check()
    version = found.version if if_unchanged or context.if_match is not None else None
    await store.delete(type(found), found.name, uid=found.uid, version=version, unused=unused, log=log)


def without_finalizer(found: ResourceT, finalizer: str) -> ResourceT:
    """Return an object without a finalizer."""
    remaining = tuple(each for each in found.metadata.finalizers if each != finalizer)
    return replace(found, metadata=replace(found.metadata, finalizers=remaining))


async def reject_if_in_use(store: Store, found: Resource, message: str) -> None:
    """Raise Forbidden with this message if an object has referrers, in this store or in another service."""
    own = {*STORE_FINALIZERS, CONTROLLER_FINALIZER}
    if not own.issuperset(found.metadata.finalizers) or await store.referrers(type(found), found.name, limit=1):
        raise Forbidden(message)


async def seed(store: Store, desired: ResourceT, changed: Callable[[ResourceT], ResourceT]) -> None:
    """Create an object that a release or a configuration defines, or update it with `changed` if it exists.

    Several processes may start at once: the second one reads what the first one wrote.
    """

    async def write() -> None:
        found = await find(store, type(desired), desired.name)
        if found is None:
            await create_once(store, desired)
        elif (after := changed(found)) != found:
            await store.update(after)

    await retry_on_conflict(write)


async def create_once(store: Store, new: ResourceT, log: Sequence[Record] = ()) -> ResourceT:
    """Create an object, or raise Conflict if it exists: `retry_on_conflict` then reads what another process wrote."""
    try:
        return await store.create(new, log=log)
    except AlreadyExists:
        raise Conflict(type(new).__name__, new.name) from None


async def ensure(store: Store, new: ResourceT, log: Sequence[Record] = ()) -> ResourceT:
    """Create an object, or return the existing one of this name."""
    try:
        return await store.create(new, log=log)
    except AlreadyExists:
        return await store.get(type(new), new.name)


def requested_event(context: Context, kind: Kind[ResourceT], found: ResourceT, event: str, **facts: Any) -> Record:
    """Return the timeline record of a caller's change of an object, to be stored with the write.

    `event` is for programs: one CamelCase word, such as `DeletionRequested`. Facts are JSON that all users may read.
    Controllers and operations record their own changes.
    """
    data = {
        **facts,
        "event": event,
        "uid": found.uid,
        "generation": found.metadata.generation,
        "actor": context.principal.actor_name,
        "traceId": context.trace_id,
    }
    if context.principal.display_name:
        data["actorName"] = context.principal.display_name
    return timeline_event(kind.qualified, found.name, data)


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
"""The nouns for kinds in messages."""
_HIDDEN: Mapping[str, str] = {"identities": "network"}
"""Kinds that users do not know, and whose ids are not shown, with the noun of the kind that they stand for."""


def check_reference(reference: str, *, own: str) -> None:
    """Raise Invalid unless this is a reference of another service, when it is added and when it is removed.

    Our own finalizers (with the prefix of `own`, and the store's) are not references, and neither is a text that no
    backend could store.
    """
    owner, _, name = reference.partition("/")
    if "." not in owner or not name or owner == own.partition("/")[0] or reference in STORE_FINALIZERS:
        raise Invalid("reference", "is not a resource's", remedy="write it as plural.group/id")
    check_qualified("reference", reference)


def describe_references(references: Sequence[str]) -> str:
    """Describe the referrers of an object: the noun, the id and the service of each."""
    described = [_description(*thing, count) for thing, count in Counter(map(_read, references)).items()]
    return ", ".join(described[:_NAMED]) + (" and more" if len(described) > _NAMED else "")


def _read(reference: str) -> tuple[str, str, str]:
    """Return the noun, the name, which is empty if it is hidden, and the service."""
    owner, _, name = reference.partition("/")
    plural, _, group = owner.partition(".")
    service = group.partition(".")[0]
    return (_HIDDEN[plural], "", service) if plural in _HIDDEN else (_NOUNS.get(plural, plural), name, service)


def _description(noun: str, name: str, service: str, count: int) -> str:
    if name:
        return f"{noun} {name} of {service}"
    return f"a {noun} of {service}" if count == 1 else f"{count} {noun}s of {service}"
