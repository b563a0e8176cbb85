"""Writes to the API server: judged as far as we can, sent, and returned when our own informer has seen them.

A Kubernetes API server has no transaction over two objects, so what SQLite refuses in the commit is here checked twice:
before the write, and again after it against the server itself. Whoever finds then that a target is going takes itself
back; the target, in turn, goes only after a look begun after its mark found nobody (see `collector`).
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from remuda.kernel.errors import Conflict, NotFound, OwnerRefused, ReferenceRefused, Unavailable
from remuda.store.checks import check_resource, check_size
from remuda.store.codec import Codec
from remuda.store.kinds import Kind, Registry
from remuda.store.kubernetes.informer import stripped
from remuda.store.kubernetes.resources import ResourceApi
from remuda.store.lifecycle import check_precondition, newborn, with_finalizers, with_intent, with_status
from remuda.store.objects import HAS_CHILDREN, OwnerReference, Resource, ResourceT
from remuda.store.readside.reader import Reader

__all__ = ["Writer"]


class Writer:
    """The writing half of the contract."""

    def __init__(
        self,
        reader: Reader,
        apis: Mapping[type[Resource], ResourceApi[Any]],
        codecs: Mapping[type[Resource], Codec[Any]],
        *,
        patience_s: float,
    ) -> None:
        self._reader = reader
        self._registry: Registry = reader.registry
        self._apis = apis
        self._codecs = codecs
        self._patience_s = patience_s

    async def create(self, wanted: ResourceT) -> ResourceT:
        """Store a new object."""
        kind = self._registry.of(type(wanted))
        check_resource(kind, wanted)
        await self._check_owners(kind, wanted, wanted.metadata.owner_references)
        targets = kind.targets(wanted)
        await self._check_targets(kind, wanted, targets)
        document = self._codecs[kind.type].encode(newborn(self._registry, kind, wanted))
        check_size(document)
        made = self._decode(kind, await self._apis[kind.type].create(document, wanted.name), wanted.name)
        try:
            await self._recheck_targets(kind, made, targets)
        except ReferenceRefused:
            await self._apis[kind.type].delete(made.name, uid=made.uid)
            raise
        return await self._delivered(kind, made)

    async def update(self, wanted: ResourceT) -> ResourceT:
        """Write metadata and spec."""
        kind = self._registry.of(type(wanted))
        check_resource(kind, wanted)
        document, stored = await self._stored(kind, wanted)
        new = with_intent(kind, stored, wanted)
        owners = [owner for owner in new.metadata.owner_references if owner not in stored.metadata.owner_references]
        await self._check_owners(kind, new, owners)
        targets = kind.targets(new) - kind.targets(stored)
        await self._check_targets(kind, new, targets)
        body = self._codecs[kind.type].encode_over(document, new)
        check_size(body)
        written = self._decode(kind, await self._apis[kind.type].update(body, new.name), new.name)
        try:
            await self._recheck_targets(kind, written, targets)
        except ReferenceRefused:
            await self._take_back(kind, written, document)
            raise
        if new.is_marked and not new.metadata.finalizers:
            await self._vanished(kind, written)
            return written
        return await self._delivered(kind, written)

    async def update_status(self, wanted: ResourceT) -> ResourceT:
        """Write status."""
        kind = self._registry.of(type(wanted))
        document, stored = await self._stored(kind, wanted)
        body = self._codecs[kind.type].encode_over(document, with_status(kind, stored, wanted))
        check_size(body)
        written = await self._apis[kind.type].update_status(body, wanted.name)
        return await self._delivered(kind, self._decode(kind, written, wanted.name))

    async def delete(self, kind: Kind[ResourceT], name: str, *, uid: str, version: str | None) -> ResourceT | None:
        """Mark an object; its children, its referrers and its finalizers decide when it goes."""
        known = self._reader.find(kind, name)
        if known is not None and (known.is_marked or self._reader.children(known, limit=1)):
            check_precondition(kind, known, uid=uid, version=version)
            if known.is_marked:
                return known
            held = await self.hold(kind, known, (HAS_CHILDREN, *known.metadata.finalizers))
            version = held.version
        document = await self._apis[kind.type].delete(name, uid=uid, version=version)
        if document is None:
            return None
        return await self._delivered(kind, self._decode(kind, document, name))

    async def remove(self, kind: Kind[ResourceT], known: ResourceT) -> None:
        """Delete an object that nobody owns, refers to or holds: it is gone when this returns."""
        await self._apis[kind.type].delete(known.name, uid=known.uid, policy="Background")
        await self._vanished(kind, known)

    async def hold(self, kind: Kind[ResourceT], known: ResourceT, finalizers: Iterable[str]) -> ResourceT:
        """Replace the finalizers of an object, ours included, or raise Conflict if it is no longer the one we know."""
        document, stored = await self._stored(kind, known)
        body = self._codecs[kind.type].encode_over(document, with_finalizers(stored, finalizers))
        return self._decode(kind, await self._apis[kind.type].update(body, known.name), known.name)

    async def fetch(self, kind: Kind[ResourceT], name: str) -> ResourceT:
        """Return an object as the API server has it now, or raise NotFound."""
        return self._decode(kind, await self._apis[kind.type].get(name), name)

    async def _stored(self, kind: Kind[ResourceT], wanted: ResourceT) -> tuple[bytes, ResourceT]:
        """Return the document and object that were read, or raise Conflict if they are no longer the stored ones."""
        row = self._reader.tables.find(self._reader.names.kind(kind), wanted.name)
        if row is None or str(row.version) != wanted.version:
            document = stripped(await self._apis[kind.type].get(wanted.name))
        else:
            document = row.document
        stored = self._decode(kind, document, wanted.name)
        check_precondition(kind, stored, uid=wanted.uid, version=wanted.version)
        return document, stored

    async def _take_back(self, kind: Kind[ResourceT], written: ResourceT, document: bytes) -> None:
        """Undo an update, unless somebody has changed the object since: then theirs is the word."""
        before = with_intent(kind, written, self._decode(kind, document, written.name))
        try:
            await self.update(before)
        except (Conflict, NotFound):
            return

    async def _check_owners(self, kind: Kind[Any], child: Resource, owners: Iterable[OwnerReference]) -> None:
        for reference in owners:
            owning = self._registry.owning(reference)
            owner = await self._find(owning, reference.name) if owning else None
            if owner is None or owner.uid != reference.uid or owner.is_marked:
                raise OwnerRefused(kind.name, child.name, owner=f"{reference.kind} {reference.name}")

    async def _check_targets(self, kind: Kind[Any], referrer: Resource, targets: Iterable[tuple[str, str]]) -> None:
        for qualified, name in sorted(targets):
            target_kind = self._registry.named(qualified)
            _refuse_unless_living(kind, referrer, target_kind, name, await self._find(target_kind, name))

    async def _recheck_targets(self, kind: Kind[Any], referrer: Resource, targets: Iterable[tuple[str, str]]) -> None:
        for qualified, name in sorted(targets):
            target_kind = self._registry.named(qualified)
            try:
                target: Resource | None = await self.fetch(target_kind, name)
            except NotFound:
                target = None
            _refuse_unless_living(kind, referrer, target_kind, name, target)

    async def _find(self, kind: Kind[ResourceT], name: str) -> ResourceT | None:
        """Return an object as we know it, or ask the server if we know of none."""
        try:
            return self._reader.find(kind, name) or await self.fetch(kind, name)
        except NotFound:
            return None

    async def _delivered(self, kind: Kind[ResourceT], written: ResourceT) -> ResourceT:
        """Return when our informer has shown the write to every reader."""
        await self._wait(kind, lambda: self._reader.feed(kind).reached >= int(written.version))
        return written

    async def _vanished(self, kind: Kind[ResourceT], written: ResourceT) -> None:
        """Return when our informer has seen the object go."""

        def is_gone() -> bool:
            found = self._reader.find(kind, written.name)
            return found is None or found.uid != written.uid

        await self._wait(kind, is_gone)

    async def _wait(self, kind: Kind[Any], condition: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(self._patience_s):
                await self._reader.feed(kind).until(condition)
        except TimeoutError:
            problem = f"The write is stored, but the informer of {kind.qualified} lags behind"
            raise Unavailable(f"{problem}: read again in a moment.") from None

    def _decode(self, kind: Kind[ResourceT], document: bytes, name: str) -> ResourceT:
        return self._reader.decode(kind, document, name)


def _refuse_unless_living(
    kind: Kind[Any], referrer: Resource, target_kind: Kind[Any], name: str, target: Resource | None
) -> None:
    if target is None or target.is_marked:
        raise ReferenceRefused(kind.name, referrer.name, target_kind=target_kind.name, target=name)
