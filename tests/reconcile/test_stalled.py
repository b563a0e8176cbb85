"""By when something is late: the clock begins with what is wanted, and runs whatever the provider says or does not."""

import pytest
from structlog.testing import capture_logs

from remuda.kernel.conditions import find_condition
from remuda.kernel.errors import Conflict, ServerUnreachable, Unavailable
from remuda.reconcile.results import Blocked, Done, Requeue
from tests.kit.environment import provided_by
from tests.kit.sample_farm.controller import Animal, Farm, animal, recoloured
from tests.kit.sample_farm.lifecycle import ScriptedSteps, condition, in_simulation, said, timeline

SILENCE = ServerUnreachable("barn", "silence")


sample = provided_by(in_simulation)
steps = provided_by(in_simulation, position=1)


async def recolour(farm: Farm, steps: ScriptedSteps, colour: str) -> None:
    await farm.store.update(recoloured(await steps.get(), colour))


def is_stalled(resource: Animal) -> bool:
    stalled = find_condition(resource.status.conditions, "Stalled")
    return stalled is not None and stalled.status == "True"


async def test_an_update_that_never_succeeds_is_stalled_by_its_deadline(sample: Farm, steps: ScriptedSteps) -> None:
    await sample.store.create(animal("bella"))
    await steps.look(says=Done())
    await sample.rest(5000)
    await recolour(sample, steps, "grey")
    with pytest.raises(Unavailable):
        await steps.look(says=SILENCE)
    bella = await steps.get()
    assert said(bella) == ("False", "Provisioning", "the last attempt failed and is retried")
    assert (condition(bella).observed_generation, bella.status.observed_generation) == (2, 2)
    assert not is_stalled(bella)
    assert steps.run is not None
    assert steps.run.requeue_s == pytest.approx(600, abs=1.1)
    for _ in range(2):
        with pytest.raises(Unavailable):
            await steps.look()
    assert (await steps.get()).version == bella.version, "it is said once"
    await sample.rest(601)
    with pytest.raises(Unavailable):
        await steps.look()
    assert is_stalled(await steps.get())
    await steps.look(says=Done())
    assert said(await steps.get()) == ("True", "Provisioned", "provisioned")
    assert not is_stalled(await steps.get())


async def test_an_update_that_succeeds_at_once_was_available_all_the_time(sample: Farm, steps: ScriptedSteps) -> None:
    await sample.store.create(animal("bella"))
    await steps.look(says=Done())
    before = condition(await steps.get()).last_transition_time
    entries = len(await timeline(sample))
    await sample.rest(30)
    await recolour(sample, steps, "grey")
    with pytest.raises(Conflict):
        await steps.look(says=Conflict("Animal", "bella"))  # somebody else wrote first, which is no trouble
    await steps.look(says=Done())
    bella = await steps.get()
    assert condition(bella).last_transition_time == before
    assert condition(bella).observed_generation == 2
    assert len(await timeline(sample)) == entries


async def test_a_deletion_that_cannot_even_begin_says_what_it_waits_for(sample: Farm, steps: ScriptedSteps) -> None:
    await sample.store.create(animal("bella"))
    await steps.look(says=Done())
    bella = await steps.get()
    await sample.store.delete(Animal, "bella", uid=bella.uid)
    await sample.rest(601)
    with pytest.raises(Conflict):
        await steps.look(says=Conflict("Animal", "bella"))
    assert said(await steps.get(), "Stalled")[:2] == ("True", "Deprovisioning")
    assert "provisioned" not in said(await steps.get(), "Stalled")[2]
    with pytest.raises(Unavailable):
        await steps.look(says=SILENCE)
    assert said(await steps.get())[:2] == ("False", "Deprovisioning")


async def test_a_new_wish_has_its_own_clock(sample: Farm, steps: ScriptedSteps) -> None:
    await sample.store.create(animal("bella"))
    await steps.look(says=Blocked("NoHay", "there is no hay"))
    await sample.rest(610)
    await recolour(sample, steps, "grey")
    with pytest.raises(Conflict):
        await steps.look(says=Conflict("Animal", "bella"))
    assert not is_stalled(await steps.get())
    await steps.look(says=Requeue(5))
    await sample.rest(590)
    await steps.look(says=Requeue(5))
    assert not is_stalled(await steps.get())
    await sample.rest(11)
    await steps.look(says=Requeue(5))
    assert is_stalled(await steps.get())
    await recolour(sample, steps, "white")
    await steps.look(says=Requeue(5))
    assert not is_stalled(await steps.get())


async def test_times_of_conditions_are_whole_seconds(sample: Farm, steps: ScriptedSteps) -> None:
    await sample.rest(0.25)
    await sample.store.create(animal("bella"))
    assert sample.world.clock.now().microsecond
    await steps.look(says=Requeue(5))
    await sample.rest(700.5)
    with capture_logs():
        await steps.look(says=Requeue(5))
    bella = await steps.get()
    assert is_stalled(bella)
    assert [each.last_transition_time.microsecond for each in bella.status.conditions] == [0, 0]
