"""What a step tells in the timeline goes with the write of its pass, and is never lost."""

import pytest
from msgspec.structs import replace

from remuda.kernel.errors import Conflict
from remuda.reconcile.lifecycle import Lifecycle, Outcome
from remuda.reconcile.results import Done, ReconcileContext, Requeue, Result
from remuda.store.sqlite.store import SqliteStore
from tests.kit.environment import provided_by
from tests.kit.sample_farm.controller import FINALIZER, Animal, Farm, animal
from tests.kit.sample_farm.lifecycle import ScriptedSteps, in_simulation, timeline

sample = provided_by(in_simulation)
steps = provided_by(in_simulation, position=1)


class Teller:
    """A step that tells what it did, and may be disturbed."""

    def __init__(self, farm: Farm, steps: ScriptedSteps, *, has_log: bool = True) -> None:
        self.farm = farm
        self.is_disturbed = False
        self.result: Result = Requeue(5)
        assert isinstance(farm.store, SqliteStore)
        steps.life = Lifecycle(
            Animal,
            provision=self.step,
            deprovision=self.step,
            finalizer=FINALIZER,
            ports=farm.ports(log=farm.store if has_log else None),
        )

    async def step(self, resource: Animal, run: ReconcileContext) -> Outcome[Animal]:
        if self.is_disturbed:
            now = await self.farm.store.get(Animal, resource.name)
            labels = {"disturbed-by": run.id}
            await self.farm.store.update(replace(now, metadata=replace(now.metadata, labels=labels)))
        return Outcome(self.result, resource, [run.event(resource, "Fed", feed="oats")])


async def events(farm: Farm) -> list[str]:
    return [entry["event"] for entry in await timeline(farm)]


async def test_it_goes_with_the_status(sample: Farm, steps: ScriptedSteps) -> None:
    Teller(sample, steps)
    created = await sample.store.create(animal("bella", finalizers=(FINALIZER,)))
    await steps.look()
    assert await events(sample) == ["Fed", "ConditionChanged"]
    assert int((await steps.get()).version) == int(created.version) + 1


async def test_it_is_told_though_the_status_has_not_changed(sample: Farm, steps: ScriptedSteps) -> None:
    Teller(sample, steps)
    await sample.store.create(animal("bella", finalizers=(FINALIZER,)))
    await steps.look()
    before = await steps.get()
    await steps.look()
    assert await events(sample) == ["Fed", "ConditionChanged", "Fed"]
    assert (await steps.get()).version == before.version


async def test_it_is_told_once_though_somebody_else_wrote_first(sample: Farm, steps: ScriptedSteps) -> None:
    teller = Teller(sample, steps)
    await sample.store.create(animal("bella", finalizers=(FINALIZER,)))
    teller.is_disturbed = True
    with pytest.raises(Conflict):
        await steps.look()
    assert await events(sample) == ["Fed"]


async def test_the_last_step_tells_with_releasing(sample: Farm, steps: ScriptedSteps) -> None:
    teller = Teller(sample, steps)
    bella = await sample.store.create(animal("bella", finalizers=(FINALIZER,)))
    await sample.store.delete(Animal, "bella", uid=bella.uid)
    teller.result, teller.is_disturbed = Done(), True
    with pytest.raises(Conflict):
        await steps.look()
    assert await events(sample) == ["Fed"]
    teller.is_disturbed = False
    await steps.look()
    assert await events(sample) == ["Fed", "FinalizerRemoved"], "the same is told once"
    assert await sample.animals() == {}


async def test_a_step_that_tells_something_needs_ports_with_a_log(sample: Farm, steps: ScriptedSteps) -> None:
    Teller(sample, steps, has_log=False)
    await sample.store.create(animal("bella", finalizers=(FINALIZER,)))
    with pytest.raises(TypeError, match="log"):
        await steps.look()
