"""Stores that break what create promises."""

from typing import Any

import msgspec
from msgspec.structs import replace

from remuda.kernel.errors import AlreadyExists
from remuda.store.objects import ResourceT
from tests.kit.proofs.store_contract.broken.flawed import Flaw, Flawed, breaks
from tests.kit.proofs.store_contract.guarantees import creates as guarantees

FLAWS: list[Flaw] = []


@breaks(FLAWS, guarantees.create_rejects_a_taken_name)
class TakesACreateForAGet(Flawed):
    """Of one who writes without records."""

    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        try:
            return await self.sound.create(resource, **options)
        except AlreadyExists as error:
            if error.kind != type(resource).__name__ or options:
                raise
            return await self.sound.get(type(resource), resource.name)


@breaks(FLAWS, guarantees.kinds_do_not_share_names)
class HasOneSpaceOfNames(Flawed):
    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        for kind in self.registry.kinds:
            if kind.type is not type(resource) and self.find(kind.type, resource.name):
                raise AlreadyExists(kind.name, resource.name)
        return await self.sound.create(resource, **options)


@breaks(FLAWS, guarantees.create_returns_what_is_stored)
class ReturnsNoAnnotations(Flawed):
    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        created = await self.sound.create(resource, **options)
        return replace(created, metadata=replace(created.metadata, annotations={}))


@breaks(FLAWS, guarantees.create_stores_no_status)
class StoresTheCallersStatus(Flawed):
    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        created = await self.sound.create(resource, **options)
        status = getattr(resource, "status", None)
        if status == getattr(created, "status", None):
            return created
        return await self.sound.update_status(msgspec.structs.replace(created, status=status))


@breaks(FLAWS, guarantees.create_gives_a_uid_of_its_own)
class StoresTheCallersUid(Flawed):
    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        created = await self.sound.create(resource, **options)
        if not resource.uid:
            return created
        return await self.force(replace(created, metadata=replace(created.metadata, uid=resource.uid)))


@breaks(FLAWS, guarantees.each_incarnation_has_a_uid_of_its_own)
class RemembersTheUidsOfRanches(Flawed):
    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        created = await self.sound.create(resource, **options)
        if type(resource).__name__ != "Pasture":
            return created
        known: dict[str, str] = self.__dict__.setdefault("uids", {})
        if created.name not in known:
            known[created.name] = created.uid
            return created
        return await self.force(replace(created, metadata=replace(created.metadata, uid=known[created.name])))


@breaks(FLAWS, guarantees.create_fills_in_what_callers_may_not_set)
class BelievesTheCallersGeneration(Flawed):
    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        created = await self.sound.create(resource, **options)
        claimed = resource.metadata.generation
        if claimed <= 1:
            return created
        return await self.force(replace(created, metadata=replace(created.metadata, generation=claimed)))
