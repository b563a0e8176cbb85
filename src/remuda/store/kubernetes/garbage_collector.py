"""Garbage collector: removes objects that are being deleted, after their children and their referrers.

The garbage collector of Kubernetes may not know the youngest child of an owner yet, so an owner whose children *we*
know has our finalizer until they are removed. An object that can be referenced has another one, which is removed only
if a consistent read, which began after the deletion was requested, found no referrer (see `references`).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import structlog

from remuda.kernel.backoff import RetryTimers
from remuda.kernel.errors import Conflict, NotFound, RemudaError
from remuda.store.kinds import Kind, Registry
from remuda.store.kubernetes.mirror import InformerCache, StateChange
from remuda.store.kubernetes.references import ReferrerReader, Target
from remuda.store.kubernetes.writer import Writer
from remuda.store.lifecycle import deleting_owners, has_other_owner, without_owner
from remuda.store.objects import HAS_CHILDREN, IN_USE, OwnerReference, Resource
from remuda.store.readside.index import DELETING
from remuda.store.readside.reader import Reader

_FIRST_S, _MAX_S = 0.5, 30.0
_INTERVAL_S = 60.0


class GarbageCollector:
    """Runs again whenever a deletion was requested, or something that could block a removal is gone."""

    def __init__(
        self,
        reader: Reader,
        known: InformerCache,
        writer: Writer,
        referrer_reader: ReferrerReader,
        backoffs: RetryTimers,
    ) -> None:
        self._reader = reader
        self._registry: Registry = reader.registry
        self._known, self._writer, self._referrer_reader = known, writer, referrer_reader
        self._backoff = backoffs.new(first_s=_FIRST_S, longest_s=_MAX_S)
        self._has_work = asyncio.Event()
        self._has_work.set()
        self._has_failed = False
        self.runs = 0

    def on_changes(self, kind: Kind[Any], moves: Sequence[StateChange]) -> None:
        """Schedule a run if a change that an informer has seen makes it necessary."""
        if not self._has_work.is_set() and any(self._could_free(kind, was, now) for was, now in moves):
            self._has_work.set()

    def _could_free(self, kind: Kind[Any], was: Resource | None, now: Resource | None) -> bool:
        """Return whether a change causes work: a deletion, a lost child or referrer, or a late child."""
        if now is None:
            return was is not None and bool(kind.references or was.metadata.owner_references)
        if now.is_deleting:
            return True
        targets = kind.targets(was) if was else frozenset()
        owners = was.metadata.owner_references if was else ()
        if targets - kind.targets(now) or set(owners) - set(now.metadata.owner_references):
            return True
        return any(self._is_owner_deleting(owner) for owner in now.metadata.owner_references if owner not in owners)

    def _is_owner_deleting(self, reference: OwnerReference) -> bool:
        kind = self._registry.owning(reference)
        owner = self._known.find(kind, reference.name) if kind else None
        return owner is not None and owner.is_deleting

    async def run(self) -> None:
        """Collect, until stopped. A server that does not respond only delays it."""
        while True:
            self._has_work.clear()
            self._has_failed = False
            self.runs += 1
            await self._collect_children()
            await self._collect_targets()
            if self._has_failed:
                await self._backoff.pause()
                continue
            self._backoff.reset()
            with suppress(TimeoutError):
                async with asyncio.timeout(_INTERVAL_S):
                    await self._has_work.wait()

    async def _collect_children(self) -> None:
        """Delete the children of owners that are being deleted; remove the finalizer of those without."""
        async for kind, owner in self._deleting(HAS_CHILDREN):
            owns_something = False
            async for child_kind, child in self._known.children(owner):
                owns_something = True
                if not child.is_deleting:
                    await self._try(child, self._collect_child(child_kind, child, owner))
            if not owns_something:
                await self._try(owner, self._release(kind, owner, HAS_CHILDREN))

    async def _collect_child(self, kind: Kind[Any], child: Resource, owner: Resource) -> None:
        """Delete a child, or, if it has another owner that stays, remove this owner from it."""
        if has_other_owner(self._registry, child, owner, self._known.find):
            await self._writer.update(without_owner(child, owner))
        else:
            await self._writer.delete(kind, child.name, uid=child.uid, version=None)

    async def _collect_targets(self) -> None:
        candidates = [
            (kind, target)
            async for kind, target in self._deleting(IN_USE)
            if not self._is_blocked(target, self._known_referrers(kind, target.name))
        ]
        referring = {k.qualified: k for kind, _ in candidates for k in self._registry.referrers_of(kind)}
        snapshot = await self._referrer_reader.read(referring.values())
        self._has_failed |= snapshot.has_failed
        for kind, target in candidates:
            found = snapshot.referrers.get((kind.qualified, target.name), set())
            is_uncertain = any(k.qualified in snapshot.uncertain for k in self._registry.referrers_of(kind))
            if not is_uncertain and not self._is_blocked(target, found | self._known_referrers(kind, target.name)):
                await self._try(target, self._release(kind, target, IN_USE))

    async def _deleting(self, finalizer: str) -> AsyncIterator[tuple[Kind[Any], Resource]]:
        for kind in self._registry.kinds:
            async for resource in self._known.under(kind, DELETING, ""):
                if finalizer in resource.metadata.finalizers:
                    yield kind, resource

    def _known_referrers(self, kind: Kind[Any], name: str) -> set[Target]:
        with self._reader.storage:
            known = self._reader.referrers(kind, name, limit=50)
        return {(referrer.kind.qualified, referrer.name) for referrer in known}

    def _is_blocked(self, target: Resource, referrers: Iterable[Target]) -> bool:
        """Return whether the target has referrers, apart from its deleting owners: these wait for the target."""
        pending = set(referrers)
        return bool(pending and pending - deleting_owners(self._registry, target, self._known.find))

    async def _release(self, kind: Kind[Any], resource: Resource, finalizer: str) -> None:
        kept = [one for one in resource.metadata.finalizers if one != finalizer]
        await self._writer.set_finalizers(kind, resource, kept)

    async def _try(self, resource: Resource, attempt: Awaitable[None]) -> None:
        """Attempt an action on one object. If the object has changed meanwhile, its change causes the next run."""
        try:
            await attempt
        except (Conflict, NotFound):
            return
        except RemudaError as error:
            structlog.get_logger().warning("garbage collection failed", name=resource.name, cause=error.message)
            self._has_failed = True
