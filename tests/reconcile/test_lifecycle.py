"""The life of an object, from two functions."""

import asyncio
from datetime import datetime

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from remuda.kernel.conditions import find_condition
from remuda.kernel.errors import Conflict, NotFound, ServerUnreachable, Unavailable
from remuda.reconcile.lifecycle import PAUSED, Lifecycle, Outcome
from remuda.reconcile.results import Blocked, Done, Failed, ReconcileContext, Requeue, Result
from remuda.reconcile.status import ERRORED
from remuda.store.objects import FOREGROUND, Metadata
from tests.kit.environment import provided_by
from tests.kit.sample_farm.controller import (
    ANIMAL,
    FINALIZER,
    GROUP,
    Animal,
    Farm,
    Herd,
    HerdSpec,
    animal,
    recoloured,
)
from tests.kit.sample_farm.lifecycle import ScriptedSteps, condition, in_simulation, said, timeline

HELD_BY_OTHERS = "others.example.org/reference"


sample = provided_by(in_simulation)
steps = provided_by(in_simulation, position=1)


async def test_what_is_gone_is_done(steps: ScriptedSteps) -> None:
    assert await steps.look() == Done()
    assert steps.calls == []


async def test_our_finalizer_is_on_the_object_before_the_first_effect(sample: Farm, steps: ScriptedSteps) -> None:
    await sample.store.create(animal("bella"))
    await steps.look()  # the step itself asserts it
    assert steps.calls == ["provision"]


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (Done(), ("True", "Provisioned", "provisioned")),
        (Requeue(5), ("False", "Provisioning", "provisioning")),
        (Requeue(5, "DependencyNotReady", ""), ("False", "DependencyNotReady", "dependency not ready")),
        (Requeue(5, "Building", "walls are up"), ("False", "Building", "walls are up")),
        (Blocked("NoHay", "there is no hay"), ("False", "NoHay", "there is no hay")),
        (Failed("Refused", "the barn refused"), ("False", "Refused", "the barn refused")),
        (ValueError("hunter2"), ("False", "Errored", "an unexpected error occurred")),
        (NotFound("Trough", "hunter2"), ("False", "Errored", "an unexpected error occurred")),
    ],
)
async def test_what_provisioning_says_becomes_the_condition(
    sample: Farm, steps: ScriptedSteps, result: Result | Exception, expected: tuple[str, str, str]
) -> None:
    await sample.store.create(animal("bella"))
    with capture_logs() as logs:
        returned = await steps.look(says=result)
    assert returned == (ERRORED if isinstance(result, Exception) else result)
    bella = await steps.get()
    assert said(bella) == expected
    assert (condition(bella).observed_generation, bella.status.observed_generation) == (1, 1)
    assert any(line.get("exc_info") for line in logs) == isinstance(result, Exception)


async def test_nothing_is_written_when_nothing_changed(sample: Farm, steps: ScriptedSteps) -> None:
    await sample.store.create(animal("bella"))
    for result in (Requeue(5), Blocked("NoHay", "there is no hay"), Done()):
        await steps.look(says=result)
        before = await steps.get()
        await sample.rest(30)
        await steps.look(says=result)
        assert (await steps.get()).version == before.version
        assert steps.run is not None
        assert not steps.run.acted


@pytest.mark.parametrize(
    "brief",
    [
        Blocked("NoHay", "there is no hay", report_after_s=30),
        Requeue(60, "NoHay", "there is no hay", report_after_s=30),
    ],
)
async def test_what_is_as_a_rule_soon_over_is_told_only_when_it_is_not(
    sample: Farm, steps: ScriptedSteps, brief: Result
) -> None:
    await sample.store.create(animal("bella"))
    assert await steps.look(says=brief) == brief
    assert steps.run is not None
    assert steps.run.requeue_s == pytest.approx(30, abs=1.1)  # objects know the second in which they began
    assert (await steps.get()).status.conditions == ()
    await sample.rest(31)
    await steps.look(says=brief)
    assert said(await steps.get()) == ("False", "NoHay", "there is no hay")
    await steps.look(says=Done())
    await steps.look(says=brief)
    assert said(await steps.get()) == ("False", "NoHay", "there is no hay"), "it was available: that is news"


