"""What the breaker counts over all projects, and whatever may come in the way of counting."""

from datetime import timedelta
from typing import Any, cast

from remuda.reconcile.controller import Controller
from remuda.reconcile.deletion_guard import DeletionGuard, DeletionGuardSettings, DeletionLimit
from remuda.reconcile.kinds import EVERYTHING
from remuda.reconcile.results import Done, ReconcileContext, Result
from remuda.store.contract import Store
from remuda.store.objects import Metadata, ResourceT
from tests.kit.environment import provided_by
from tests.kit.sample_farm.controller import ANIMAL, HERD, Animal, Farm, Herd, animal, recoloured, reopened
from tests.kit.sample_farm.deletion_guard import SETTINGS, allowed, breaker, in_simulation, populate, run_of

sample = provided_by(in_simulation)


async def test_many_small_projects_are_no_way_around_it(sample: Farm) -> None:
    guard, projects = breaker(sample), [await populate(sample, f"p{number}", 3) for number in range(40)]
    assert sum([await allowed(guard, sample, herd) for herd in projects]) == 24
    assert await guard.tripped() == [EVERYTHING]
    verdict = await guard.admit_deletion(projects[-1][0], run_of(sample))
    assert verdict is not None
    assert verdict.message.startswith("too many objects in all groups would be deleted")
    await guard.resume(EVERYTHING)
    assert await allowed(guard, sample, projects[-1]) == 3


async def test_what_goes_in_all_has_a_limit_of_its_own(sample: Farm) -> None:
    settings = DeletionGuardSettings(overall=DeletionLimit(share=1.0, always=2, most=5))
    herds = [await populate(sample, project, 3) for project in "pqr"]
    assert [await allowed(breaker(sample, settings), sample, herd) for herd in herds] == [3, 2, 0]


class Cascading:
    """A store whose marks take their time from owner to child, as they do on an API server."""

    def __init__(self, store: Store, near: Animal) -> None:
        self._store, self._near = store, near

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def get(self, kind: type[ResourceT], name: str) -> ResourceT:
        return cast("ResourceT", self._near) if name == self._near.name else await self._store.get(kind, name)


async def test_a_mark_on_a_far_owner_is_a_request_before_it_has_come_to_the_near_one(sample: Farm) -> None:
    herd = await sample.store.create(Herd(metadata=Metadata(name="herd", finalizers=("a.example.org/x",))))
    mare = await sample.store.create(animal("mare", owner=HERD.owner(herd), finalizers=("a.example.org/x",)))
    foals = [await sample.store.create(animal(f"foal-{n}", owner=ANIMAL.owner(mare))) for n in range(20)]
    guard = DeletionGuard("animals", Animal, ports=sample.ports(store=cast("Store", Cascading(sample.store, mare))))
    assert await allowed(guard, sample, foals) == 4
    await sample.store.delete(Herd, "herd", uid=herd.uid)
    assert await allowed(guard, sample, foals) == 20


async def test_one_that_cannot_be_read_stops_no_count(sample: Farm) -> None:
    herds = [await populate(sample, project, 10) for project in ("p", "")]
    odd = herds[1][0]
    odd = await sample.store.update(recoloured(odd, cast("str", 7)))
    store = await reopened(sample)
    guard = DeletionGuard("animals", Animal, ports=sample.ports(store=store), settings=SETTINGS)
    assert [await allowed(guard, sample, herd[1:]) for herd in herds] == [3, 3]


async def test_a_jump_of_the_clock_forgets_nothing(sample: Farm) -> None:
    guard, herd = breaker(sample), await populate(sample, "p", 10)
    assert await allowed(guard, sample, herd[:3]) == 3
    sample.world.clock.jump(timedelta(hours=1))
    assert await allowed(guard, sample, herd[3:]) == 0
    await guard.resume("p")
    other = breaker(sample)
    assert await allowed(other, sample, herd[3:5]) == 2
    assert await allowed(guard, sample, herd[5:6]) == 1
    sample.world.clock.jump(timedelta(hours=1))
    assert await allowed(guard, sample, herd[6:]) == 0, "what another has counted is known as well"


async def test_the_driver_reports_what_is_stopped_when_control_begins(sample: Farm) -> None:
    await allowed(breaker(sample), sample, await populate(sample, "p", 10))
    sample.notes.trips.clear()

    async def reconcile(_key: str, _run: ReconcileContext) -> Result:
        return Done()

    driver = Controller("animals", reconcile, kind=Animal, ports=sample.ports(), guards=[breaker(sample)])
    assert sample.notes.armed_for == ["animals"] * 2
    assert sample.notes.trips == []
    await driver.start()
    await sample.rest(1)
    await driver.stop()
    assert sample.notes.trips == [1]
