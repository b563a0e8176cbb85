"""Stores that break what a write leaves in the stored document."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from remuda.store.objects import ResourceT
from tests.kit.proofs.store_contract.backends import rewrite, stored_document
from tests.kit.proofs.store_contract.broken.flawed import Flaw, Flawed, breaks
from tests.kit.proofs.store_contract.guarantees import merges as guarantees
from tests.kit.proofs.store_contract.harness import UNKNOWN_FIELD
from tests.kit.proofs.store_contract.steps import with_metadata, with_spec
from tests.kit.sample_kinds import Horse, HorseSpec, HorseStatus

FLAWS: list[Flaw] = []


def losing(path: Sequence[str]) -> Mapping[str, Any]:
    """The patch that takes what we do not know out of one place."""
    patch: dict[str, Any] = {UNKNOWN_FIELD: None}
    for name in reversed(path):
        patch = {name: patch}
    return patch


def tamed(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items of a list, each without what we do not know."""
    return [{name: value for name, value in item.items() if name != UNKNOWN_FIELD} for item in items]


class LosesOnUpdate(Flawed):
    """Loses something that we do not know when a spec is written."""

    lost: Sequence[str]

    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        updated = await self.sound.update(resource, **options)
        if isinstance(updated, Horse) and self.is_affected(updated):
            await self.lose(updated)
        return updated

    def is_affected(self, updated: Horse) -> bool:
        return updated.spec != HorseSpec() and self.stored(updated) is not None

    async def lose(self, updated: Horse) -> None:
        await self.scrub(updated, losing(self.lost))


@breaks(FLAWS, guarantees.unknown_fields_survive_an_update)
class LosesFieldsOfTheSpec(LosesOnUpdate):
    lost = ("spec",)


@breaks(FLAWS, guarantees.unknown_fields_of_the_status_survive_an_update)
class LosesFieldsOfTheStatus(LosesOnUpdate):
    lost = ("status",)


@breaks(FLAWS, guarantees.unknown_fields_survive_a_default)
class LosesFieldsOfADefault(LosesOnUpdate):
    lost = ("spec",)

    def is_affected(self, updated: Horse) -> bool:
        return updated.spec == HorseSpec() and self.stored(updated) is not None


@breaks(FLAWS, guarantees.unknown_fields_survive_inside_a_struct)
class LosesFieldsOfStructs(LosesOnUpdate):
    lost = ("spec", "saddle")

    def is_affected(self, updated: Horse) -> bool:
        return updated.spec.saddle is not None


@breaks(FLAWS, guarantees.unknown_fields_survive_inside_a_map)
class LosesFieldsOfMapValues(LosesOnUpdate):
    lost = ("spec", "spareSaddles", "old")

    def is_affected(self, updated: Horse) -> bool:
        return "old" in updated.spec.spare_saddles


@breaks(FLAWS, guarantees.unknown_fields_survive_inside_a_keyed_list)
class LosesFieldsOfItems(LosesOnUpdate):
    async def lose(self, updated: Horse) -> None:
        spec = stored_document(self.sound, Horse, updated.name)["spec"]
        if "shoes" in spec:
            await self.scrub(updated, {"spec": {"shoes": tamed(spec["shoes"])}})


class LosesOnStatus(Flawed):
    """Loses something that we do not know when a status is written."""

    lost: Sequence[str]

    async def update_status(self, resource: ResourceT, **options: Any) -> ResourceT:
        placed = await self.sound.update_status(resource, **options)
        if isinstance(placed, Horse) and placed.status != HorseStatus():
            await self.lose(placed)
        return placed

    async def lose(self, placed: Horse) -> None:
        await self.scrub(placed, losing(self.lost))


@breaks(FLAWS, guarantees.unknown_fields_of_the_spec_survive_a_status)
class StatusLosesFieldsOfTheSpec(LosesOnStatus):
    lost = ("spec",)


@breaks(FLAWS, guarantees.unknown_fields_of_the_status_survive_a_status)
class StatusLosesFieldsOfTheStatus(LosesOnStatus):
    lost = ("status",)


@breaks(FLAWS, guarantees.unknown_fields_survive_inside_a_condition)
class StatusLosesFieldsOfConditions(LosesOnStatus):
    async def lose(self, placed: Horse) -> None:
        status = stored_document(self.sound, Horse, placed.name)["status"]
        if "conditions" in status:
            await self.scrub(placed, {"status": {"conditions": tamed(status["conditions"])}})


@breaks(FLAWS, guarantees.unknown_fields_survive_the_mark)
class TheMarkLosesFields(Flawed):
    async def delete(self, kind: type[ResourceT], name: str, **options: Any) -> ResourceT | None:
        marked = await self.sound.delete(kind, name, **options)
        if isinstance(marked, Horse):
            await self.scrub(marked, losing(["spec"]))
        return marked


class RewritesHorses(Flawed):
    """Writes something else than what is wanted."""

    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        stored = self.stored(resource)
        if isinstance(resource, Horse) and isinstance(stored, Horse):
            resource = self.instead(stored, resource)
        return await self.sound.update(resource, **options)

    def instead(self, stored: Horse, wanted: Horse) -> Any:
        raise NotImplementedError


@breaks(FLAWS, guarantees.a_cleared_field_is_gone)
class CannotClearAField(RewritesHorses):
    def instead(self, stored: Horse, wanted: Horse) -> Any:
        return with_spec(wanted, saddle=wanted.spec.saddle or stored.spec.saddle)


@breaks(FLAWS, guarantees.maps_are_merged_by_key)
class CannotRemoveAKey(RewritesHorses):
    def instead(self, stored: Horse, wanted: Horse) -> Any:
        return with_spec(wanted, feed={**stored.spec.feed, **wanted.spec.feed})


@breaks(FLAWS, guarantees.labels_are_merged_by_key)
class CannotRemoveOneOfManyLabels(RewritesHorses):
    def instead(self, stored: Horse, wanted: Horse) -> Any:
        old, new = stored.metadata.labels, wanted.metadata.labels
        return with_metadata(wanted, labels=old) if new and new.items() < old.items() else wanted


@breaks(FLAWS, guarantees.plain_lists_are_replaced)
class AppendsToLists(RewritesHorses):
    def instead(self, stored: Horse, wanted: Horse) -> Any:
        return with_spec(wanted, nicknames=tuple(dict.fromkeys(stored.spec.nicknames + wanted.spec.nicknames)))


@breaks(FLAWS, guarantees.keyed_lists_have_the_wanted_items)
class CannotRemoveAnItem(RewritesHorses):
    def instead(self, stored: Horse, wanted: Horse) -> Any:
        hooves = {shoe.hoof for shoe in wanted.spec.shoes}
        left = tuple(shoe for shoe in stored.spec.shoes if shoe.hoof not in hooves)
        return with_spec(wanted, shoes=wanted.spec.shoes + left)


@breaks(FLAWS, guarantees.secrets_are_sealed)
class StoresSecretsInTheClear(Flawed):
    async def create(self, resource: ResourceT, **options: Any) -> ResourceT:
        created = await self.sound.create(resource, **options)
        if isinstance(created, Horse) and created.spec.brand is not None:
            clear = {"spec": {"brand": created.spec.brand.reveal()}}
            await rewrite(self.sound, Horse, created.name, clear, read_again=False)
        return replace(created)

    async def update(self, resource: ResourceT, **options: Any) -> ResourceT:
        """Look at no seal before a write: there is none."""
        is_branded = isinstance(resource, Horse) and resource.spec.brand is not None
        return (
            resource if is_branded and self.stored(resource) == resource else await super().update(resource, **options)
        )