async def test_the_transition_time_moves_only_when_the_status_flips(sample: Farm, steps: ScriptedSteps) -> None:
    await sample.store.create(animal("bella"))
    times: list[datetime] = []
    for result in (Requeue(5), Blocked("NoHay", "there is no hay"), Done(), Failed("Refused", "no")):
        await steps.look(says=result)
        times.append(condition(await steps.get()).last_transition_time)
        await sample.rest(10)
    assert times[0] == times[1] < times[2] < times[3]


async def test_a_new_generation_is_observed_without_an_entry_in_the_timeline(
    sample: Farm, steps: ScriptedSteps
) -> None:
    await sample.store.create(animal("bella"))
    await steps.look(says=Done())
    await sample.store.update(recoloured(await steps.get(), "grey"))
    entries = len(await timeline(sample))
    await steps.look(says=Done())
    bella = await steps.get()
    assert (condition(bella).observed_generation, bella.status.observed_generation) == (2, 2)
    assert len(await timeline(sample)) == entries


async def test_every_change_of_a_condition_is_in_the_timeline_with_the_pass_that_made_it(
    sample: Farm, steps: ScriptedSteps
) -> None:
    created = await sample.store.create(animal("bella"))
    ids = []
    for result in (Requeue(5), Requeue(5), Done()):
        await steps.look(says=result)
        assert steps.run is not None
        ids.append(steps.run.id)
    entries = await timeline(sample)
    assert [(entry["event"], entry.get("reason"), entry["reconcileId"]) for entry in entries] == [
        ("FinalizerAdded", None, ids[0]),
        ("ConditionChanged", "Provisioning", ids[0]),
        ("ConditionChanged", "Provisioned", ids[2]),
    ]
    assert {(entry["cause"], entry["generation"], entry["uid"]) for entry in entries} == {("event", 1, created.uid)}


async def test_status_fields_of_a_step_are_written_together_with_the_condition(
    sample: Farm, steps: ScriptedSteps
) -> None:
    await sample.store.create(animal("bella", finalizers=(FINALIZER,)))
    before = await steps.get()
    wanted = replace(before, status=replace(before.status, colour="grey"))
    await steps.look(says=Outcome(Done(), wanted))
    after = await steps.get()
    assert (after.status.colour, said(after)[1]) == ("grey", "Provisioned")
    assert int(after.version) == int(before.version) + 1
    wanted = replace(after, status=replace(after.status, colour="white"))
    await steps.look(says=Outcome(Done(), wanted))
    assert (await steps.get()).status.colour == "white"


async def test_a_step_may_have_written_the_object_itself(sample: Farm, steps: ScriptedSteps) -> None:
    await sample.store.create(animal("bella", finalizers=(FINALIZER,)))
    bella = await steps.get()
    labelled = await sample.store.update(replace(bella, metadata=replace(bella.metadata, labels={"seen": "yes"})))
    await steps.look(says=Outcome(Done(), labelled))
    assert said(await steps.get())[1] == "Provisioned"


@pytest.mark.parametrize("way", ["spec", "annotation"])
async def test_what_is_paused_is_left_alone_but_can_be_deleted(sample: Farm, steps: ScriptedSteps, way: str) -> None:
    wanted = animal("bella", pause=way == "spec", finalizers=(FINALIZER,))
    annotations = {PAUSED: "true"} if way == "annotation" else {}
    created = await sample.store.create(replace(wanted, metadata=replace(wanted.metadata, annotations=annotations)))
    assert await steps.look() == Done()
    assert steps.calls == []
    assert (await steps.get()).version == created.version
    await sample.store.delete(Animal, "bella", uid=created.uid)
    assert await steps.look() == Done()
    assert steps.calls == ["deprovision"]
    assert await sample.animals() == {}


async def test_deletion_goes_on_until_deprovisioning_is_done_and_then_releases(
    sample: Farm, steps: ScriptedSteps
) -> None:
    await sample.store.create(animal("bella"))
    await steps.look(says=Done())
    bella = await steps.get()
    await sample.store.delete(Animal, "bella", uid=bella.uid)
    assert await steps.look(says=Requeue(5)) == Requeue(5)
    assert said(await steps.get()) == ("False", "Deprovisioning", "deprovisioning")
    assert await steps.look(says=RuntimeError("hunter2")) == ERRORED
    assert said(await steps.get())[1] == "Errored"
    assert await steps.look(says=Done()) == Done()
    assert await sample.animals() == {}


async def test_a_marked_object_that_we_do_not_hold_is_none_of_our_business(sample: Farm, steps: ScriptedSteps) -> None:
    bella = await sample.store.create(animal("bella", finalizers=(HELD_BY_OTHERS,)))
    await sample.store.delete(Animal, "bella", uid=bella.uid)
    assert await steps.look() == Done()
    assert steps.calls == []


