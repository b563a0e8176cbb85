"""A source that has missed something: nobody knows what, so everything is looked at, and nobody has to wait for it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from remuda.kernel.errors import Gone, StorageFailing
from remuda.reconcile.controller import Controller
from remuda.reconcile.ports import ControllerSettings
from remuda.reconcile.results import Cause, Done, ReconcileContext, Result
from remuda.reconcile.sources import Source, Watcher, owner_of
from remuda.store.contract import Event, Store
from remuda.store.objects import Metadata, Resource, ResourceT
from tests.kit.environment import options, provided_by
from tests.kit.sample_farm.controller import HERD, Animal, Farm, Herd, animal, farm, recoloured, reopened
from tests.kit.simulation.runner import World, simulate


class Forgetful:
    """A store that loses what happens to animals while it is told to, and then says so; it can fail as well."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_losing = False
        self.fails = False
        self.open_watches = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def list_names(self, kind: type[Resource], **selection: Any) -> Any:
        if self.fails:
            raise StorageFailing("x", "broken")
        return await self._store.list_names(kind, **selection)

    async def watch(self, kind: type[ResourceT], *, since: str, **watched: Any) -> AsyncIterator[Event[ResourceT]]:
        self.open_watches += 1
        has_lost = False
        try:
            async for event in self._store.watch(kind, since=since, **watched):
                has_lost = has_lost or (self.is_losing and kind is Animal)
                if has_lost and not self.is_losing:
                    raise Gone(kind.__name__, since)
                if not has_lost:
                    yield event
        finally:
            self.open_watches -= 1


class Looks:
    """A reconciler that notes who was looked at, and why."""

    def __init__(self, environment: Farm, *, takes_s: float = 0) -> None:
        self._here, self._takes_s = environment, takes_s
        self.seen: list[tuple[str, Cause]] = []

    async def __call__(self, key: str, run: ReconcileContext) -> Result:
        await self._here.world.clock.sleep(self._takes_s)
        self.seen.append((key, run.cause))
        return Done()


def in_simulation(scenario: Callable[[Farm, Forgetful], Coroutine[Any, Any, None]], seeds: int = 3) -> None:
    async def run(world: World) -> None:
        async with farm(world) as environment:
            await scenario(environment, Forgetful(environment.store))

    simulate(run, seeds)


sample = provided_by(in_simulation)
store = provided_by(in_simulation, position=1)


async def lose(store: Forgetful, environment: Farm, change: Coroutine[Any, Any, Any]) -> None:
    """Let a change of an animal go unreported, and then the source hear that it has missed something."""
    store.is_losing = True
    await change
    await environment.rest(1)
    store.is_losing = False
    await environment.store.create(animal(f"a-heartbeat-{environment.world.clock.monotonic():.0f}"))


async def test_the_owner_of_a_child_that_went_unseen_is_looked_at(sample: Farm, store: Forgetful) -> None:
    looks = Looks(sample)
    ports = sample.ports(store=cast("Store", store))
    sources = (Source(Herd), Source(Animal, keys=owner_of(Herd)))
    driver = Controller("herds", looks, kind=Herd, ports=ports, sources=sources)
    await driver.start()
    herd = await sample.store.create(Herd(metadata=Metadata(name="herd")))
    bella = await sample.store.create(animal("bella", owner=HERD.owner(herd)))
    await sample.rest(5)
    looks.seen.clear()
    await lose(store, sample, sample.store.delete(Animal, "bella", uid=bella.uid))
    await sample.rest(60)
    assert looks.seen == [("herd", "start")]
    await driver.stop()


@options(seeds=1)
async def test_a_user_does_not_wait_behind_everything_that_is_looked_at_again(sample: Farm, store: Forgetful) -> None:
    looks = Looks(sample, takes_s=1)
    for number in range(600):
        await sample.store.create(animal(f"b{number:03}"))
    driver = Controller("t", looks, kind=Animal, ports=sample.ports(store=cast("Store", store)))
    await driver.start()
    await sample.rest(600)
    assert driver.is_idle
    looks.seen.clear()
    await lose(store, sample, sample.store.create(animal("c")))
    await sample.rest(20)
    await sample.store.create(animal("user"))
    await sample.rest(3)
    assert ("user", "event") in looks.seen
    assert len(looks.seen) < 300
    await sample.rest(600)
    assert {key for key, cause in looks.seen if cause == "start"} >= {f"b{number:03}" for number in range(600)}
    await driver.stop()


async def test_what_a_source_remembers_from_before_it_missed_something_counts_no_more(
    sample: Farm, store: Forgetful
) -> None:
    looks = Looks(sample)
    ports = sample.ports(store=cast("Store", store))
    source = Source(Animal, when=lambda each: each.spec.colour)
    driver = Controller("t", looks, kind=Animal, ports=ports, sources=(source,))
    await driver.start()
    bella = await sample.store.create(animal("bella", "bay"))
    await sample.rest(5)
    await lose(store, sample, sample.store.update(recoloured(bella, "grey")))
    await sample.rest(5)
    looks.seen.clear()
    await sample.store.update(recoloured(await sample.store.get(Animal, "bella"), "bay"))
    await sample.rest(5)
    assert looks.seen == [("bella", "event")], "it was grey meanwhile"
    await driver.stop()


async def test_everything_is_looked_at_although_the_store_fails_just_then(sample: Farm, store: Forgetful) -> None:
    looks = Looks(sample)
    driver = Controller("t", looks, kind=Animal, ports=sample.ports(store=cast("Store", store)))
    await driver.start()
    bella = await sample.store.create(animal("bella"))
    await sample.rest(5)
    looks.seen.clear()
    with capture_logs():
        store.fails = True
        await lose(store, sample, sample.store.update(recoloured(bella, "grey")))
        await sample.rest(50)
        assert looks.seen == []
        store.fails = False
        await sample.rest(100)
    assert ("bella", "start") in looks.seen
    await driver.stop()


async def test_a_watch_is_closed_before_the_error_that_ends_it_is_told(sample: Farm, store: Forgetful) -> None:
    def failing(_: Resource) -> list[str]:
        raise StorageFailing("x", "broken")

    watcher = Watcher(Source(Animal, keys=failing), cast("Store", store), lambda *_: None, on_start=lambda: None)
    watching = asyncio.create_task(watcher.run())
    await sample.rest(1)
    assert store.open_watches == 1
    await sample.store.create(animal("bella"))
    with pytest.raises(StorageFailing):
        await watching
    assert store.open_watches == 0


async def test_one_that_cannot_be_read_fails_alone_and_all_others_go_on(sample: Farm) -> None:
    for name in ("a", "b", "c"):
        await sample.store.create(animal(name))
    for odd in ("a", "c"):
        await sample.store.update(recoloured(await sample.store.get(Animal, odd), cast("str", 7)))
    await reopened(sample)
    with capture_logs() as logs:
        driver = await sample.drive(settings=ControllerSettings(workers=2))
        await sample.rest()
        assert driver.is_synced
        await sample.store.create(animal("d"))
        await sample.rest()
    assert sample.barn.stalls.keys() == {"b", "d"}
    assert {line["key"] for line in logs if line["event"] == "reconcile failed"} == {"a", "c"}
    assert not [line for line in logs if line["event"] == "background task failed"]
    assert {key for key, _ in sample.notes.retries} == {"a", "c"}
