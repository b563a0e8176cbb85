"""Full scans end, whatever else there is to do and whatever fails, and are in nobody's way."""

from collections.abc import Callable, Coroutine
from typing import Any, cast

from structlog.testing import capture_logs

from remuda.kernel.errors import StorageFailing
from remuda.reconcile.controller import Controller
from remuda.reconcile.ports import ControllerSettings
from remuda.reconcile.results import Done, ReconcileContext, Requeue, Result
from remuda.reconcile.resync import ResyncSettings
from remuda.store.contract import Page, Store
from remuda.store.objects import Resource
from tests.kit.environment import provided_by
from tests.kit.sample_farm.controller import Animal, Farm, animal, farm
from tests.kit.simulation.runner import World, simulate


def in_simulation(scenario: Callable[[Farm], Coroutine[Any, Any, None]]) -> None:
    async def run(world: World) -> None:
        async with farm(world) as environment:
            await scenario(environment)

    simulate(run, 2)


sample = provided_by(in_simulation)


async def test_the_first_scan_ends_although_more_work_comes_than_workers_can_do(sample: Farm) -> None:
    for number in range(200):
        await sample.store.create(animal(f"a{number:03}"))

    async def reconcile(key: str, _: ReconcileContext) -> Result:
        await sample.world.clock.sleep(1)
        return Requeue(0.1) if key < "a120" else Done()

    driver = Controller("t", reconcile, kind=Animal, ports=sample.ports())
    await driver.start()
    await sample.rest(1800)
    assert driver.depth > 50
    assert driver.is_synced
    await driver.stop()


async def test_a_scan_hands_out_no_more_than_workers_take(sample: Farm) -> None:
    for number in range(100):
        await sample.store.create(animal(f"a{number:03}"))
    depths: list[int] = []

    async def reconcile(_key: str, _run: ReconcileContext) -> Result:
        await sample.world.clock.sleep(1)
        depths.append(driver.depth)
        return Done()

    settings = ControllerSettings(workers=2, resync=ResyncSettings(chunk=5))
    driver = Controller("t", reconcile, kind=Animal, ports=sample.ports(), settings=settings)
    await driver.start()
    await sample.rest(100)
    assert len(depths) == 100
    assert max(depths) <= 10
    await driver.stop()


class Failing:
    """A store whose lists fail after the first page, for a while."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.fails = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def list_names(self, kind: type[Resource], *, after: str | None = None, **options: Any) -> Page[str]:
        if after is not None and self.fails:
            raise StorageFailing("x", "broken")
        return await self._store.list_names(kind, after=after, **options)


async def test_a_scan_that_fails_midway_is_begun_again_soon_and_every_key_handed_out_is_counted(sample: Farm) -> None:
    for number in range(501):  # one more than a page
        await sample.store.create(animal(f"a{number:03}"))
    looks: list[tuple[str, str]] = []

    async def reconcile(key: str, run: ReconcileContext) -> Result:
        looks.append((key, run.cause))
        return Done()

    store = Failing(sample.store)
    settings = ControllerSettings(resync=ResyncSettings(interval_s=1000, keys_per_s=100))
    ports = sample.ports(store=cast("Store", store))
    driver = Controller("t", reconcile, kind=Animal, ports=ports, settings=settings)
    with capture_logs():
        for cause, until_s in (("start", 8), ("resync", 1120)):
            store.fails = True
            await driver.start()
            await sample.rest(until_s)
            assert (("a499", cause) in looks, ("a500", cause) in looks) == (True, False)
            store.fails = False
            await sample.rest(40)
            assert ("a500", cause) in looks
    failed, whole = [count for count in sample.notes.scans if count != 501], sample.notes.scans.count(501)
    assert set(failed) == {500, 0}, "a scan now and then goes on where it failed"
    assert whole == 2
    await driver.stop()