async def test_a_reference_blocks_deprovisioning_and_says_who_it_is(sample: Farm, steps: ScriptedSteps) -> None:
    bella = await sample.store.create(animal("bella", finalizers=(FINALIZER, HELD_BY_OTHERS)))
    await sample.store.delete(Animal, "bella", uid=bella.uid)
    blocked = Blocked("InUse", f"in use by {HELD_BY_OTHERS}")
    assert await steps.look() == blocked
    bella = await steps.get()
    assert said(bella) == ("False", blocked.reason, blocked.message)
    assert steps.calls == []
    await sample.store.update(replace(bella, metadata=replace(bella.metadata, finalizers=(FINALIZER,))))
    assert await steps.look() == Done()
    assert await sample.animals() == {}


async def test_children_go_first(sample: Farm, steps: ScriptedSteps) -> None:
    bella = await sample.store.create(animal("bella", finalizers=(FINALIZER,)))
    child = await sample.store.create(animal("foal", owner=ANIMAL.owner(bella), finalizers=(HELD_BY_OTHERS,)))
    await sample.store.delete(Animal, "bella", uid=bella.uid)
    assert FOREGROUND in (await steps.get()).metadata.finalizers
    assert await steps.look() == Blocked("HasChildren", "waiting for its children to be deleted")
    child = await sample.store.get(Animal, "foal")
    await sample.store.update(replace(child, metadata=replace(child.metadata, finalizers=())))
    assert await steps.look() == Done()
    assert await sample.animals() == {}


async def test_what_refers_to_it_inside_the_store_blocks_deprovisioning_too(sample: Farm, steps: ScriptedSteps) -> None:
    bella = await sample.store.create(animal("bella", finalizers=(FINALIZER,)))
    herd = await sample.store.create(Herd(metadata=Metadata(name="herd"), spec=HerdSpec(favourite="bella")))
    await sample.store.delete(Animal, "bella", uid=bella.uid)
    assert await steps.look() == Blocked("InUse", f"in use by herds.{GROUP}/herd")
    assert steps.calls == []
    await sample.store.delete(Herd, "herd", uid=herd.uid)
    assert await steps.look() == Done()
    assert await sample.animals() == {}


async def test_an_error_that_a_retry_may_cure_says_nothing_about_the_object(sample: Farm, steps: ScriptedSteps) -> None:
    await sample.store.create(animal("bella"))
    await steps.look(says=Done())
    before = await steps.get()
    for error in (ServerUnreachable("barn", "silence"), Conflict("Animal", "bella")):
        with pytest.raises(type(error)):
            await steps.look(says=error)
    assert (await steps.get()).version == before.version


async def test_what_an_object_named_may_have_gone_when_the_object_has_changed_since_it_was_read(
    sample: Farm, steps: ScriptedSteps
) -> None:
    await sample.store.create(animal("bella"))
    await steps.look(says=Done())
    steps.takes_s = 2.0
    looking = asyncio.create_task(steps.look(says=NotFound("Trough", "of old")))
    await sample.rest(1)
    await sample.store.update(recoloured(await steps.get(), "grey"))
    with capture_logs() as logs, pytest.raises(Conflict):
        await looking
    assert logs == []
    assert said(await steps.get())[1] == "Provisioned"


@pytest.mark.parametrize("says", [Requeue(5), Blocked("NoHay", "there is no hay"), Failed("Refused", "no")])
async def test_what_is_not_available_by_its_deadline_is_stalled_until_it_moves_on(
    sample: Farm, steps: ScriptedSteps, says: Result
) -> None:
    await sample.store.create(animal("bella"))
    await steps.look(says=says)
    assert find_condition((await steps.get()).status.conditions, "Stalled") is None
    assert steps.run is not None
    assert steps.run.requeue_s is not None
    await sample.rest(steps.run.requeue_s)
    await steps.look(says=says)
    status, reason, message = said(stalled := await steps.get(), "Stalled")
    assert (status, reason) == ("True", condition(stalled).reason)
    assert message == f"waiting since 2030-01-01T00:00:00Z: {condition(stalled).message}"
    await sample.rest()
    await steps.look(says=says)
    assert (await steps.get()).version == stalled.version
    await steps.look(says=Done())
    assert said(await steps.get(), "Stalled") == ("False", "Progressing", "making progress again")


