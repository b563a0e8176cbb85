"""Whether owners and targets stay: as far as we know, and as the API server says."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from remuda.kernel.errors import NotFound, OwnerRefused, ReferenceRefused
from remuda.store.kinds import Kind, Registry
from remuda.store.kubernetes.known import Known
from remuda.store.kubernetes.resource_client import ResourceApi
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
