"""What a step tells in the timeline goes with the write of its pass, and is never lost."""

import pytest
from msgspec.structs import replace

from remuda.kernel.errors import Conflict
from remuda.reconcile.lifecycle import Lifecycle, Outcome
from remuda.reconcile.results import Done, ReconcileContext, Requeue, Result
from remuda.store.sqlite.store import SqliteStore
from tests.kit.environment import provided_by
from tests.kit.sample_farm.controller import FINALIZER, Animal, Farm, animal
from tests.kit.sample_farm.lifecycle import Hands, in_simulation, timeline

sample = provided_by(in_simulation)
hands = provided_by(in_simulation, position=1)


class Teller:
    """A step that tells what it did, and may be disturbed."""

    def __init__(self, here: Farm, hands: Hands, *, has_log: bool = True) -> None:
        self.here = here
        self.is_disturbed = False
        self.result: Result = Requeue(5)
        assert isinstance(here.store, SqliteStore)
        hands.life = Lifecycle(
            Animal,
            provision=self.step,
            deprovision=self.step,
            finalizer=FINALIZER,
            ports=here.ports(log=here.store if has_log else None),
        )

    async def step(self, resource: Animal, run: ReconcileContext) -> Outcome[Animal]:
        if self.is_disturbed:
            now = await self.here.store.get(Animal, resource.name)
            labels = {"disturbed-by": run.id}
            await self.here.store.update(replace(now, metadata=replace(now.metadata, labels=labels)))
        return Outcome(self.result, resource, [run.event(resource, "Fed", feed="oats")])


async def events(here: Farm) -> list[str]:
    return [entry["event"] for entry in await timeline(here)]


async def test_it_goes_with_the_status(sample: Farm, hands: Hands) -> None:
    Teller(sample, hands)
    created = await sample.store.create(animal("bella", finalizers=(FINALIZER,)))
    await hands.look()
    assert await events(sample) == ["Fed", "ConditionChanged"]
    assert int((await hands.get()).version) == int(created.version) + 1


async def test_it_is_told_though_the_status_has_not_changed(sample: Farm, hands: Hands) -> None:
    Teller(sample, hands)
    await sample.store.create(animal("bella", finalizers=(FINALIZER,)))
    await hands.look()
    before = await hands.get()
    await hands.look()
    assert await events(sample) == ["Fed", "ConditionChanged", "Fed"]
    assert (await hands.get()).version == before.version


async def test_it_is_told_once_though_somebody_else_wrote_first(sample: Farm, hands: Hands) -> None:
    teller = Teller(sample, hands)
    await sample.store.create(animal("bella", finalizers=(FINALIZER,)))
    teller.is_disturbed = True
    with pytest.raises(Conflict):
        await hands.look()
    assert await events(sample) == ["Fed"]


async def test_the_last_step_tells_with_letting_go(sample: Farm, hands: Hands) -> None:
    teller = Teller(sample, hands)
    bella = await sample.store.create(animal("bella", finalizers=(FINALIZER,)))
    await sample.store.delete(Animal, "bella", uid=bella.uid)
    teller.result, teller.is_disturbed = Done(), True
    with pytest.raises(Conflict):
        await hands.look()
    assert await events(sample) == ["Fed"]
    teller.is_disturbed = False
    await hands.look()
    assert await events(sample) == ["Fed", "LetGo"], "the same is told once"
    assert await sample.animals() == {}


async def test_a_step_that_tells_something_needs_ports_with_a_log(sample: Farm, hands: Hands) -> None:
    Teller(sample, hands, has_log=False)
    await sample.store.create(animal("bella", finalizers=(FINALIZER,)))
    with pytest.raises(TypeError, match="log"):
        await hands.look()
