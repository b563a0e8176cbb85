"""Stores that break what delete promises."""

from typing import Any

from remuda.kernel.errors import Conflict, Invalid, NotFound
from remuda.store.objects import ResourceT
from remuda.store.validation import check_size
from tests.kit.proofs.store_contract.broken.flawed import Flaw, Flawed, breaks
from tests.kit.proofs.store_contract.guarantees import deletes as guarantees
from tests.kit.proofs.store_contract.steps import with_metadata
from tests.kit.sample_kinds import Corral, Pasture

FLAWS: list[Flaw] = []


@breaks(FLAWS, guarantees.delete_removes)
class KeepsWhatNobodyEverReferredTo(Flawed):
    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        stored = self.find(kind, name)
        if isinstance(stored, Corral) and not await self.sound.referrers(kind, name):
            return await self.force_mark(stored)
        return await self.sound.delete(kind, name, **options)


@breaks(FLAWS, guarantees.delete_marks_what_is_held)
class ReturnsNothingMarked(Flawed):
    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        await self.sound.delete(kind, name, **options)
        return None


@breaks(FLAWS, guarantees.the_last_finalizer_releases_it)
class KeepsReleasedRanches(Flawed):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        stored = self.stored(resource)
        is_last = resource.is_deleting and not resource.metadata.finalizers
        if is_last and isinstance(stored, Pasture) and stored.metadata.labels == resource.metadata.labels:
            return await self.force_update(resource)
        return await self.sound.update(resource, **options)


@breaks(FLAWS, guarantees.any_finalizer_holds)
class ReleasesWithTheFirstFinalizer(Flawed):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        before = self.stored(resource)
        updated = await self.sound.update(resource, **options)
        held = set(before.metadata.finalizers) if before is not None and before.is_deleting else set()
        if updated.metadata.finalizers and held > set(updated.metadata.finalizers):
            await self.force_out(updated)
        return updated


@breaks(FLAWS, guarantees.no_finalizer_comes_after_the_mark)
class TakesLateFinalizers(Flawed):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        try:
            return await self.sound.update(resource, **options)
        except Invalid:
            stored = self.stored(resource)
            if stored is None or not stored.is_deleting:
                raise
            return await self.force(with_metadata(stored, finalizers=resource.metadata.finalizers))


@breaks(FLAWS, guarantees.the_mark_stays)
class TakesOffTheMark(Flawed):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        updated = await self.sound.update(resource, **options)
        if updated.is_deleting and not resource.is_deleting:
            return await self.force(with_metadata(updated, deletion_timestamp=None))
        return updated


@breaks(FLAWS, guarantees.deleting_again_writes_nothing)
class MarksAgain(Flawed):
    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        before = self.find(kind, name)
        left = await self.sound.delete(kind, name, **options)
        return await self.force(left) if left is not None and before is not None and before.is_deleting else left


@breaks(FLAWS, guarantees.generation_moves_with_the_mark)
class MarksWithinTheGeneration(Flawed):
    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        before = self.find(kind, name)
        left = await self.sound.delete(kind, name, **options)
        if left is None or before is None or before.is_deleting:
            return left
        return await self.force(with_metadata(left, generation=before.metadata.generation))


@breaks(FLAWS, guarantees.generation_stays_when_a_finalizer_goes)
class CountsFinalizersAsIntent(Flawed):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        before = self.stored(resource)
        updated = await self.sound.update(resource, **options)
        if before is None or updated.is_deleting or before.metadata.finalizers == updated.metadata.finalizers:
            return updated
        return await self.force(with_metadata(updated, generation=updated.metadata.generation + 1))


@breaks(FLAWS, guarantees.delete_of_another_incarnation_conflicts)
class DeletesAnyIncarnation(Flawed):
    """Of what has no children."""

    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        stored = self.find(kind, name)
        if stored is not None and "log" not in options and not self.children(stored):
            options["uid"] = stored.uid
        return await self.sound.delete(kind, name, **options)


@breaks(FLAWS, guarantees.delete_of_another_version_conflicts)
class DeletesAnyVersion(Flawed):
    """Of what has no children."""

    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        stored = self.find(kind, name)
        if stored is not None and not self.children(stored):
            options["version"] = None
        return await self.sound.delete(kind, name, **options)


@breaks(FLAWS, guarantees.delete_of_the_stored_version_goes_through)
class DeletesNoVersion(Flawed):
    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        if options.get("version"):
            raise Conflict(kind.__name__, name)
        return await self.sound.delete(kind, name, **options)


@breaks(FLAWS, guarantees.delete_of_the_absent_is_not_found)
class DeletesTheAbsent(Flawed):
    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        try:
            return await self.sound.delete(kind, name, **options)
        except NotFound:
            return None


@breaks(FLAWS, guarantees.delete_by_uid_alone_never_conflicts)
class DeletesTheVersionItFinds(Flawed):
    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        found = await self.sound.get(kind, name)
        await self.sound.maintenance._clock.sleep(0.05)
        return await self.sound.delete(kind, name, **({"version": found.version} | options))


@breaks(FLAWS, guarantees.a_refused_delete_touches_no_child)
class MarksChildrenFirst(Flawed):
    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        owner = self.find(kind, name)
        for child in self.children(owner) if owner is not None and options.get("version") else ():
            await self.sound.delete(type(child), child.name, uid=child.uid)
        return await self.sound.delete(kind, name, **options)


@breaks(FLAWS, guarantees.the_largest_can_be_deleted)
class CannotMarkTheLargest(Flawed):
    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        stored = self.find(kind, name)
        if stored is not None:
            marked = with_metadata(stored, deletion_timestamp=self.sound.maintenance._clock.now())
            check_size(self.sound._writer._side.codecs[kind].encode(marked))
        return await self.sound.delete(kind, name, **options)
