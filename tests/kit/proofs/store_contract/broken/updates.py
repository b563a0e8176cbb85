"""Stores that break what update and update_status promise."""

from typing import Any

import msgspec
from msgspec.structs import replace

from remuda.kernel.errors import AlreadyExists, Conflict, Invalid, NotFound, ReferenceRejected
from remuda.store.lifecycle import with_desired, with_status
from remuda.store.objects import ResourceT
from remuda.store.validation import check_resource, check_size, check_status
from tests.kit.proofs.store_contract.broken.flawed import Flaw, Flawed, breaks
from tests.kit.proofs.store_contract.guarantees import updates as guarantees
from tests.kit.proofs.store_contract.steps import with_metadata

FLAWS: list[Flaw] = []


def is_at_the_stored_version(stored: ResourceT | None, wanted: ResourceT) -> bool:
    return stored is not None and stored.version == wanted.version


def part(resource: Any, name: str) -> Any:
    return getattr(resource, name, None)


@breaks(FLAWS, guarantees.update_writes_metadata_and_spec)
class ForgetsAnnotationsOverASpec(Flawed):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        stored = self.stored(resource)
        if stored is not None and part(stored, "spec") != part(resource, "spec"):
            resource = with_metadata(resource, annotations=stored.metadata.annotations)
        return await self.sound.update(resource, **options)


@breaks(FLAWS, guarantees.update_keeps_status)
class UpdatesTheStatusToo(Flawed):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        updated = await self.sound.update(resource, **options)
        if part(updated, "status") == part(resource, "status"):
            return updated
        return await self.sound.update_status(replace(updated, status=part(resource, "status")))


@breaks(FLAWS, guarantees.update_status_writes_status)
class ForgetsThePlaceOverConditions(Flawed):
    async def update_status(self, resource: ResourceT, **options: Any) -> ResourceT:
        status = part(resource, "status")
        if status.conditions:
            resource = replace(resource, status=replace(status, place=""))
        return await self.sound.update_status(resource, **options)


@breaks(FLAWS, guarantees.update_status_keeps_the_rest)
class UpdatesTheSpecToo(Flawed):
    async def update_status(self, resource: ResourceT, **options: Any) -> ResourceT:
        placed = await self.sound.update_status(resource, **options)
        if part(placed, "spec") == part(resource, "spec"):
            return placed
        return await self.sound.update(replace(placed, spec=part(resource, "spec")))


@breaks(FLAWS, guarantees.a_stale_update_conflicts)
class RedoesAStaleUpdate(Flawed):
    """Of one who writes alone, and without records."""

    writing = 0

    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        is_alone, self.writing = self.writing == 0, self.writing + 1
        try:
            return await self.sound.update(resource, **options)
        except Conflict as conflict:
            stored = self.stored(resource)
            if stored is None or options or not is_alone or part(stored, "spec") == part(resource, "spec"):
                raise
            try:
                return await self.sound.update(with_metadata(resource, resource_version=stored.version))
            except (Invalid, ReferenceRejected):
                raise conflict from None
        finally:
            self.writing -= 1


@breaks(FLAWS, guarantees.a_stale_status_conflicts)
class RedoesAStaleStatus(Flawed):
    async def update_status(self, resource: ResourceT, **options: Any) -> ResourceT:
        try:
            return await self.sound.update_status(resource, **options)
        except Conflict as conflict:
            stored = self.stored(resource)
            if stored is None or part(stored, "status") == part(resource, "status"):
                raise
            try:
                return await self.sound.update_status(with_metadata(resource, resource_version=stored.version))
            except Invalid:
                raise conflict from None


@breaks(FLAWS, guarantees.a_stale_update_conflicts_before_nothing_changed)
class SeesFirstThatNothingChanged(Flawed):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        stored = self.stored(resource)
        if stored is None or stored.is_deleting:
            return await self.sound.update(resource, **options)
        if with_desired(self.registry.of(type(resource)), stored, resource) == stored:
            return stored
        return await self.sound.update(resource, **options)


@breaks(FLAWS, guarantees.a_stale_status_conflicts_before_nothing_changed)
class SeesFirstThatNoStatusChanged(Flawed):
    async def update_status(self, resource: ResourceT, **options: Any) -> ResourceT:
        stored = self.stored(resource)
        if stored is not None and with_status(self.registry.of(type(resource)), stored, resource) == stored:
            return stored
        return await self.sound.update_status(resource, **options)


@breaks(FLAWS, guarantees.a_stale_update_conflicts_before_references_are_checked)
class ChecksReferencesFirst(Flawed):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        for target, name in self.registry.of(type(resource)).targets(resource):
            if self.find(self.registry.named(target).type, name) is None:
                raise ReferenceRejected(type(resource).__name__, resource.name, target_kind=target, target=name)
        return await self.sound.update(resource, **options)


@breaks(FLAWS, guarantees.a_stale_update_conflicts_before_it_is_checked)
class ChecksFirst(Flawed):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        check_resource(self.registry.of(type(resource)), resource)
        return await self.sound.update(resource, **options)


