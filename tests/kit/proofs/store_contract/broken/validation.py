"""Stores that take what some backend would reject, or reject what every backend takes."""

from typing import Any

from msgspec.structs import replace

from remuda.kernel.errors import Invalid
from remuda.store.contract import Page
from remuda.store.lifecycle import with_desired
from remuda.store.objects import ResourceT
from tests.kit.proofs.store_contract.broken.flawed import Flaw, Flawed, breaks
from tests.kit.proofs.store_contract.guarantees import validation as guarantees
from tests.kit.proofs.store_contract.steps import with_spec
from tests.kit.sample_kinds import Horse

FLAWS: list[Flaw] = []


class Unchecked(Flawed):
    """Does not check one field of a new object."""

    field: str

    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        try:
            return await self.sound.create(resource, **options)
        except Invalid as rejection:
            if not rejection.field.startswith(self.field):
                raise
            return await self.force_create(resource)


@breaks(FLAWS, guarantees.bad_names_are_refused)
class ChecksNoNames(Unchecked):
    field = "metadata.name"


@breaks(FLAWS, guarantees.bad_labels_are_refused)
class ChecksNoLabels(Unchecked):
    field = "metadata.labels"


@breaks(FLAWS, guarantees.bad_annotations_are_refused)
class ChecksNoAnnotations(Unchecked):
    field = "metadata.annotations"


@breaks(FLAWS, guarantees.bad_finalizers_are_refused)
class ChecksNoFinalizers(Unchecked):
    field = "metadata.finalizers"


@breaks(FLAWS, guarantees.bad_references_are_refused)
class ChecksNoReferences(Unchecked):
    field = "the reference to"


@breaks(FLAWS, guarantees.bad_owners_are_refused)
class ChecksNoOwners(Unchecked):
    field = "metadata.ownerReferences"


@breaks(FLAWS, guarantees.too_large_objects_are_refused)
class CutsWhatIsTooLarge(Flawed):
    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        try:
            return await self.sound.create(resource, **options)
        except Invalid as rejection:
            if rejection.field != "the object":
                raise
            return await self.sound.create(with_spec(resource, colour="too long"))


@breaks(FLAWS, guarantees.two_items_of_one_key_are_refused)
class TakesTheLastItemOfAKey(Flawed):
    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        return await self.sound.create(with_shoes_once(resource), **options)


@breaks(FLAWS, guarantees.two_items_of_one_key_are_refused)
class UpdatesTheLastItemOfAKey(Flawed):
    """Of the version that is stored."""

    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        stored = self.stored(resource)
        is_current = stored is not None and stored.version == resource.version
        return await self.sound.update(with_shoes_once(resource) if is_current else resource, **options)


@breaks(FLAWS, guarantees.two_items_of_one_key_are_refused)
class TakesTheLastConditionOfAType(Flawed):
    async def update_status(self, resource: ResourceT, **options: Any) -> ResourceT:
        if isinstance(resource, Horse):
            once = {condition.type: condition for condition in resource.status.conditions}
            status = replace(resource.status, conditions=tuple(once.values()))
            resource = replace(resource, status=status)
        return await self.sound.update_status(resource, **options)


def with_shoes_once(resource: ResourceT) -> ResourceT:
    if not isinstance(resource, Horse):
        return resource
    once = {shoe.hoof: shoe for shoe in resource.spec.shoes}
    return with_spec(resource, shoes=tuple(once.values()))


@breaks(FLAWS, guarantees.bad_updates_are_refused)
class ChecksNoUpdates(Flawed):
    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        try:
            return await self.sound.update(resource, **options)
        except Invalid as rejection:
            stored = self.stored(resource)
            if stored is None or stored.is_deleting or not rejection.field.startswith("metadata"):
                raise
            return await self.force(with_desired(self.registry.of(type(resource)), stored, resource))


@breaks(FLAWS, guarantees.bad_selectors_are_refused)
class SelectsNothingByNonsense(Flawed):
    async def list(self, kind: type[ResourceT], **selection: Any) -> Page[ResourceT]:
        try:
            return await self.sound.list(kind, **selection)
        except Invalid as rejection:
            if not rejection.field.startswith("the label selector"):
                raise
            return Page([], (await self.sound.list(kind, limit=1)).version, None)


@breaks(FLAWS, guarantees.the_longest_of_everything_is_accepted)
class RejectsTheLongestName(Flawed):
    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        if len(resource.name) == 253:
            raise Invalid("metadata.name", "is too long", remedy="use a shorter one")
        return await self.sound.create(resource, **options)
