"""Letting go of marked objects that nobody refers to any more.

Whatever can be referred to carries our finalizer. Mark, then look: the finalizer comes off only after a consistent
read, begun after the mark was seen, found no referrer. Our own index may be behind, so it can only say that somebody
refers; that nobody does, the API server has to say.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import structlog

from remuda.kernel.clock import Clock
from remuda.kernel.errors import Conflict, NotFound, RemudaError
from remuda.store.codec import Codec
from remuda.store.kinds import Kind, Registry
from remuda.store.kubernetes.resources import ResourceApi
from remuda.store.lifecycle import dying_owners, with_finalizers
from remuda.store.objects import IN_USE, Resource
from remuda.store.readside.feed import Landed
from remuda.store.readside.reader import Reader
from remuda.store.readside.terms import MARKED

__all__ = ["Collector"]

_PAGE = 500
_PAUSE_S = 1.0

Target = tuple[str, str]


class Collector:
    """Looks again whenever something was marked, or something that refers has changed."""

    def __init__(
        self,
        reader: Reader,
        apis: Mapping[type[Resource], ResourceApi[Any]],
        codecs: Mapping[type[Resource], Codec[Any]],
        clock: Clock,
    ) -> None:
        self._reader = reader
        self._registry: Registry = reader.registry
        self._apis = apis
        self._codecs = codecs
        self._clock = clock
        self._news = asyncio.Event()
        self._news.set()

    def notice(self, kind: Kind[Any], changes: Sequence[Landed[Any]]) -> None:
        """Hear what an informer has seen."""
        if kind.references or any(change.event.resource.is_marked for change in changes):
            self._news.set()

    async def run(self) -> None:
        """Collect, for ever. A server that does not answer only delays it."""
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self.collect()
            except RemudaError as error:
                structlog.get_logger().warning("nothing collected", cause=error.sentence)
                self._news.set()
                await self._clock.sleep(_PAUSE_S)

    async def collect(self) -> None:
        """Let go of everything marked that nobody refers to."""
        candidates = {
            (kind.qualified, target.name): target
            for kind in self._registry.kinds
            if self._registry.is_target(kind)
            for target in self._marked(kind)
            if not self._blocked(target, self._known_referrers(kind, target.name))
        }
        if not candidates:
            return
        referrers = await self._look({kind for kind, _ in candidates})
        for (qualified, name), target in candidates.items():
            kind = self._registry.named(qualified)
            if not self._blocked(target, referrers.get((qualified, name), ())):
                await self._release(kind, target)

    def _marked(self, kind: Kind[Any]) -> Iterable[Resource]:
        found = self._reader.under(kind, MARKED, "")
        return [target for target in found if target.is_marked and IN_USE in target.metadata.finalizers]

    def _known_referrers(self, kind: Kind[Any], name: str) -> Iterable[Target]:
        known = self._reader.referrers(kind, name, limit=50)
        return [(referrer.kind.qualified, referrer.name) for referrer in known]

    def _blocked(self, target: Resource, referrers: Iterable[Target]) -> bool:
        """Tell whether anybody but the target's own dying owners, who wait for it, refers to it."""
        pending = set(referrers)
        return bool(pending and pending - dying_owners(self._registry, target, self._reader.find))

    async def _look(self, targets: Iterable[str]) -> dict[Target, set[Target]]:
        """Ask the API server who refers to objects of these kinds now."""
        found: dict[Target, set[Target]] = {}
        kinds = {
            k.qualified: k for target in targets for k in self._registry.referrers_of(self._registry.named(target))
        }
        for kind in kinds.values():
            token, is_last = "", False
            while not is_last:
                page = await self._apis[kind.type].list_page(limit=_PAGE, continue_=token)
                token = page.metadata.continue_
                is_last = not token
                for item in page.items:
                    referrer = self._codecs[kind.type].decode_named(item)
                    for target in kind.targets(referrer):
                        found.setdefault(target, set()).add((kind.qualified, referrer.name))
        return found

    async def _release(self, kind: Kind[Any], target: Resource) -> None:
        """Take our finalizer off. If the object has changed meanwhile, its change brings us here again."""
        held = [finalizer for finalizer in target.metadata.finalizers if finalizer != IN_USE]
        row = self._reader.tables.find(self._reader.names.kind(kind), target.name)
        if row is None or str(row.version) != target.version:
            self._news.set()
            return
        body = self._codecs[kind.type].encode_over(row.document, with_finalizers(target, held))
        try:
            await self._apis[kind.type].update(body, target.name)
        except (Conflict, NotFound):
            self._news.set()
