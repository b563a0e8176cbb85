"""Faults around a pass: a lease that ran out, a reporter that raises, and whatever nobody thought of."""

from dataclasses import replace
from typing import Any

from structlog.testing import capture_logs

from remuda.reconcile.controller import Controller
from remuda.reconcile.deletion_guard import DeletionGuard
from remuda.reconcile.leader import SingleProcess
from remuda.reconcile.ports import ControllerSettings
from remuda.reconcile.results import Done, ReconcileContext, Result
from tests.kit.environment import provided_by
from tests.kit.sample_farm.controller import Animal, Farm, Notes, animal, recoloured
from tests.kit.sample_farm.driver import Script, in_simulation

sample = provided_by(in_simulation)


class Lapsed(SingleProcess):
    """A leader whose lease ran out, of which nobody has been told yet."""

    def __init__(self) -> None:
        super().__init__()
        self.has_lapsed = False

    @property
    def is_leading(self) -> bool:
        return not self.has_lapsed


async def test_no_pass_begins_after_the_lease_ran_out_whoever_knows_of_it(sample: Farm) -> None:
    leader, script = Lapsed(), Script(sample)
    driver = Controller("t", script, kind=Animal, ports=sample.ports(leader=leader))
    await driver.start()
    bella = await sample.store.create(animal("bella"))
    await sample.rest(5)
    looked = len(script.times)
    leader.has_lapsed = True
    bella = await sample.store.update(recoloured(bella, "grey"))
    await sample.rest(5)
    assert len(script.times) == looked > 0
    leader.has_lapsed = False
    await sample.store.update(recoloured(bella, "bay"))
    await sample.rest(5)
    assert len(script.times) == looked + 1
    await driver.stop()


class Shaky(SingleProcess):
    """A leader of whom asking may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.is_ill = False

    @property
    def is_leading(self) -> bool:
        if self.is_ill:
            raise RuntimeError("hunter2")
        return True


async def test_a_fault_around_a_pass_ends_neither_its_worker_nor_its_key(sample: Farm) -> None:
    leader, script = Shaky(), Script(sample)
    ports = sample.ports(leader=leader)
    driver = Controller("t", script, kind=Animal, ports=ports, settings=ControllerSettings(workers=1))
    await driver.start()
    await sample.rest(1)
    leader.is_ill = True
    with capture_logs() as logs:
        await sample.store.create(animal("bella"))
        await sample.rest(5)
    assert [(line["event"], line["key"]) for line in logs] == [("worker failed", "bella")]
    leader.is_ill = False
    await sample.rest(70)
    assert len(script.times) == 1
    await driver.stop()


class Faulty(Notes):
    """A reporter that always raises."""

    def __getattribute__(self, name: str) -> Any:
        said = super().__getattribute__(name)
        if not callable(said) or name.startswith("_"):
            return said

        def fail(*_args: Any, **_facts: Any) -> None:
            raise RuntimeError("hunter2")

        return fail


async def test_a_reporter_that_raises_keeps_nobody_from_anything(sample: Farm) -> None:
    seen: list[str] = []

    async def reconcile(key: str, run: ReconcileContext) -> Result:
        seen.append(key)
        run.acted = run.cause == "resync"
        return Done()

    with capture_logs() as logs:
        ports = replace(sample.ports(), reporter=Faulty())
        guard = DeletionGuard("t", Animal, ports=ports)
        settings = ControllerSettings(workers=2)
        driver = Controller("t", reconcile, kind=Animal, ports=ports, settings=settings, guards=[guard])
        await driver.start()
        for number in range(6):
            await sample.store.create(animal(f"a{number}"))
        await sample.rest(5)
        assert await driver.resync() == 6
        await sample.rest(5)
        await driver.stop()
    assert seen.count("a0") == seen.count("a5") == 2
    assert {line["event"] for line in logs} == {"reporter failed"}
