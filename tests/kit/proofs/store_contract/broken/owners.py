"""Stores that break what owners promise."""

from collections.abc import Iterable
from typing import Any

from remuda.kernel.errors import OwnerRejected
from remuda.store.objects import FOREGROUND, Resource, ResourceT
from tests.kit.proofs.store_contract.broken.flawed import Flaw, Flawed, breaks
from tests.kit.proofs.store_contract.guarantees import owners as guarantees
from tests.kit.proofs.store_contract.steps import with_metadata

FLAWS: list[Flaw] = []


class ForgetsChildren(Flawed):
    """Disowns some objects before it deletes their owner."""

    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        owner = self.find(kind, name)
        for child in self.forgotten(owner) if owner is not None else ():
            await self.force(with_metadata(child, owner_references=()))
        return await self.sound.delete(kind, name, **options)

    def forgotten(self, owner: Resource) -> Iterable[Resource]:
        raise NotImplementedError


@breaks(FLAWS, guarantees.children_go_with_their_owner)
class ForgetsAllButTheFirstChild(ForgetsChildren):
    def forgotten(self, owner: Resource) -> Iterable[Resource]:
        children = self.children(owner)
        return [child for child in children[1:] if type(child) is type(children[0])]


@breaks(FLAWS, guarantees.grandchildren_go_with_their_owner)
class ForgetsGrandchildren(ForgetsChildren):
    def forgotten(self, owner: Resource) -> Iterable[Resource]:
        return [grandchild for child in self.children(owner) for grandchild in self.children(child)]


@breaks(FLAWS, guarantees.a_shared_child_goes_with_its_last_owner)
class TakesSharedChildrenAlong(Flawed):
    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        owner = self.find(kind, name)
        for child in self.children(owner) if owner is not None else ():
            first, *others = child.metadata.owner_references
            if others:
                await self.force(with_metadata(child, owner_references=(first,)))
        return await self.sound.delete(kind, name, **options)


@breaks(FLAWS, guarantees.the_owner_goes_last)
class LetsTheOwnerGoFirst(Flawed):
    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        left = await self.sound.delete(kind, name, **options)
        if left is None or left.metadata.finalizers != (FOREGROUND,):
            return left
        await self.force_out(left)
        return None


class TakesOrphans(Flawed):
    """Takes a child whose owner it should reject."""

    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        try:
            return await self.sound.create(resource, **options)
        except OwnerRejected:
            (reference,) = resource.metadata.owner_references
            owning = self.registry.owning(reference)
            owner = self.find(owning.type, reference.name) if owning else None
            if not self.takes(owner):
                raise
            return await self.force_create(resource)

    def takes(self, owner: Resource | None) -> bool:
        raise NotImplementedError


@breaks(FLAWS, guarantees.no_child_of_a_dying_owner_lasts)
class TakesChildrenOfTheDying(TakesOrphans):
    def takes(self, owner: Resource | None) -> bool:
        return owner is not None and owner.is_deleting


@breaks(FLAWS, guarantees.no_child_of_an_absent_owner_lasts)
class TakesChildrenOfTheAbsent(TakesOrphans):
    def takes(self, owner: Resource | None) -> bool:
        return owner is None


@breaks(FLAWS, guarantees.no_child_of_another_incarnation_lasts)
class KnowsOwnersByName(TakesOrphans):
    def takes(self, owner: Resource | None) -> bool:
        return owner is not None and not owner.is_deleting


@breaks(FLAWS, guarantees.a_disowned_child_stays)
class NeverDisowns(Flawed):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        stored = self.stored(resource)
        if stored is not None and not resource.metadata.owner_references:
            resource = with_metadata(resource, owner_references=stored.metadata.owner_references)
        return await self.sound.update(resource, **options)
