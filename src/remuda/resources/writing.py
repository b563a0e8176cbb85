"""What every write of a service has in common."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from remuda.access.principal import Context
from remuda.http.responses import check_match, etag_of
from remuda.kernel.errors import Conflict
from remuda.resources.conventions import ORGANIZATION
from remuda.store.logs import Record
from remuda.store.objects import Resource

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
