"""References on an API server: validation of owners and targets, and consistent reads of referrers.

Our own index may be behind, so it can prove that there is a referrer, but not that there is none. For that the API
server is read: a list, or, of a kind with more than one page, the version that our index must reach.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import structlog

from remuda.kernel.errors import Gone, NotFound, OwnerRejected, ReferenceRejected, RemudaError, Unreadable, Unsealable
from remuda.store.codec import Codec
from remuda.store.kinds import Kind, Registry
from remuda.store.kubernetes.mirror import InformerCache
from remuda.store.kubernetes.resource_client import ListPage, ResourceApi
from remuda.store.objects import OwnerReference, Resource, ResourceT
from remuda.store.readside.reader import Reader

Target = tuple[str, str]
"""Qualified kind and name."""


class _DeletionMetadata(msgspec.Struct, frozen=True, rename="camel"):
    deletion_timestamp: str | None = None


class _Deletable(msgspec.Struct, frozen=True):
    metadata: _DeletionMetadata


class References:
    """Validates the owners and targets of an object."""

    def __init__(self, reader: Reader, known: InformerCache, apis: Mapping[type[Resource], ResourceApi[Any]]) -> None:
        self._reader = reader
        self._registry: Registry = reader.registry
        self._known, self._apis = known, apis

    async def check_owners(self, kind: Kind[Any], child: Resource, owners: Iterable[OwnerReference]) -> None:
        """Reject a child whose owner is absent or being deleted."""
        for reference in owners:
            owning = self._registry.owning(reference)
            owner = await self._find(owning, reference.name) if owning else None
            if owner is None or owner.uid != reference.uid or owner.is_deleting:
                raise OwnerRejected(kind.name, child.name, owner=f"{reference.kind} {reference.name}")

    async def check(self, kind: Kind[Any], referrer: Resource, targets: Iterable[Target]) -> None:
        """Reject a reference to an object that is known to be absent or being deleted."""
        for qualified, name in sorted(targets):
            target_kind = self._registry.named(qualified)
            target = await self._find(target_kind, name)
            if target is None or target.is_deleting:
                raise ReferenceRejected(kind.name, referrer.name, target_kind=target_kind.name, target=name)

    async def confirm(self, kind: Kind[Any], referrer: Resource, targets: Iterable[Target]) -> None:
        """Reject a reference of a stored referrer to an object that the API server reports as absent or deleting."""
        for qualified, name in sorted(targets):
            target_kind = self._registry.named(qualified)
            if not await self._is_present(target_kind, name):
                raise ReferenceRejected(kind.name, referrer.name, target_kind=target_kind.name, target=name)

    async def _is_present(self, kind: Kind[Any], name: str) -> bool:
        try:
            document = await self._apis[kind.type].get(name)
        except NotFound:
            return False
        return msgspec.json.decode(document, type=_Deletable).metadata.deletion_timestamp is None

    async def _find(self, kind: Kind[ResourceT], name: str) -> ResourceT | None:
        """Return an object as we know it, or read it from the server."""
        try:
            known = self._known.find(kind, name)
            return known or self._reader.decode(kind, await self._apis[kind.type].get(name), name)
        except NotFound:
            return None


_PAGE = 500
_SLICE = 100
_CATCH_UP_S = 1.0


@dataclass
class ReferrerSnapshot:
    """The references that were read, to be used together with the index."""

    referrers: dict[Target, set[Target]] = field(default_factory=dict)
    uncertain: dict[str, str] = field(default_factory=dict)
    """The kinds of which an object could not be read, with the reason: it may refer to anything."""
    has_failed: bool = False


class ReferrerReader:
    """Reads the references of kinds from the API server."""

    def __init__(
        self,
        reader: Reader,
        known: InformerCache,
        *,
        apis: Mapping[type[Resource], ResourceApi[Any]],
        codecs: Mapping[type[Resource], Codec[Any]],
    ) -> None:
        self._reader, self._known, self._apis = reader, known, apis
        self._codecs = codecs

    async def read(self, kinds: Iterable[Kind[Any]]) -> ReferrerSnapshot:
        snapshot = ReferrerSnapshot()
        for kind in kinds:
            try:
                await self._read_kind(kind, snapshot)
            except (Unreadable, Unsealable) as error:
                snapshot.uncertain[kind.qualified] = error.message
            except RemudaError as error:
                snapshot.uncertain[kind.qualified] = error.message
                snapshot.has_failed = True
            if self._known.unreadable(kind):
                snapshot.uncertain[kind.qualified] = "some of them cannot be read"
        for kind_name, cause in snapshot.uncertain.items():
            structlog.get_logger().warning("references could not be read", kind=kind_name, cause=cause)
        return snapshot

    async def _read_kind(self, kind: Kind[Any], snapshot: ReferrerSnapshot) -> None:
        page = await self._apis[kind.type].list_page(limit=_PAGE)
        if page.metadata.continue_ and await self._has_caught_up(kind, page):
            return
        await self._add(kind, page, snapshot)
        while page.metadata.continue_:
            page = await self._apis[kind.type].list_page(limit=_PAGE, continue_=page.metadata.continue_)
            await self._add(kind, page, snapshot)

    async def _has_caught_up(self, kind: Kind[Any], page: ListPage) -> bool:
        """Return whether our index is as new as a page. An idle kind gets a bookmark only once a minute."""
        try:
            await self._reader.feed(kind).reach(int(page.metadata.resource_version), _CATCH_UP_S)
        except Gone:
            return False
        return True

    async def _add(self, kind: Kind[Any], page: ListPage, snapshot: ReferrerSnapshot) -> None:
        for number, item in enumerate(page.items):
            referrer = self._codecs[kind.type].decode_named(item)
            for target in kind.targets(referrer):
                snapshot.referrers.setdefault(target, set()).add((kind.qualified, referrer.name))
            if number % _SLICE == _SLICE - 1:
                await self._reader.pause()