@breaks(FLAWS, guarantees.a_stale_update_conflicts_before_it_is_checked)
class MeasuresFirst(Flawed):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        check_size(msgspec.json.encode(resource, enc_hook=str))
        return await self.sound.update(resource, **options)


@breaks(FLAWS, guarantees.a_stale_status_conflicts_before_it_is_checked)
class ChecksTheStatusFirst(Flawed):
    async def update_status(self, resource: ResourceT, **options: Any) -> ResourceT:
        check_status(self.registry.of(type(resource)), resource)
        return await self.sound.update_status(resource, **options)


@breaks(FLAWS, guarantees.a_stale_status_conflicts_before_it_is_checked)
class MeasuresTheStatusFirst(Flawed):
    async def update_status(self, resource: ResourceT, **options: Any) -> ResourceT:
        check_size(msgspec.json.encode(resource, enc_hook=str))
        return await self.sound.update_status(resource, **options)


@breaks(FLAWS, guarantees.a_stale_update_conflicts_before_late_finalizers_are_checked)
class ChecksFinalizersFirst(Flawed):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        stored = self.stored(resource)
        if stored is not None:
            with_desired(self.registry.of(type(resource)), stored, resource)
        return await self.sound.update(resource, **options)


@breaks(FLAWS, guarantees.one_of_many_writers_wins)
class LetsTheLastOfManyWin(Flawed):
    writing = 0

    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        is_alone, self.writing = self.writing == 0, self.writing + 1
        try:
            return await self.sound.update(resource, **options)
        except Conflict:
            stored = self.stored(resource)
            if is_alone or stored is None:
                raise
            return await self.force(with_desired(self.registry.of(type(resource)), stored, resource))
        finally:
            self.writing -= 1


@breaks(FLAWS, guarantees.update_of_the_absent_is_not_found)
class CreatesWhatIsUpdated(Flawed):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        try:
            return await self.sound.update(resource, **options)
        except NotFound:
            return await self.sound.create(resource)


@breaks(FLAWS, guarantees.update_status_of_the_absent_is_not_found)
class IgnoresTheStatusOfTheAbsent(Flawed):
    async def update_status(self, resource: ResourceT, **options: Any) -> ResourceT:
        try:
            return await self.sound.update_status(resource, **options)
        except NotFound:
            return resource


class WritesWithoutChange(Flawed):
    has_secret: bool

    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        before = self.stored(resource)
        updated = await self.sound.update(resource, **options)
        is_ours = (part(part(updated, "spec"), "brand") is not None) == self.has_secret
        return await self.force(updated) if updated == before and is_ours else updated


@breaks(FLAWS, guarantees.an_update_without_change_is_no_write)
class WritesAnUpdateWithoutChange(WritesWithoutChange):
    has_secret = False


@breaks(FLAWS, guarantees.the_same_secret_again_is_no_write)
class WritesTheSameSecretAgain(WritesWithoutChange):
    has_secret = True


@breaks(FLAWS, guarantees.a_status_without_change_is_no_write)
class WritesAStatusWithoutChange(Flawed):
    async def update_status(self, resource: ResourceT, **options: Any) -> ResourceT:
        before = self.stored(resource)
        placed = await self.sound.update_status(resource, **options)
        return await self.amend(placed, placed) if placed == before else placed


@breaks(FLAWS, guarantees.a_refused_write_is_no_write)
class NotesARefusedCreate(Flawed):
    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        try:
            return await self.sound.create(resource, **options)
        except AlreadyExists:
            stored = self.stored(resource)
            if stored is not None:
                await self.force(with_metadata(stored, annotations={"refused": "once"}))
            raise


@breaks(FLAWS, guarantees.generation_moves_with_the_spec)
class KeepsTheGenerationOfRanches(Flawed):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        stored = self.stored(resource)
        only_spec = stored is not None and resource.metadata == stored.metadata
        if only_spec and type(resource).__name__ == "Pasture" and part(stored, "spec") != part(resource, "spec"):
            return await self.force_update(resource)
        return await self.sound.update(resource, **options)


@breaks(FLAWS, guarantees.generation_stays_when_metadata_changes)
class CountsLabelsAsIntent(Flawed):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        before = self.stored(resource)
        updated = await self.sound.update(resource, **options)
        if before is None or before.metadata.labels == updated.metadata.labels or updated.is_deleting:
            return updated
        if part(before, "spec") != part(updated, "spec") or updated.metadata.annotations == {}:
            return updated
        return await self.force(with_metadata(updated, generation=updated.metadata.generation + 1))


@breaks(FLAWS, guarantees.generation_stays_when_status_changes)
class CountsStatusAsIntent(Flawed):
    async def update_status(self, resource: ResourceT, **options: Any) -> ResourceT:
        before = self.stored(resource)
        placed = await self.sound.update_status(resource, **options)
        if placed == before:
            return placed
        return await self.amend(placed, with_metadata(placed, generation=placed.metadata.generation + 1))
