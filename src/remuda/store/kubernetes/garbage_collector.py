"""Letting marked objects go: first what they own, then they themselves, when nobody refers to them any more.

Kubernetes collects the children of a marked owner, but from a picture of its own that may be behind: it would let an
owner go whose youngest child it has not seen yet. So an owner whose children *we* know of carries our finalizer until
they are gone. Whatever can be referred to carries another. Mark, then look: that one comes off only after a consistent
read, begun after the mark was seen, found no referrer (see `looking`).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import structlog

from remuda.kernel.backoff import RetryTimers
from remuda.kernel.errors import Conflict, NotFound, RemudaError
from remuda.store.kinds import Kind, Registry
from remuda.store.kubernetes.mirror import Known, Move
from remuda.store.kubernetes.references import Looking, Target
from remuda.store.kubernetes.writer import Writer
from remuda.store.lifecycle import disowned, dying_owners, has_other_owner
from remuda.store.objects import HAS_CHILDREN, IN_USE, OwnerReference, Resource
from remuda.store.readside.index import MARKED
from remuda.store.readside.reader import Reader

_FIRST_S, _LONGEST_S = 0.5, 30.0
_LOOK_ANYWAY_S = 60.0


class Collector:
    """Looks again whenever something was marked, or something that could hold a marked object has let go."""

    def __init__(self, reader: Reader, known: Known, writer: Writer, looking: Looking, backoffs: RetryTimers) -> None:
        self._reader = reader
        self._registry: Registry = reader.registry
        self._known = known
        self._writer = writer
        self._looking = looking
        self._backoff = backoffs.new(first_s=_FIRST_S, longest_s=_LONGEST_S)
        self._news = asyncio.Event()
        self._news.set()
        self._has_failed = False
        self.passes = 0
        """How often it has looked."""

    def notice(self, kind: Kind[Any], moves: Sequence[Move]) -> None:
        """Hear what an informer has seen."""
        if not self._news.is_set() and any(self._could_free(kind, was, now) for was, now in moves):
            self._news.set()

    def _could_free(self, kind: Kind[Any], was: Resource | None, now: Resource | None) -> bool:
        """Tell whether a change gives us work: a mark, a child or referrer that left, a child that comes too late."""
        if now is None:
            return was is not None and bool(kind.references or was.metadata.owner_references)
        if now.is_marked:
            return True
        held = kind.targets(was) if was else frozenset()
        owners = was.metadata.owner_references if was else ()
        if held - kind.targets(now) or set(owners) - set(now.metadata.owner_references):
            return True
        return any(self._is_dying(owner) for owner in now.metadata.owner_references if owner not in owners)

    def _is_dying(self, reference: OwnerReference) -> bool:
        kind = self._registry.owning(reference)
        owner = self._known.find(kind, reference.name) if kind else None
        return owner is not None and owner.is_marked

    async def run(self) -> None:
        """Collect, for ever. A server that does not answer only delays it."""
        while True:
            self._news.clear()
            self._has_failed = False
            self.passes += 1
            await self._collect_children()
            await self._collect_targets()
            if self._has_failed:
                await self._backoff.pause()
                continue
            self._backoff.reset()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_ANYWAY_S):
                    await self._news.wait()

    async def _collect_children(self) -> None:
        """Delete what marked owners own; let go of those that own nothing any more."""
        async for kind, owner in self._marked(HAS_CHILDREN):
            owns_something = False
            async for child_kind, child in self._known.children(owner):
                owns_something = True
                if not child.is_marked:
                    await self._try(child, self._collect_child(child_kind, child, owner))
            if not owns_something:
                await self._try(owner, self._release(kind, owner, HAS_CHILDREN))

    async def _collect_child(self, kind: Kind[Any], child: Resource, owner: Resource) -> None:
        """Delete a child, or, if it has another owner that stays, only take it from this one."""
        if has_other_owner(self._registry, child, owner, self._known.find):
            await self._writer.update(disowned(child, owner))
        else:
            await self._writer.delete(kind, child.name, uid=child.uid, version=None)

    async def _collect_targets(self) -> None:
        """Let go of what nobody refers to."""
        candidates = [
            (kind, target)
            async for kind, target in self._marked(IN_USE)
            if not self._is_blocked(target, self._known_referrers(kind, target.name))
        ]
        referring = {k.qualified: k for kind, _ in candidates for k in self._registry.referrers_of(kind)}
        sight = await self._looking.at(referring.values())
        self._has_failed |= sight.is_unanswered
        for kind, target in candidates:
            found = sight.referrers.get((kind.qualified, target.name), set())
            is_doubtful = any(k.qualified in sight.doubtful for k in self._registry.referrers_of(kind))
            if not is_doubtful and not self._is_blocked(target, found | self._known_referrers(kind, target.name)):
                await self._try(target, self._release(kind, target, IN_USE))

    async def _marked(self, finalizer: str) -> AsyncIterator[tuple[Kind[Any], Resource]]:
        for kind in self._registry.kinds:
            async for resource in self._known.under(kind, MARKED, ""):
                if finalizer in resource.metadata.finalizers:
                    yield kind, resource

    def _known_referrers(self, kind: Kind[Any], name: str) -> set[Target]:
        with self._reader.storage:
            known = self._reader.referrers(kind, name, limit=50)
        return {(referrer.kind.qualified, referrer.name) for referrer in known}

    def _is_blocked(self, target: Resource, referrers: Iterable[Target]) -> bool:
        """Tell whether anybody but the target's own dying owners, who wait for it, refers to it."""
        pending = set(referrers)
        return bool(pending and pending - dying_owners(self._registry, target, self._known.find))

    async def _release(self, kind: Kind[Any], resource: Resource, finalizer: str) -> None:
        """Take a finalizer of ours off."""
        kept = [one for one in resource.metadata.finalizers if one != finalizer]
        await self._writer.set_finalizers(kind, resource, kept)

    async def _try(self, resource: Resource, attempt: Awaitable[None]) -> None:
        """Do something about one object. If it has changed meanwhile, its change brings us here again."""
        try:
            await attempt
        except (Conflict, NotFound):
            return
        except RemudaError as error:
            structlog.get_logger().warning("collection put off", name=resource.name, cause=error.sentence)
            self._has_failed = True
