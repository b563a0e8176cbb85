"""Writer to the API server: validates and sends writes, waits until they are readable, and retries what is left.

A Kubernetes API server has no transaction over two objects, so references are checked before the write, and again after
it. A referrer whose target is found deleting then is rolled back (see also `garbage_collector`). A write is complete
when our own informer has published it, so that callers read their own writes; writing to the tables directly would
break the order of the history.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import structlog

from remuda.kernel.backoff import RetryTimers
from remuda.kernel.errors import Conflict, NotFound, OutcomeUnknown, ReferenceRejected, RemudaError, Unavailable
from remuda.store.codec import Codec
from remuda.store.kinds import Kind, Registry
from remuda.store.kubernetes.mirror import InformerCache, stripped
from remuda.store.kubernetes.references import References, Target
from remuda.store.kubernetes.resource_client import ResourceApi
from remuda.store.lifecycle import check_precondition, new_resource, with_desired, with_finalizers, with_status
from remuda.store.objects import HAS_CHILDREN, Resource, ResourceT
from remuda.store.readside.reader import Reader
from remuda.store.validation import check_resource, check_size, check_status

ResultT = TypeVar("ResultT", bound=Resource | None)


@dataclass(frozen=True, slots=True)
class Written(Generic[ResultT]):
    """A write that the API server has stored."""

    kind: Kind[Any]
    resource: ResultT
    removed: Resource | None = None
    """The object that the write removed."""


class DeliveryBarrier:
    """Waits until informers have published a write."""

    def __init__(self, reader: Reader, *, timeout_s: float) -> None:
        self._reader, self._timeout_s = reader, timeout_s

    async def wait(self, written: Written[ResultT]) -> ResultT:
        """Return the result of a write when every reader sees it."""
        gone, resource = written.removed, written.resource
        if gone is not None:
            await self._wait(written.kind, lambda: self._is_removed(written.kind, gone))
        elif resource is not None:
            version, feed = int(resource.version), self._reader.feed(written.kind)
            await self._wait(written.kind, lambda: feed.reached >= version)
        return resource

    def _is_removed(self, kind: Kind[Any], resource: Resource) -> bool:
        with self._reader.storage:
            found = self._reader.find(kind, resource.name)
        return found is None or found.uid != resource.uid

    async def _wait(self, kind: Kind[Any], condition: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._reader.feed(kind).until(condition)
        except TimeoutError:
            problem = f"The write is stored, but the informer of {kind.qualified} is behind"
            raise Unavailable(f"{problem}: read again in a moment.") from None


_FIRST_S, _MAX_S = 0.2, 30.0


@dataclass(frozen=True, eq=False)
class _Retry:
    what: str
    attempt: Callable[[], Awaitable[object]]


class RetryQueue:
    """Retries each action until the server responds, whatever the response is."""

    def __init__(self, backoffs: RetryTimers) -> None:
        self._backoff = backoffs.new(first_s=_FIRST_S, longest_s=_MAX_S)
        self._pending: list[_Retry] = []
        self._has_work = asyncio.Event()

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, what: str, attempt: Callable[[], Awaitable[object]]) -> None:
        """Retry an action soon, and for as long as the server is unavailable."""
        self._pending.append(_Retry(what, attempt))
        self._has_work.set()

    async def run(self) -> None:
        while True:
            if not self._pending:
                self._backoff.reset()
                self._has_work.clear()
                await self._has_work.wait()
            await self._backoff.pause()
            for retry in list(self._pending):
                await self._try(retry)

    async def _try(self, retry: _Retry) -> None:
        try:
            await retry.attempt()
        except Unavailable as error:
            structlog.get_logger().warning("retry failed", action=retry.what, cause=error.message)
            return
        except RemudaError as error:
            structlog.get_logger().info("retry ended", action=retry.what, outcome=error.message)
        except Exception:
            self._pending.remove(retry)
            raise
        self._pending.remove(retry)


_FIRST_CONFLICT_S, _MAX_CONFLICT_S = 0.005, 0.2


class Writer:
    """The writing half of the contract. A write is complete when the `DeliveryBarrier` has passed."""

    def __init__(
        self,
        reader: Reader,
        known: InformerCache,
        *,
        apis: Mapping[type[Resource], ResourceApi[Any]],
        codecs: Mapping[type[Resource], Codec[Any]],
        retry_queue: RetryQueue,
        backoffs: RetryTimers,
    ) -> None:
        self._registry: Registry = reader.registry
        self._known = known
        self._references = References(reader, known, apis)
        self._apis, self._codecs, self._retry_queue = apis, codecs, retry_queue
        self._backoffs = backoffs

    async def create(self, desired: ResourceT) -> Written[ResourceT]:
        kind = self._registry.of(type(desired))
        check_resource(kind, desired)
        await self._references.check_owners(kind, desired, desired.metadata.owner_references)
        targets = kind.targets(desired)
        await self._references.check(kind, desired, targets)
        document = self._codecs[kind.type].encode(new_resource(self._registry, kind, desired))
        check_size(document)
        created = self._decode(kind, await self._apis[kind.type].create(document, desired.name), desired.name)
        await self._confirm_references(
            kind, created, targets, lambda: self._apis[kind.type].delete(created.name, uid=created.uid)
        )
        return Written(kind, created)

    async def update(self, desired: ResourceT) -> Written[ResourceT]:
        kind = self._registry.of(type(desired))
        document, stored = await self._stored(kind, desired, version=desired.version)
        check_resource(kind, desired)
        new = with_desired(kind, stored, desired)
        owners = [owner for owner in new.metadata.owner_references if owner not in stored.metadata.owner_references]
        await self._references.check_owners(kind, new, owners)
        targets = kind.targets(new) - kind.targets(stored)
        await self._references.check(kind, new, targets)
        body = self._codecs[kind.type].encode_over(document, new)
        check_size(body, before=len(document))
        written = await self._put(kind, body, new.name)
        await self._confirm_references(kind, written, targets, lambda: self.update(with_desired(kind, written, stored)))
        is_removed = new.is_deleting and not new.metadata.finalizers
        return Written(kind, written, removed=written if is_removed else None)

    async def update_status(self, desired: ResourceT) -> Written[ResourceT]:
        kind = self._registry.of(type(desired))
        document, stored = await self._stored(kind, desired, version=desired.version)
        check_status(kind, desired)
        body = self._codecs[kind.type].encode_over(document, with_status(kind, stored, desired))
        check_size(body, before=len(document))
        written = await self._apis[kind.type].update_status(body, desired.name)
        return Written(kind, self._decode(kind, written, desired.name))

    async def delete(
        self, kind: Kind[ResourceT], name: str, *, uid: str, version: str | None
    ) -> Written[ResourceT | None]:
        """Start the deletion of an object; its children, referrers and finalizers decide when it is removed."""
        known = self._known.find(kind, name)
        if known is not None and (known.is_deleting or self._known.has_children(known)):
            check_precondition(kind, known, uid=uid, version=version)
            if known.is_deleting:
                return Written(kind, known)
            owner = await self._add_children_finalizer(kind, known, is_strict=version is not None)
            version = None if version is None else owner.version
        document = await self._apis[kind.type].delete(name, uid=uid, version=version)
        if document is None:
            return Written(kind, None, removed=known)
        return Written(kind, self._decode(kind, document, name))

    async def remove(self, kind: Kind[ResourceT], known: ResourceT) -> Written[None]:
        """Delete a version of an object that has no owners, referrers or finalizers."""
        await self._apis[kind.type].delete(known.name, uid=known.uid, version=known.version, policy="Background")
        return Written(kind, None, removed=known)

    async def set_finalizers(self, kind: Kind[ResourceT], known: ResourceT, finalizers: Iterable[str]) -> ResourceT:
        """Replace all finalizers of an object, or raise Conflict if it has changed."""
        document, stored = await self._stored(kind, known, version=known.version)
        return await self._put_finalizers(kind, document, stored, finalizers)

    async def fetch(self, kind: Kind[ResourceT], name: str) -> ResourceT:
        """Return an object as the API server has it now, or raise NotFound."""
        return self._decode(kind, await self._apis[kind.type].get(name), name)

    async def _add_children_finalizer(self, kind: Kind[ResourceT], known: ResourceT, *, is_strict: bool) -> ResourceT:
        """Add the finalizer that makes an owner wait for its children; retry conflicts unless a version is required."""
        backoff = self._backoffs.new(first_s=_FIRST_CONFLICT_S, longest_s=_MAX_CONFLICT_S)
        version: str | None = known.version
        while True:
            try:
                document, stored = await self._stored(kind, known, version=version)
                if stored.is_deleting:
                    return stored
                finalizers = dict.fromkeys((HAS_CHILDREN, *stored.metadata.finalizers))
                return await self._put_finalizers(kind, document, stored, finalizers)
            except Conflict:
                if is_strict or (await self.fetch(kind, known.name)).uid != known.uid:
                    raise
            version = None
            await backoff.pause()

    async def _put_finalizers(
        self, kind: Kind[ResourceT], document: bytes, stored: ResourceT, finalizers: Iterable[str]
    ) -> ResourceT:
        """Write finalizers of the store, without a size limit."""
        body = self._codecs[kind.type].encode_over(document, with_finalizers(stored, finalizers))
        return await self._put(kind, body, stored.name)

    async def _put(self, kind: Kind[ResourceT], body: bytes, name: str) -> ResourceT:
        return self._decode(kind, await self._apis[kind.type].update(body, name), name)

    async def _stored(
        self, kind: Kind[ResourceT], desired: ResourceT, *, version: str | None
    ) -> tuple[bytes, ResourceT]:
        """Return the document and object of a version, or the current ones; raise Conflict if there is another."""
        row = self._known.row(kind, desired.name)
        if row is None or str(row.version) != version:
            document = stripped(await self._apis[kind.type].get(desired.name))
        else:
            document = row.document
        stored = self._decode(kind, document, desired.name)
        check_precondition(kind, stored, uid=desired.uid, version=version)
        return document, stored

    async def _confirm_references(
        self, kind: Kind[Any], referrer: Resource, targets: Iterable[Target], undo: Callable[[], Awaitable[object]]
    ) -> None:
        """Check the targets again after the referrer is stored; roll it back if they are being deleted."""

        async def confirm() -> None:
            try:
                await self._references.confirm(kind, referrer, targets)
            except ReferenceRejected:
                with suppress(Conflict, NotFound):  # it was changed since, and that write decides
                    await undo()
                raise

        try:
            await confirm()
        except Unavailable as error:
            self._retry_queue.add(f"check the references of {kind.name} {referrer.name}", confirm)
            raise OutcomeUnknown(f"the check of the references of {kind.name} {referrer.name}") from error

    def _decode(self, kind: Kind[ResourceT], document: bytes, name: str) -> ResourceT:
        decoded: ResourceT = self._codecs[kind.type].decode(document, name)
        return decoded
