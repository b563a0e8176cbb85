"""Stores that break what create promises."""

from collections import Counter
from typing import Any

import msgspec
from msgspec.structs import replace

from remuda.kernel.errors import AlreadyExists, TooManyObjects
from remuda.store.objects import ResourceT
from remuda.store.sqlite.store import SqliteStore
from tests.kit.proofs.store_contract.broken.flawed import Flaw, Flawed, breaks
from tests.kit.proofs.store_contract.guarantees import creates as guarantees
from tests.kit.proofs.store_contract.steps import with_metadata
from tests.kit.sample_kinds import FARM, MOST_PASTURES

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


@breaks(FLAWS, guarantees.concurrent_creates_stay_within_the_object_limit)
class CountsBeforeOthersWrite(Flawed):
    _running = 0

    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        self._running += 1
        try:
            return await self.sound.create(resource, **options)
        except TooManyObjects:
            if self._running == 1:
                raise
            return await self.sound.create(with_metadata(resource, labels={}), **options)
        finally:
            self._running -= 1


@breaks(FLAWS, guarantees.the_object_limit_counts_what_is_there)
class CountsWhatWasThere(Flawed):
    def __init__(self, sound: SqliteStore) -> None:
        super().__init__(sound)
        self._created = Counter[str]()

    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        farm = resource.metadata.labels.get(FARM, "")
        if farm and self._created[farm] == MOST_PASTURES:
            raise TooManyObjects("pastures", scope="farm", limit=MOST_PASTURES)
        created = await self.sound.create(resource, **options)
        self._created[farm] += 1
        return created