async def test_what_has_not_gone_by_its_deadline_is_stalled(sample: Farm, steps: ScriptedSteps) -> None:
    await sample.store.create(animal("bella"))
    await steps.look(says=Done())
    bella = await steps.get()
    await sample.rest(5000)
    await sample.store.delete(Animal, "bella", uid=bella.uid)
    await steps.look(says=Requeue(5))
    assert find_condition((await steps.get()).status.conditions, "Stalled") is None
    await sample.rest(601)
    await steps.look(says=Requeue(5))
    assert said(await steps.get(), "Stalled")[:2] == ("True", "Deprovisioning")


@pytest.mark.parametrize("way", ["error", "hanging"])
async def test_a_provider_that_never_answers_makes_it_stalled_as_well(
    sample: Farm, steps: ScriptedSteps, way: str
) -> None:
    await sample.store.create(animal("bella"))
    steps.takes_s = 1000 if way == "hanging" else 0
    await sample.rest(601)
    with pytest.raises(Unavailable):
        await steps.look(says=ServerUnreachable("barn", "silence"))
    bella = await steps.get()
    assert said(bella)[:2] == ("False", "Provisioning")
    assert said(bella, "Stalled") == ("True", "Provisioning", f"waiting since 2030-01-01T00:00:00Z: {said(bella)[2]}")
    assert ("in time" in said(bella)[2]) == (way == "hanging")
    assert bella.status.observed_generation == 1


async def test_the_finalizer_of_another_controller_can_be_told_from_a_reference(
    sample: Farm, steps: ScriptedSteps
) -> None:
    life = Lifecycle(
        Animal,
        provision=steps._step("provision"),
        deprovision=steps._step("deprovision"),
        finalizer=FINALIZER,
        ports=sample.ports(),
        unordered=(HELD_BY_OTHERS,),
    )
    bella = await sample.store.create(animal("bella", finalizers=(FINALIZER, HELD_BY_OTHERS)))
    await sample.store.delete(Animal, "bella", uid=bella.uid)
    steps.life = life
    assert await steps.look() == Done()
    assert (await steps.get()).metadata.finalizers == (HELD_BY_OTHERS,)


async def test_a_kind_without_conditions_is_no_kind_for_a_lifecycle(sample: Farm) -> None:
    async def step(_resource: Herd, _run: ReconcileContext) -> Result:
        return Done()

    with pytest.raises(TypeError, match="conditions"):
        Lifecycle(Herd, provision=step, deprovision=step, finalizer=FINALIZER, ports=sample.ports())


class Gate:
    """Admits an object as a test tells it."""

    def __init__(self, steps: ScriptedSteps) -> None:
        self.calls = steps.calls
        self.waits: Result | None = None

    async def before_provision(self, _resource: Animal, _context: ReconcileContext) -> Result | None:
        self.calls.append("before provision")
        return self.waits

    async def before_deprovision(self, _resource: Animal, _context: ReconcileContext) -> Result | None:
        self.calls.append("before deprovision")
        return self.waits

    async def after_deprovision(self, resource: Animal) -> None:
        assert FINALIZER in resource.metadata.finalizers
        self.calls.append("after deprovision")


async def test_admission_comes_before_each_step_and_release_before_the_finalizer_is_removed(
    sample: Farm, steps: ScriptedSteps
) -> None:
    gate = Gate(steps)
    steps.life = Lifecycle(
        Animal,
        provision=steps._step("provision"),
        deprovision=steps._step("deprovision"),
        finalizer=FINALIZER,
        ports=sample.ports(),
        hooks=gate,
    )
    bella = await sample.store.create(animal("bella"))
    gate.waits = Blocked("OperationRunning", "its create operation is still running")
    assert await steps.look() == gate.waits
    gate.waits = None
    assert await steps.look() == Done()
    await sample.store.delete(Animal, "bella", uid=bella.uid)
    gate.waits = Blocked("OperationRunning", "its create operation is still running")
    assert await steps.look() == gate.waits
    gate.waits = None
    assert await steps.look(says=Requeue(5)) == Requeue(5)
    assert await steps.look(says=Outcome(Done(), await steps.get())) == Done()
    assert steps.calls == [
        "before provision",
        *("before provision", "provision"),
        "before deprovision",
        *("before deprovision", "deprovision"),
        *("before deprovision", "deprovision", "after deprovision"),
    ]
    with pytest.raises(NotFound):
        await steps.get()
