"""After a start what is unsettled comes at once, and what is at rest little by little."""

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Annotated, Any

import pytest
from msgspec.structs import replace

from remuda.kernel.conditions import Condition
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import Lifecycle
from remuda.reconcile.ports import ControllerSettings
from remuda.reconcile.results import Blocked, Done, ReconcileContext, Result
from remuda.reconcile.resync import ResyncSettings
from remuda.reconcile.sources import names
from remuda.reconcile.status import UNSETTLED, has_unsettled_index, is_unsettled, unsettled_index
from remuda.store.kinds import Kind, Registry, keyed
from remuda.store.objects import Metadata, Resource, StoredStruct
from tests.kit.environment import provided_by
from tests.kit.sample_farm.controller import ANIMAL, Farm
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import open_simulated

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SLOW = ResyncSettings(interval_s=100_000, keys_per_s=1, chunk=10)


class FoalSpec(StoredStruct, frozen=True):
    colour: str = "bay"


class FoalStatus(StoredStruct, frozen=True):
    conditions: Annotated[tuple[Condition, ...], keyed("type")] = ()
    observed_generation: int = 0
    is_asleep: bool = True


class Foal(Resource, frozen=True):
    spec: FoalSpec = FoalSpec()
    status: FoalStatus = FoalStatus()


FOAL = Kind(
    type=Foal,
    group="toy.remuda",
    version="v1alpha1",
    plural="foals",
    indexes=(unsettled_index(lambda foal: not foal.status.is_asleep),),
)


class Stud(Farm):
    """Foals, all of which are reconciled at once."""

    def __init__(self, world: World) -> None:
        super().__init__(world, open_simulated(world, Registry([FOAL])))
        self.looks: list[tuple[str, str]] = []
        self.hungry: set[str] = set()
        """Those about whom there is something to do."""

    async def make(self, count: int) -> list[str]:
        """Have so many, of whom all is known."""
        made = [f"f{number:03}" for number in range(count)]
        for name in made:
            await self.store.create(Foal(metadata=Metadata(name=name)))
        return made

    async def foal(self, name: str) -> Foal:
        return await self.store.get(Foal, name)

    async def recolour(self, name: str) -> None:
        """Want something else of one."""
        await self.store.update(replace(await self.foal(name), spec=FoalSpec(colour="grey")))

    async def keep(self, *, scan: ResyncSettings = SLOW) -> Controller:
        """Begin to reconcile them."""
        ports = self.ports()

        async def provision(foal: Foal, run: ReconcileContext) -> Result:
            self.looks.append((foal.name, run.cause))
            run.acted = run.acted or foal.name in self.hungry
            self.hungry.discard(foal.name)
            return Done()

        async def deprovision(foal: Foal, run: ReconcileContext) -> Result:
            return await provision(foal, run)

        reconcile = Lifecycle(Foal, provision=provision, deprovision=deprovision, finalizer="toy/stud", ports=ports)
        driver = Controller("foals", reconcile, kind=Foal, ports=ports, settings=ControllerSettings(resync=scan))
        self._drivers.append(driver)
        await driver.start()
        return driver

    async def settle(self, count: int) -> list[str]:
        """Have so many at rest, and nobody who reconciles them."""
        made = await self.make(count)
        driver = await self.keep()
        await self.rest(5)
        await driver.stop()
        self.looks.clear()
        self.notes.scans.clear()
        return made

    def looked(self) -> set[str]:
        """Return who was looked at since this was last asked."""
        looks, self.looks = self.looks, []
        return {name for name, _ in looks}


def at_the_stud(scenario: Callable[[Stud], Coroutine[Any, Any, None]]) -> None:
    async def run(world: World) -> None:
        stud = Stud(world)
        try:
            await scenario(stud)
        finally:
            await stud.stop()
            await stud.store.close()  # type: ignore[attr-defined]  # it is one of SQLite

    simulate(run, 2)


stud = provided_by(at_the_stud)


def said(status: str, generation: int) -> FoalStatus:
    statement = Condition(
        type="Available",
        status=status,  # type: ignore[arg-type]  # one of those that there are
        reason="Reason",
        message="it is so",
        last_transition_time=NOW,
        observed_generation=generation,
    )
    return FoalStatus(conditions=(statement,))


@pytest.mark.parametrize(
    ("foal", "expected"),
    [
        (Foal(metadata=Metadata(name="new", generation=1)), True),
        (Foal(metadata=Metadata(name="there", generation=2), status=said("True", 2)), False),
        (Foal(metadata=Metadata(name="waiting", generation=2), status=said("False", 2)), True),
        (Foal(metadata=Metadata(name="wanted otherwise", generation=3), status=said("True", 2)), True),
        (Foal(metadata=Metadata(name="going", generation=2, deletion_timestamp=NOW), status=said("True", 2)), True),
    ],
    ids=lambda value: value.name if isinstance(value, Foal) else "",
)
def test_an_object_is_at_rest_when_it_is_as_its_last_generation_wants_it(foal: Foal, *, expected: bool) -> None:
    assert is_unsettled(foal) is expected


