"""Stores that break what references promise."""

from collections.abc import Sequence
from typing import Any

from remuda.kernel.errors import ReferenceRejected
from remuda.store.contract import Referrer
from remuda.store.objects import FOREGROUND, IN_USE, Resource, ResourceT
from tests.kit.proofs.store_contract.broken.flawed import Flaw, Flawed, breaks
from tests.kit.proofs.store_contract.guarantees import references as guarantees
from tests.kit.proofs.store_contract.steps import with_metadata
from tests.kit.sample_kinds import Corral, Horse, Pasture

FLAWS: list[Flaw] = []


class Referring(Flawed):
    """Knows whom an object refers to."""

    def targets(self, resource: Resource) -> list[Corral]:
        if not isinstance(resource, Horse):
            return []
        found = [self.find(Corral, name) for name in resource.spec.corrals]
        return [target for target in found if target is not None]


@breaks(FLAWS, guarantees.a_target_waits_for_its_last_referrer)
class FreesATargetWithItsFirstReferrer(Referring):
    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        stored = self.find(kind, name)
        left = await self.sound.delete(kind, name, **options)
        for target in self.targets(stored) if stored is not None else ():
            if target.is_deleting:
                await self.force_out(target)
        return left


@breaks(FLAWS, guarantees.a_target_that_must_be_unused_is_not_marked)
class DeletesWhatIsUsedAllTheSame(Referring):
    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        return await self.sound.delete(kind, name, **options | {"unused": False})


@breaks(FLAWS, guarantees.a_dying_referrer_holds_its_target)
class CountsOnlyLivingReferrers(Referring):
    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        referrers = [self.find(by.kind.type, by.name) for by in await self.sound.referrers(kind, name)]
        left = await self.sound.delete(kind, name, **options)
        if left is not None and referrers and all(by is not None and by.is_deleting for by in referrers):
            await self.force_out(left)
            return None
        return left


@breaks(FLAWS, guarantees.releasing_a_target_frees_it)
class DoesNotSeeReleases(Referring):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        stored = self.stored(resource)
        before = self.targets(stored) if stored is not None else []
        if any(target.is_deleting for target in before) and not self.targets(resource):
            return await self.force_update(resource)
        return await self.sound.update(resource, **options)


class TakesReferrers(Flawed):
    """Takes a referrer that it should reject."""

    is_deleting: bool

    def takes(self, rejection: ReferenceRejected) -> bool:
        target = self.find(Corral, rejection.target)
        return (target is not None and target.is_deleting) == self.is_deleting


class TakesNewReferrers(TakesReferrers):
    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        try:
            return await self.sound.create(resource, **options)
        except ReferenceRejected as rejection:
            if not self.takes(rejection):
                raise
            return await self.force_create(resource)


class TakesChangedReferrers(TakesReferrers):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        try:
            return await self.sound.update(resource, **options)
        except ReferenceRejected as rejection:
            if not self.takes(rejection):
                raise
            return await self.force_update(resource)


@breaks(FLAWS, guarantees.a_referrer_to_an_absent_target_is_refused)
class TakesReferrersToTheAbsent(TakesNewReferrers):
    is_deleting = False


@breaks(FLAWS, guarantees.a_referrer_to_a_marked_target_is_refused)
class TakesReferrersToTheMarked(TakesNewReferrers):
    is_deleting = True


@breaks(FLAWS, guarantees.an_update_to_an_absent_target_is_refused)
class TakesUpdatesToTheAbsent(TakesChangedReferrers):
    is_deleting = False


@breaks(FLAWS, guarantees.an_update_to_a_marked_target_is_refused)
class TakesUpdatesToTheMarked(TakesChangedReferrers):
    is_deleting = True


@breaks(FLAWS, guarantees.an_old_referrer_can_still_be_written)
class ChecksOldReferencesAgain(Referring):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        for target in self.targets(resource):
            if target.is_deleting and not resource.is_deleting:
                raise ReferenceRejected("Horse", resource.name, target_kind="Corral", target=target.name)
        return await self.sound.update(resource, **options)


@breaks(FLAWS, guarantees.referrers_are_listed)
class KnowsNoReferrers(Flawed):
    async def referrers(self, kind: type[ResourceT], name: str, *, limit: int = 10) -> Sequence[Referrer]:
        del kind, name, limit
        return []


@breaks(FLAWS, guarantees.a_new_referrer_does_not_write_its_target)
class CountsReferrersOnTheTarget(Referring):
    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        created = await self.sound.create(resource, **options)
        for target in self.targets(created):
            await self.force(with_metadata(target, annotations={"in-use": "yes"}))
        return created


@breaks(FLAWS, guarantees.a_caller_cannot_take_off_the_hold_on_a_target)
class LetsCallersTakeOffTheHold(Flawed):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        updated = await self.sound.update(resource, **options)
        if isinstance(updated, Corral) and IN_USE not in resource.metadata.finalizers:
            return await self.force(with_metadata(updated, finalizers=()))
        return updated


class StallsCascades(Flawed):
    """Waits for ever for what its own cascade would remove."""

    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        stored = self.find(kind, name)
        if isinstance(stored, Pasture) and self.is_stalled(stored):
            return await self.force_mark(stored, FOREGROUND)
        return await self.sound.delete(kind, name, **options)

    def is_stalled(self, owner: Pasture) -> bool:
        raise NotImplementedError


@breaks(FLAWS, guarantees.an_owner_may_refer_to_its_child)
class StallsOnTheOwnersReference(StallsCascades):
    def is_stalled(self, owner: Pasture) -> bool:
        return owner.spec.favourite is not None


@breaks(FLAWS, guarantees.a_child_may_refer_to_its_sibling)
class StallsOnTheSiblingsReference(StallsCascades):
    def is_stalled(self, owner: Pasture) -> bool:
        return any(isinstance(child, Horse) and child.spec.corrals for child in self.children(owner))


@breaks(FLAWS, guarantees.an_outsider_holds_what_a_cascade_would_remove)
class CascadesOverOutsiders(Flawed):
    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        stored = self.find(kind, name)
        left = await self.sound.delete(kind, name, **options)
        for child in self.children(stored) if stored is not None else ():
            if child.metadata.finalizers == (IN_USE,):
                await self.force_out(child)
        return left
