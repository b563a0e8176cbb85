"""The steps of guarantees: edits of objects, expected rejections, looks at what is there, open watches."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

from msgspec.structs import replace

from remuda.kernel.errors import Conflict, NotFound, RemudaError
from remuda.store.contract import Bookmark, Change, Event
from remuda.store.objects import ResourceT
from tests.kit.proofs.store_contract.harness import TIMEOUT_S, Harness, eventually

ErrorT = TypeVar("ErrorT", bound=RemudaError)

HOLD = "example.org/hold"
"""A finalizer of somebody else, who releases when a guarantee says so."""


def with_metadata(resource: ResourceT, **fields: Any) -> ResourceT:
    return replace(resource, metadata=replace(resource.metadata, **fields))


def with_spec(resource: ResourceT, **fields: Any) -> ResourceT:
    spec = resource.spec  # type: ignore[attr-defined]  # every kind of the suite has one
    return replace(resource, spec=replace(spec, **fields))


def released(resource: ResourceT) -> ResourceT:
    """The object without the finalizer of somebody else; those of the store stay its own affair."""
    return with_metadata(resource, finalizers=tuple(f for f in resource.metadata.finalizers if f != HOLD))


async def refused(error: type[ErrorT], attempt: Awaitable[object]) -> ErrorT:
    """Return the error with which the attempt was refused; fail if it was not."""
    try:
        await attempt
    except error as rejection:
        return rejection
    raise AssertionError(f"accepted what must be refused with {error.__name__}")


async def find(harness: Harness, kind: type[ResourceT], name: str) -> ResourceT | None:
    try:
        return await harness.store.get(kind, name)
    except NotFound:
        return None


async def request_deletion(harness: Harness, resource: ResourceT) -> ResourceT | None:
    return await harness.store.delete(type(resource), resource.name, uid=resource.uid)


async def release(harness: Harness, resource: ResourceT) -> None:
    """Have somebody else release an object, whatever the store writes to it meanwhile."""

    async def is_released() -> bool:
        try:
            await harness.store.update(released(await harness.store.get(type(resource), resource.name)))
        except Conflict:
            return False
        return True

    await eventually(harness, f"{type(resource).__name__} {resource.name} is released", is_released)


async def held_alone(harness: Harness, resource: ResourceT) -> ResourceT:
    """Return a marked object when the store has nothing to do with it any more: only somebody else holds it."""

    async def is_held_alone() -> bool:
        return (await harness.store.get(type(resource), resource.name)).metadata.finalizers == (HOLD,)

    await eventually(harness, f"{type(resource).__name__} {resource.name} is held by {HOLD} alone", is_held_alone)
    return await harness.store.get(type(resource), resource.name)


async def gone(harness: Harness, resource: ResourceT) -> None:
    """Return when this incarnation is gone."""

    async def is_gone() -> bool:
        found = await find(harness, type(resource), resource.name)
        return found is None or found.uid != resource.uid

    await eventually(harness, f"{type(resource).__name__} {resource.name} is gone", is_gone)


async def names_of(harness: Harness, kind: type[ResourceT], **selection: Any) -> list[str]:
    return [item.name for item in (await harness.store.list(kind, **selection)).items]


class Watching(Generic[ResourceT]):
    """An open watch that is read one event at a time, and never for ever."""

    def __init__(self, events: AsyncIterator[Event[ResourceT]]) -> None:
        self._events = events

    async def event(self) -> Event[ResourceT]:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await anext(self._events)
        except TimeoutError:
            raise AssertionError(f"the watch said nothing for {TIMEOUT_S:g} s") from None

    async def change(self) -> Change[ResourceT]:
        while isinstance(event := await self.event(), Bookmark):
            pass
        return event

    async def bookmark(self) -> Bookmark:
        while not isinstance(event := await self.event(), Bookmark):
            pass
        return event

    async def until(self, is_last: Callable[[Change[ResourceT]], bool]) -> list[Change[ResourceT]]:
        """Return the changes up to and including the one that is the last."""
        changes = [await self.change()]
        while not is_last(changes[-1]):
            changes.append(await self.change())
        return changes

    async def until_named(self, name: str) -> list[Change[ResourceT]]:
        return await self.until(lambda change: change.resource.name == name)


@asynccontextmanager
async def watching(
    harness: Harness, kind: type[ResourceT], *, since: str, **watched: Any
) -> AsyncIterator[Watching[ResourceT]]:
    events = harness.store.watch(kind, since=since, **watched)
    try:
        yield Watching(events)
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()


async def present(harness: Harness, kind: type[ResourceT]) -> str:
    """Return the version to watch from to see all that happens from now on."""
    return (await harness.store.list(kind, limit=1)).version