async def test_those_at_rest_are_in_no_index_until_something_is_to_be_done(stud: Stud) -> None:
    made = await stud.make(3)
    assert [name async for name in names(stud.store, Foal, index=UNSETTLED)] == made
    driver = await stud.keep()
    await stud.rest(5)
    await driver.stop()
    assert [name async for name in names(stud.store, Foal, index=UNSETTLED)] == []
    await stud.recolour("f000")
    awake = await stud.foal("f001")
    await stud.store.update_status(replace(awake, status=replace(awake.status, is_asleep=False)))
    doomed = await stud.foal("f002")
    await stud.store.delete(Foal, doomed.name, uid=doomed.uid)
    assert [name async for name in names(stud.store, Foal, index=UNSETTLED)] == made


def test_a_kind_declares_the_index_or_is_looked_at_as_a_whole() -> None:
    assert has_unsettled_index(FOAL)
    assert not has_unsettled_index(ANIMAL)


async def test_what_is_unsettled_comes_at_once_and_the_rest_at_the_pace_of_a_scan(stud: Stud) -> None:
    made = await stud.settle(100)
    for name in ("f042", "f099"):
        await stud.recolour(name)
    driver = await stud.keep()
    await stud.rest(1)
    assert driver.is_synced, "what is at rest keeps nobody waiting"
    assert stud.looked() == {"f042", "f099", *made[:10]}
    await stud.rest(40)
    assert stud.looked() == set(made[10:50])
    await stud.rest(60)
    assert stud.looked() == set(made[50:])
    assert stud.notes.scans == [2, 100]


async def test_few_are_all_looked_at_at_once(stud: Stud) -> None:
    made = await stud.settle(9)
    await stud.keep()
    await stud.rest(1)
    assert stud.looked() == set(made)


async def test_what_happened_before_the_start_is_no_find_and_what_a_later_scan_finds_is(stud: Stud) -> None:
    await stud.settle(40)
    stud.hungry = {"f030"}
    await stud.keep(scan=ResyncSettings(interval_s=50, keys_per_s=1, chunk=10))
    await stud.rest(45)
    assert (stud.hungry, stud.notes.finds) == (set(), [])
    stud.hungry = {"f031"}
    await stud.rest(100)
    assert (stud.hungry, stud.notes.finds) == (set(), ["f031"])


async def test_a_scan_gives_way_when_everything_is_to_be_looked_at_again(stud: Stud) -> None:
    made = await stud.settle(100)
    driver = await stud.keep()
    await stud.rest(25)
    stud.looked()
    assert driver._term is not None
    driver._term.resync.request()  # as a source does that restarts
    await stud.rest(1)
    assert stud.looked() == set(made[30:40]), "it goes on where it was"
    assert stud.notes.scans == [0, 30, 0]
    await stud.rest(100)
    assert stud.looked() == {*made[:30], *made[40:]}, "and comes to all, also to what was looked at before"
    assert stud.notes.scans == [0, 30, 0, 100]


async def test_the_last_is_looked_at_however_often_everything_is_to_be_looked_at_again(stud: Stud) -> None:
    made = await stud.settle(100)
    driver = await stud.keep()
    for _ in range(8):
        await stud.rest(15)
        assert driver._term is not None
        driver._term.resync.request()  # as a source does that restarts
    assert stud.looked() == set(made)


async def test_a_scan_that_was_broken_off_comes_to_what_was_made_or_removed_meanwhile(stud: Stud) -> None:
    made = await stud.settle(30)
    driver = await stud.keep()
    await stud.rest(5)
    assert stud.looked() == set(made[:10])
    assert driver._term is not None
    gone = await stud.foal("f009")
    await stud.store.update(replace(gone, metadata=replace(gone.metadata, finalizers=())))
    await stud.store.delete(Foal, gone.name, uid=gone.uid)
    driver._term.resync.request()
    await stud.rest(100)
    assert stud.looked() >= {each for each in made if each != "f009"}
    assert stud.notes.scans[-1] == 29


async def test_what_waits_for_something_is_looked_at_after_every_start(stud: Stud) -> None:
    made = await stud.settle(30)
    ports = stud.ports()

    async def wait(foal: Foal, run: ReconcileContext) -> Result:
        stud.looks.append((foal.name, run.cause))
        return Blocked("Asleep", "it has to wake up first")

    reconcile = Lifecycle(Foal, provision=wait, deprovision=wait, finalizer="toy/stud", ports=ports)
    for expected in (made[:10], [*made[:10], "f029"]):
        driver = Controller("foals", reconcile, kind=Foal, ports=ports, settings=ControllerSettings(resync=SLOW))
        await driver.start()
        await stud.rest(1)
        assert stud.looked() == set(expected)
        driver.enqueue("f029")
        await stud.rest(1)
        stud.looked()
        await driver.stop()
