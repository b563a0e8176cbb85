"""Effects are told once, whatever becomes of the write that should have told of them."""

import dataclasses
from collections.abc import Awaitable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from remuda.kernel.errors import Conflict, Unavailable
from remuda.reconcile.lifecycle import Lifecycle, Outcome
from remuda.reconcile.results import Done, ReconcileContext, Requeue
from remuda.store.sqlite.store import SqliteStore
from tests.kit.environment import options
from tests.kit.sample_farm.controller import ANIMAL, FINALIZER, Animal, Farm, animal, farm
from tests.kit.simulation.runner import World


@dataclasses.dataclass
class Groom:
    """Brushes an animal again and again, and shows its colour."""

    farm: Farm
    colour: str = "grey"

    def __post_init__(self) -> None:
        assert isinstance(self.farm.store, SqliteStore)
        ports = dataclasses.replace(self.farm.ports(), log=self.farm.store)
        self.life = Lifecycle(Animal, provision=self.brush, deprovision=self.leave, finalizer=FINALIZER, ports=ports)

    async def brush(self, found: Animal, run: ReconcileContext) -> Outcome[Animal]:
        seen = replace(found, status=replace(found.status, colour=self.colour))
        news = [] if found.status.colour == self.colour else [run.event(found, "Coloured", colour=self.colour)]
        return Outcome(Requeue(5), seen, [run.event(found, "Brushed", colour=self.colour)], status_events=news)

    async def leave(self, found: Animal, run: ReconcileContext) -> Outcome[Animal]:
        return Outcome(Done(), found, [run.event(found, "Led away")])

    async def look(self) -> None:
        ports = self.farm.ports()
        run = ReconcileContext(
            controller="t", key="b", cause="event", registry=ports.store.registry, randomness=ports.randomness
        )
        await self.life("bella", run)

    async def told(self) -> list[str]:
        assert isinstance(self.farm.store, SqliteStore)
        page = await self.farm.store.read("timeline", f"{ANIMAL.qualified}/bella")
        found = [msgspec.json.decode(entry.data)["event"] for entry in page.entries]
        return [event for event in found if event not in {"FinalizerAdded", "ConditionChanged", "FinalizerRemoved"}]


async def failing_once(groom: Groom, write: str, error: Exception, *, is_made: bool) -> None:
    """Look with the next write of this sort failing."""
    store, left = type(groom.farm.store), [error]
    plain: Any = getattr(store, write)

    async def failing(self: Any, *args: Any, **more: Any) -> Any:
        written: Awaitable[Any] = plain(self, *args, **more)
        if not left or is_made:
            made = await written
        if left:
            if not is_made:
                written.close()  # type: ignore[attr-defined]  # a coroutine that nobody waits for
            raise left.pop()
        return made

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store, write, failing)
        with pytest.raises(type(error)):
            await groom.look()


@pytest.mark.parametrize("is_made", [False, True])
@options(seeds=2)
async def test_what_was_told_after_a_failed_write_is_not_told_with_the_next(world: World, *, is_made: bool) -> None:
    async with farm(world) as environment:
        groom = Groom(environment)
        await environment.store.create(animal("bella", finalizers=(FINALIZER,)))
        error = Unavailable("The answer was lost.") if is_made else Conflict("Animal", "bella")
        await failing_once(groom, "update_status", error, is_made=is_made)
        assert await groom.told() == (["Brushed", "Coloured"] if is_made else ["Brushed"])
        await groom.look()
        assert sorted(await groom.told()) == ["Brushed", "Coloured"]


@options(seeds=2)
async def test_after_a_write_the_same_effect_is_another_one(world: World) -> None:
    async with farm(world) as environment:
        groom = Groom(environment)
        await environment.store.create(animal("bella", finalizers=(FINALIZER,)))
        await failing_once(groom, "update_status", Conflict("Animal", "bella"), is_made=False)
        await groom.look()
        await groom.look()
        assert await groom.told() == ["Brushed", "Coloured", "Brushed"]


@options(seeds=2)
async def test_another_effect_is_told_also_after_a_failed_write(world: World) -> None:
    async with farm(world) as environment:
        groom = Groom(environment)
        await environment.store.create(animal("bella", finalizers=(FINALIZER,)))
        await failing_once(groom, "update_status", Conflict("Animal", "bella"), is_made=False)
        groom.colour = "white"
        await groom.look()
        assert await groom.told() == ["Brushed", "Brushed", "Coloured"]


@options(seeds=2)
async def test_the_last_effect_of_a_life_is_told_once(world: World) -> None:
    async with farm(world) as environment:
        groom = Groom(environment)
        bella = await environment.store.create(animal("bella", finalizers=(FINALIZER,)))
        await environment.store.delete(Animal, "bella", uid=bella.uid)
        await failing_once(groom, "update", Conflict("Animal", "bella"), is_made=False)
        await groom.look()
        assert await groom.told() == ["Led away"]
