"""Writes to the API server: judged as far as we can, and sent.

A Kubernetes API server has no transaction over two objects, so what SQLite refuses in the commit is here checked twice:
before the write, and again after it against the server itself. Whoever finds then that a target is going takes itself
back; the target, in turn, goes only after a look begun after its mark found nobody (see `collector`).

Read your own writes: a write is over when our own informer has shown it to every reader.

Never by writing through to the tables: that would break the order of the history.

Errands: what must still be done when a write is over, and could not be because the server did not answer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import structlog

from remuda.kernel.backoff import RetryTimers
from remuda.kernel.errors import Conflict, NotFound, OutcomeUnknown, ReferenceRefused, RemudaError, Unavailable
from remuda.store.codec import Codec
from remuda.store.kinds import Kind, Registry
from remuda.store.kubernetes.mirror import Known, stripped
from remuda.store.kubernetes.references import References, Target
from remuda.store.kubernetes.resource_client import ResourceApi
from remuda.store.lifecycle import check_precondition, newborn, with_finalizers, with_intent, with_status
from remuda.store.objects import HAS_CHILDREN, Resource, ResourceT
from remuda.store.readside.reader import Reader
from remuda.store.validation import check_resource, check_size, check_status

ResultT = TypeVar("ResultT", bound=Resource | None)


@dataclass(frozen=True, slots=True)
class Written(Generic[ResultT]):
    """A write that the API server has stored."""

    kind: Kind[Any]
    resource: ResultT
    """What the caller is given."""
    gone: Resource | None = None
    """What the write let go."""


class Delivery:
    """Waits for informers."""

    def __init__(self, reader: Reader, *, patience_s: float) -> None:
        self._reader = reader
        self._patience_s = patience_s

    async def shown(self, written: Written[ResultT]) -> ResultT:
        """Return what was written when every reader sees it."""
        gone, resource = written.gone, written.resource
        if gone is not None:
            await self._wait(written.kind, lambda: self._is_gone(written.kind, gone))
        elif resource is not None:
            version, feed = int(resource.version), self._reader.feed(written.kind)
            await self._wait(written.kind, lambda: feed.reached >= version)
        return resource

    def _is_gone(self, kind: Kind[Any], resource: Resource) -> bool:
        with self._reader.storage:
            found = self._reader.find(kind, resource.name)
        return found is None or found.uid != resource.uid

    async def _wait(self, kind: Kind[Any], condition: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(self._patience_s):
                await self._reader.feed(kind).until(condition)
        except TimeoutError:
            problem = f"The write is stored, but the informer of {kind.qualified} lags behind"
            raise Unavailable(f"{problem}: read again in a moment.") from None


_FIRST_S, _LONGEST_S = 0.2, 30.0


@dataclass(frozen=True, eq=False)
class _Errand:
    what: str
    attempt: Callable[[], Awaitable[object]]


class Errands:
    """Tries each until it is answered, whatever the answer is."""

    def __init__(self, backoffs: RetryTimers) -> None:
        self._backoff = backoffs.new(first_s=_FIRST_S, longest_s=_LONGEST_S)
        self._pending: list[_Errand] = []
        self._news = asyncio.Event()

    def __len__(self) -> int:
        """Return how many are not done yet."""
        return len(self._pending)

    def add(self, what: str, attempt: Callable[[], Awaitable[object]]) -> None:
        """Have something tried again, soon and for as long as the server is unavailable."""
        self._pending.append(_Errand(what, attempt))
        self._news.set()

    async def run(self) -> None:
        while True:
            if not self._pending:
                self._backoff.reset()
                self._news.clear()
                await self._news.wait()
            await self._backoff.pause()
            for errand in list(self._pending):
                await self._try(errand)

    async def _try(self, errand: _Errand) -> None:
        try:
            await errand.attempt()
        except Unavailable as error:
            structlog.get_logger().warning("errand put off", what=errand.what, cause=error.sentence)
            return
        except RemudaError as error:
            structlog.get_logger().info("errand done", what=errand.what, outcome=error.sentence)
        except Exception:
            self._pending.remove(errand)
            raise
        self._pending.remove(errand)


_FIRST_CONFLICT_S, _LONGEST_CONFLICT_S = 0.005, 0.2


class Writer:
    """The writing half of the contract. A write is over when it is shown, which is for `delivery` to say."""

    def __init__(
        self,
        reader: Reader,
        known: Known,
        *,
        apis: Mapping[type[Resource], ResourceApi[Any]],
        codecs: Mapping[type[Resource], Codec[Any]],
        errands: Errands,
        backoffs: RetryTimers,
    ) -> None:
        self._registry: Registry = reader.registry
        self._known = known
        self._references = References(reader, known, apis)
        self._apis = apis
        self._codecs = codecs
        self._errands = errands
        self._backoffs = backoffs

    async def create(self, wanted: ResourceT) -> Written[ResourceT]:
        """Store a new object."""
        kind = self._registry.of(type(wanted))
        check_resource(kind, wanted)
        await self._references.check_owners(kind, wanted, wanted.metadata.owner_references)
        targets = kind.targets(wanted)
        await self._references.check(kind, wanted, targets)
        document = self._codecs[kind.type].encode(newborn(self._registry, kind, wanted))
        check_size(document)
        made = self._decode(kind, await self._apis[kind.type].create(document, wanted.name), wanted.name)
        await self._settle(kind, made, targets, lambda: self._apis[kind.type].delete(made.name, uid=made.uid))
        return Written(kind, made)

    async def update(self, wanted: ResourceT) -> Written[ResourceT]:
        """Write metadata and spec."""
        kind = self._registry.of(type(wanted))
        document, stored = await self._stored(kind, wanted, version=wanted.version)
        check_resource(kind, wanted)
        new = with_intent(kind, stored, wanted)
        owners = [owner for owner in new.metadata.owner_references if owner not in stored.metadata.owner_references]
        await self._references.check_owners(kind, new, owners)
        targets = kind.targets(new) - kind.targets(stored)
        await self._references.check(kind, new, targets)
        body = self._codecs[kind.type].encode_over(document, new)
        check_size(body, before=len(document))
        written = await self._put(kind, body, new.name)
        await self._settle(kind, written, targets, lambda: self.update(with_intent(kind, written, stored)))
        is_gone = new.is_marked and not new.metadata.finalizers
        return Written(kind, written, gone=written if is_gone else None)

    async def update_status(self, wanted: ResourceT) -> Written[ResourceT]:
        kind = self._registry.of(type(wanted))
        document, stored = await self._stored(kind, wanted, version=wanted.version)
        check_status(kind, wanted)
        body = self._codecs[kind.type].encode_over(document, with_status(kind, stored, wanted))
        check_size(body, before=len(document))
        written = await self._apis[kind.type].update_status(body, wanted.name)
        return Written(kind, self._decode(kind, written, wanted.name))

    async def delete(
        self, kind: Kind[ResourceT], name: str, *, uid: str, version: str | None
    ) -> Written[ResourceT | None]:
        """Mark an object; its children, its referrers and its finalizers decide when it goes."""
        known = self._known.find(kind, name)
        if known is not None and (known.is_marked or self._known.has_children(known)):
            check_precondition(kind, known, uid=uid, version=version)
            if known.is_marked:
                return Written(kind, known)
            held = await self._hold(kind, known, is_strict=version is not None)
            version = None if version is None else held.version
        document = await self._apis[kind.type].delete(name, uid=uid, version=version)
        if document is None:
            return Written(kind, None, gone=known)
        return Written(kind, self._decode(kind, document, name))

    async def remove(self, kind: Kind[ResourceT], known: ResourceT) -> Written[None]:
        """Delete a version of an object that nobody owns, refers to or holds."""
        await self._apis[kind.type].delete(known.name, uid=known.uid, version=known.version, policy="Background")
        return Written(kind, None, gone=known)

    async def set_finalizers(self, kind: Kind[ResourceT], known: ResourceT, finalizers: Iterable[str]) -> ResourceT:
        """Replace the finalizers of an object, ours included, or raise Conflict if it is no longer the one we know."""
        document, stored = await self._stored(kind, known, version=known.version)
        return await self._put_finalizers(kind, document, stored, finalizers)

    async def fetch(self, kind: Kind[ResourceT], name: str) -> ResourceT:
        """Return an object as the API server has it now, or raise NotFound."""
        return self._decode(kind, await self._apis[kind.type].get(name), name)

    async def _hold(self, kind: Kind[ResourceT], known: ResourceT, *, is_strict: bool) -> ResourceT:
        """Have an owner wait for its children. Unless one version is meant, whoever else writes it is let through."""
        backoff = self._backoffs.new(first_s=_FIRST_CONFLICT_S, longest_s=_LONGEST_CONFLICT_S)
        version: str | None = known.version
        while True:
            try:
                document, stored = await self._stored(kind, known, version=version)
                if stored.is_marked:
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
        """Write finalizers of ours, for which there is room even on the largest object."""
        body = self._codecs[kind.type].encode_over(document, with_finalizers(stored, finalizers))
        return await self._put(kind, body, stored.name)

    async def _put(self, kind: Kind[ResourceT], body: bytes, name: str) -> ResourceT:
        return self._decode(kind, await self._apis[kind.type].update(body, name), name)

    async def _stored(
        self, kind: Kind[ResourceT], wanted: ResourceT, *, version: str | None
    ) -> tuple[bytes, ResourceT]:
        """Return the document and object of a version, or, given none, the present ones; raise Conflict if it cannot.

        It asks the API server only if ours are not the ones.
        """
        row = self._known.row(kind, wanted.name)
        if row is None or str(row.version) != version:
            document = stripped(await self._apis[kind.type].get(wanted.name))
        else:
            document = row.document
        stored = self._decode(kind, document, wanted.name)
        check_precondition(kind, stored, uid=wanted.uid, version=version)
        return document, stored

    async def _settle(
        self, kind: Kind[Any], referrer: Resource, targets: Iterable[Target], undo: Callable[[], Awaitable[object]]
    ) -> None:
        """Look again, now that the referrer is stored, whether its targets stay; take it back if they do not.

        If the server does not say, we go on asking: a referrer must not be left to what is gone.
        """

        async def look() -> None:
            try:
                await self._references.check_again(kind, referrer, targets)
            except ReferenceRefused:
                with suppress(Conflict, NotFound):  # then somebody has changed it since, and theirs is the word
                    await undo()
                raise

        try:
            await look()
        except Unavailable as error:
            self._errands.add(f"to look at what {kind.name} {referrer.name} refers to", look)
            raise OutcomeUnknown(f"the look at what {kind.name} {referrer.name} refers to") from error

    def _decode(self, kind: Kind[ResourceT], document: bytes, name: str) -> ResourceT:
        decoded: ResourceT = self._codecs[kind.type].decode(document, name)
        return decoded
