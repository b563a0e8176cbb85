"""By when something is late: the clock begins with what is wanted, and runs whatever the provider says or does not."""

import pytest
from structlog.testing import capture_logs

from remuda.kernel.conditions import find_condition
from remuda.kernel.errors import Conflict, ServerUnreachable, Unavailable
from remuda.reconcile.results import Blocked, Done, Requeue
from tests.kit.environment import provided_by
from tests.kit.sample_farm.controller import Animal, Farm, animal, recoloured
from tests.kit.sample_farm.lifecycle import ScriptedSteps, condition, in_simulation, said, timeline

SILENCE = ServerUnreachable("barn.internal", "silence")
ILL = ServerUnreachable("barn.internal", "silence")
ILL.provider_problem = "the barn does not answer"


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
    assert said(bella)[:2] == ("False", "Provisioning")
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


@pytest.mark.parametrize(
    ("error", "reason"), [(SILENCE, "Provisioning"), (ILL, "ProviderUnavailable")], ids=["service", "provider"]
)
async def test_what_cannot_be_created_says_why_once_from_the_second_failure_on(
    sample: Farm, steps: ScriptedSteps, error: Unavailable, reason: str
) -> None:
    await sample.store.create(animal("bella"))
    with pytest.raises(Unavailable):
        await steps.look(says=error)
    assert (await steps.get()).status.conditions == (), "the first retry follows in a second"
    for failures in (1, 2, 3):
        with pytest.raises(Unavailable):
            await steps.look(failures=failures)
    bella = await steps.get()
    assert said(bella)[:2] == ("False", reason)
    assert "internal" not in said(bella)[2]
    assert [each["event"] for each in await timeline(sample)].count("ConditionChanged") == 1
    await steps.look(says=Done())
    assert said(await steps.get()) == ("True", "Provisioned", "provisioned")


async def test_a_conflict_is_no_cause_of_a_delay(sample: Farm, steps: ScriptedSteps) -> None:
    await sample.store.create(animal("bella"))
    with pytest.raises(Conflict):
        await steps.look(says=Conflict("Animal", "bella"), failures=5)
    assert (await steps.get()).status.conditions == ()


async def test_what_is_available_stays_so_however_often_a_look_fails(sample: Farm, steps: ScriptedSteps) -> None:
    await sample.store.create(animal("bella"))
    await steps.look(says=Done())
    before = await steps.get()
    with pytest.raises(Unavailable):
        await steps.look(says=ILL, failures=5)
    assert (await steps.get()).version == before.version


async def test_a_deletion_that_fails_says_why(sample: Farm, steps: ScriptedSteps) -> None:
    bella = await sample.store.create(animal("bella"))
    await steps.look(says=Done())
    await sample.store.delete(Animal, "bella", uid=bella.uid)
    with pytest.raises(Unavailable):
        await steps.look(says=ILL, failures=1)
    assert said(await steps.get()) == ("False", "ProviderUnavailable", "the barn does not answer")


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


async def test_a_new_request_has_its_own_clock(sample: Farm, steps: ScriptedSteps) -> None:
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
