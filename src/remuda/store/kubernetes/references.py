"""A look: who refers to whom, by a consistent read that begins now.

Our own index may be behind, so alone it can only say that somebody refers. That nobody does, the API server has to say:
by a list, or, of a kind that fills more than a page, by the version up to which our index must have come.

Whether owners and targets stay: as far as we know, and as the API server says.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import structlog

from remuda.kernel.errors import Gone, NotFound, OwnerRefused, ReferenceRefused, RemudaError, Unreadable, Unsealable
from remuda.store.codec import Codec
from remuda.store.kinds import Kind, Registry
from remuda.store.kubernetes.mirror import Known
from remuda.store.kubernetes.resource_client import Listed, ResourceApi
from remuda.store.objects import OwnerReference, Resource, ResourceT
from remuda.store.readside.reader import Reader

Target = tuple[str, str]
"""Qualified kind and name."""


class _Mark(msgspec.Struct, frozen=True, rename="camel"):
    deletion_timestamp: str | None = None


class _Marked(msgspec.Struct, frozen=True):
    metadata: _Mark


class References:
    """Judges what an object names."""

    def __init__(self, reader: Reader, known: Known, apis: Mapping[type[Resource], ResourceApi[Any]]) -> None:
        self._reader = reader
        self._registry: Registry = reader.registry
        self._known = known
        self._apis = apis

    async def check_owners(self, kind: Kind[Any], child: Resource, owners: Iterable[OwnerReference]) -> None:
        """Refuse a child whose owner is absent or being deleted."""
        for reference in owners:
            owning = self._registry.owning(reference)
            owner = await self._find(owning, reference.name) if owning else None
            if owner is None or owner.uid != reference.uid or owner.is_marked:
                raise OwnerRefused(kind.name, child.name, owner=f"{reference.kind} {reference.name}")

    async def check(self, kind: Kind[Any], referrer: Resource, targets: Iterable[Target]) -> None:
        """Refuse a referrer to something that we know is absent or being deleted."""
        for qualified, name in sorted(targets):
            target_kind = self._registry.named(qualified)
            target = await self._find(target_kind, name)
            if target is None or target.is_marked:
                raise ReferenceRefused(kind.name, referrer.name, target_kind=target_kind.name, target=name)

    async def check_again(self, kind: Kind[Any], referrer: Resource, targets: Iterable[Target]) -> None:
        """Refuse a referrer, stored by now, to something that the API server says is absent or being deleted."""
        for qualified, name in sorted(targets):
            target_kind = self._registry.named(qualified)
            if not await self._stays(target_kind, name):
                raise ReferenceRefused(kind.name, referrer.name, target_kind=target_kind.name, target=name)

    async def _stays(self, kind: Kind[Any], name: str) -> bool:
        try:
            document = await self._apis[kind.type].get(name)
        except NotFound:
            return False
        return msgspec.json.decode(document, type=_Marked).metadata.deletion_timestamp is None

    async def _find(self, kind: Kind[ResourceT], name: str) -> ResourceT | None:
        """Return an object as we know it, or ask the server if we know of none."""
        try:
            known = self._known.find(kind, name)
            return known or self._reader.decode(kind, await self._apis[kind.type].get(name), name)
        except NotFound:
            return None


_PAGE = 500
_SLICE = 100
_CATCH_UP_S = 1.0


@dataclass
class Sight:
    """What a look has found, to be read beside the index."""

    referrers: dict[Target, set[Target]] = field(default_factory=dict)
    doubtful: dict[str, str] = field(default_factory=dict)
    """The kinds of which not every object could be read, and why: they may refer to anything."""
    is_unanswered: bool = False


class Looking:
    """Looks at kinds of referrers."""

    def __init__(
        self,
        reader: Reader,
        known: Known,
        *,
        apis: Mapping[type[Resource], ResourceApi[Any]],
        codecs: Mapping[type[Resource], Codec[Any]],
    ) -> None:
        self._reader = reader
        self._known = known
        self._apis = apis
        self._codecs = codecs

    async def at(self, kinds: Iterable[Kind[Any]]) -> Sight:
        """Return what objects of these kinds refer to now."""
        sight = Sight()
        for kind in kinds:
            try:
                await self._look(kind, sight)
            except (Unreadable, Unsealable) as error:
                sight.doubtful[kind.qualified] = error.sentence
            except RemudaError as error:
                sight.doubtful[kind.qualified] = error.sentence
                sight.is_unanswered = True
            if self._known.unreadable(kind):
                sight.doubtful[kind.qualified] = "some of them cannot be read"
        for kind_name, cause in sight.doubtful.items():
            structlog.get_logger().warning("references unclear", kind=kind_name, cause=cause)
        return sight

    async def _look(self, kind: Kind[Any], sight: Sight) -> None:
        page = await self._apis[kind.type].list_page(limit=_PAGE)
        if page.metadata.continue_ and await self._has_caught_up(kind, page):
            return
        await self._note(kind, page, sight)
        while page.metadata.continue_:
            page = await self._apis[kind.type].list_page(limit=_PAGE, continue_=page.metadata.continue_)
            await self._note(kind, page, sight)

    async def _has_caught_up(self, kind: Kind[Any], page: Listed) -> bool:
        """Tell whether our index is as new as a page. Of a kind that rests we may only be told so once a minute."""
        try:
            await self._reader.feed(kind).reach(int(page.metadata.resource_version), _CATCH_UP_S)
        except Gone:
            return False
        return True

    async def _note(self, kind: Kind[Any], page: Listed, sight: Sight) -> None:
        for number, item in enumerate(page.items):
            referrer = self._codecs[kind.type].decode_named(item)
            for target in kind.targets(referrer):
                sight.referrers.setdefault(target, set()).add((kind.qualified, referrer.name))
            if number % _SLICE == _SLICE - 1:
                await self._reader.pause()
