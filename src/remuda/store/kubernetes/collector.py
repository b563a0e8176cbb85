"""Letting marked objects go: first what they own, then they themselves, when nobody refers to them any more.

Kubernetes collects the children of a marked owner, but from a picture of its own that may be behind: it would let an
owner go whose youngest child it has not seen yet. So an owner whose children *we* know of carries our finalizer until
they are gone. Whatever can be referred to carries another. Mark, then look: that one comes off only after a consistent
read, begun after the mark was seen, found no referrer. Our own index may be behind as well, so it can only say that
somebody refers; that nobody does, the API server has to say.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import structlog

from remuda.kernel.clock import Clock
from remuda.kernel.errors import Conflict, NotFound, RemudaError
from remuda.store.codec import Codec
from remuda.store.kinds import Kind, Registry
from remuda.store.kubernetes.resources import ResourceApi
from remuda.store.kubernetes.writer import Writer
from remuda.store.lifecycle import disowned, dying_owners, has_other_owner
from remuda.store.objects import HAS_CHILDREN, IN_USE, Resource
from remuda.store.readside.feed import Landed
from remuda.store.readside.reader import Reader
from remuda.store.readside.terms import MARKED

__all__ = ["Collector"]

_PAGE = 500
_PAUSE_S = 1.0

Target = tuple[str, str]
"""Qualified kind and name."""


class Collector:
    """Looks again whenever something was marked, or something that owns or refers has changed."""

    def __init__(
        self,
        reader: Reader,
        writer: Writer,
        clock: Clock,
        *,
        apis: Mapping[type[Resource], ResourceApi[Any]],
        codecs: Mapping[type[Resource], Codec[Any]],
    ) -> None:
        self._reader = reader
        self._registry: Registry = reader.registry
        self._writer = writer
        self._clock = clock
        self._apis = apis
        self._codecs = codecs
        self._news = asyncio.Event()

    def notice(self, kind: Kind[Any], changes: Sequence[Landed[Any]]) -> None:
        """Hear what an informer has seen."""
        resources = [change.event.resource for change in changes]
        if kind.references or not changes or any(one.is_marked or one.metadata.owner_references for one in resources):
            self._news.set()

    async def run(self) -> None:
        """Collect, for ever. A server that does not answer only delays it."""
        while True:
            try:
                await self._collect_children()
                await self._collect_targets()
            except RemudaError as error:
                structlog.get_logger().warning("collection put off", cause=error.sentence)
                await self._clock.sleep(_PAUSE_S)
                continue
            await self._news.wait()
            self._news.clear()

    async def _collect_children(self) -> None:
        """Delete what marked owners own; let go of those that own nothing any more."""
        for kind, owner in self._marked(HAS_CHILDREN):
            children = self._reader.children(owner)
            for child_kind, name in children:
                child = self._reader.find(child_kind, name)
                if child is not None and not child.is_marked:
                    await self._collect_child(child_kind, child, owner)
            if not children:
                await self._release(kind, owner, HAS_CHILDREN)

    async def _collect_child(self, kind: Kind[Any], child: Resource, owner: Resource) -> None:
        """Delete a child, or, if it has another owner that stays, only take it from this one."""
        with suppress(Conflict, NotFound):
            if has_other_owner(self._registry, child, owner, self._reader.find):
                await self._writer.update(disowned(child, owner))
            else:
                await self._writer.delete(kind, child.name, uid=child.uid, version=None)

    async def _collect_targets(self) -> None:
        """Let go of what nobody refers to."""
        candidates = [
            (kind, target)
            for kind, target in self._marked(IN_USE)
            if not self._is_blocked(target, self._known_referrers(kind, target.name))
        ]
        if not candidates:
            return
        referrers = await self._look({kind.qualified for kind, _ in candidates})
        for kind, target in candidates:
            if not self._is_blocked(target, referrers.get((kind.qualified, target.name), ())):
                await self._release(kind, target, IN_USE)

    def _marked(self, finalizer: str) -> Iterator[tuple[Kind[Any], Resource]]:
        for kind in self._registry.kinds:
            for resource in self._reader.under(kind, MARKED, ""):
                if finalizer in resource.metadata.finalizers:
                    yield kind, resource

    def _known_referrers(self, kind: Kind[Any], name: str) -> Iterable[Target]:
        known = self._reader.referrers(kind, name, limit=50)
        return [(referrer.kind.qualified, referrer.name) for referrer in known]

    def _is_blocked(self, target: Resource, referrers: Iterable[Target]) -> bool:
        """Tell whether anybody but the target's own dying owners, who wait for it, refers to it."""
        pending = set(referrers)
        return bool(pending and pending - dying_owners(self._registry, target, self._reader.find))

    async def _look(self, targets: Iterable[str]) -> dict[Target, set[Target]]:
        """Ask the API server who refers to objects of these kinds now."""
        kinds = {
            k.qualified: k for target in targets for k in self._registry.referrers_of(self._registry.named(target))
        }
        found: dict[Target, set[Target]] = {}
        for kind in kinds.values():
            token, is_last = "", False
            while not is_last:
                page = await self._apis[kind.type].list_page(limit=_PAGE, continue_=token)
                token, is_last = page.metadata.continue_, not page.metadata.continue_
                for item in page.items:
                    referrer = self._codecs[kind.type].decode_named(item)
                    for target in kind.targets(referrer):
                        found.setdefault(target, set()).add((kind.qualified, referrer.name))
        return found

    async def _release(self, kind: Kind[Any], resource: Resource, finalizer: str) -> None:
        """Take a finalizer of ours off. If the object has changed meanwhile, its change brings us here again."""
        kept = [one for one in resource.metadata.finalizers if one != finalizer]
        with suppress(Conflict, NotFound):
            await self._writer.hold(kind, resource, kept)
