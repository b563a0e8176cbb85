"""What the breaker counts over all projects, and whatever may come in the way of counting."""

from datetime import timedelta
from typing import Any, cast

from remuda.reconcile.controller import Driver
from remuda.reconcile.deletion_guard import Breaker, BreakerSettings, Limit
from remuda.reconcile.kinds import EVERYTHING
from remuda.reconcile.results import Done, Result, Run
from remuda.store.contract import Store
from remuda.store.objects import Metadata, ResourceT
from tests.reconcile.test_breaker import SETTINGS, allowed, breaker, in_simulation, populate, run_of
from tests.reconcile.toy import ANIMAL, HERD, Animal, Farm, Herd, animal, recoloured, reopened


def test_many_small_projects_are_no_way_around_it() -> None:
    async def scenario(here: Farm) -> None:
        guard, projects = breaker(here), [await populate(here, f"p{number}", 3) for number in range(40)]
        assert sum([await allowed(guard, here, herd) for herd in projects]) == 24
        assert await guard.tripped() == [EVERYTHING]
        verdict = await guard.allow(projects[-1][0], run_of(here))
        assert verdict is not None
        assert verdict.message.startswith("too many objects in all groups would be deleted")
        await guard.release(EVERYTHING)
        assert await allowed(guard, here, projects[-1]) == 3

    in_simulation(scenario)


def test_what_goes_in_all_has_a_limit_of_its_own() -> None:
    async def scenario(here: Farm) -> None:
        settings = BreakerSettings(overall=Limit(share=1.0, always=2, most=5))
        herds = [await populate(here, project, 3) for project in "pqr"]
        assert [await allowed(breaker(here, settings), here, herd) for herd in herds] == [3, 2, 0]

    in_simulation(scenario)


class Cascading:
    """A store whose marks take their time from owner to child, as they do on an API server."""

    def __init__(self, store: Store, near: Animal) -> None:
        self._store, self._near = store, near

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def get(self, kind: type[ResourceT], name: str) -> ResourceT:
        return cast("ResourceT", self._near) if name == self._near.name else await self._store.get(kind, name)


def test_a_mark_on_a_far_owner_is_a_request_before_it_has_come_to_the_near_one() -> None:
    async def scenario(here: Farm) -> None:
        herd = await here.store.create(Herd(metadata=Metadata(name="herd", finalizers=("a.example.org/x",))))
        mare = await here.store.create(animal("mare", owner=HERD.owner(herd), finalizers=("a.example.org/x",)))
        foals = [await here.store.create(animal(f"foal-{n}", owner=ANIMAL.owner(mare))) for n in range(20)]
        guard = Breaker("animals", Animal, ports=here.ports(store=cast("Store", Cascading(here.store, mare))))
        assert await allowed(guard, here, foals) == 4
        await here.store.delete(Herd, "herd", uid=herd.uid)
        assert await allowed(guard, here, foals) == 20

    in_simulation(scenario)


def test_one_that_cannot_be_read_stops_no_count() -> None:
    async def scenario(here: Farm) -> None:
        herds = [await populate(here, project, 10) for project in ("p", "")]
        odd = herds[1][0]
        odd = await here.store.update(recoloured(odd, cast("str", 7)))
        store = await reopened(here)
        guard = Breaker("animals", Animal, ports=here.ports(store=store), settings=SETTINGS)
        assert [await allowed(guard, here, herd[1:]) for herd in herds] == [3, 3]

    in_simulation(scenario)


def test_a_jump_of_the_clock_forgets_nothing() -> None:
    async def scenario(here: Farm) -> None:
        guard, herd = breaker(here), await populate(here, "p", 10)
        assert await allowed(guard, here, herd[:3]) == 3
        here.world.clock.jump(timedelta(hours=1))
        assert await allowed(guard, here, herd[3:]) == 0
        await guard.release("p")
        other = breaker(here)
        assert await allowed(other, here, herd[3:5]) == 2
        assert await allowed(guard, here, herd[5:6]) == 1
        here.world.clock.jump(timedelta(hours=1))
        assert await allowed(guard, here, herd[6:]) == 0, "what another has counted is known as well"

    in_simulation(scenario)


def test_the_driver_reports_what_is_stopped_when_control_begins() -> None:
    async def scenario(here: Farm) -> None:
        await allowed(breaker(here), here, await populate(here, "p", 10))
        here.notes.trips.clear()

        async def reconcile(_key: str, _run: Run) -> Result:
            return Done()

        driver = Driver("animals", reconcile, kind=Animal, ports=here.ports(), breakers=[breaker(here)])
        assert here.notes.armed_for == ["animals"] * 2
        assert here.notes.trips == []
        await driver.start()
        await here.rest(1)
        await driver.stop()
        assert here.notes.trips == [1]

    in_simulation(scenario)
