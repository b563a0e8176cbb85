"""Which change wakes which keys."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any, ClassVar
from weakref import WeakSet

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from remuda.kernel.errors import Gone, StorageFailing
from remuda.reconcile import sources
from remuda.reconcile.queue import Rank
from remuda.reconcile.results import Cause
from remuda.reconcile.sources import (
    Source,
    Watcher,
    indexed,
    intent_changed,
    owner_of,
    version_changed,
)
from remuda.store.background import BackgroundTasks
from remuda.store.contract import Event
from remuda.store.objects import Metadata, Resource
from tests.kit.environment import options, provided_by
from tests.kit.sample_farm.controller import (
    ANIMAL,
    HERD,
    Animal,
    Farm,
    Herd,
    Trough,
    TroughSpec,
    animal,
    farm,
    recoloured,
)
from tests.kit.simulation.runner import World, simulate


class Ear:
    """A source at work, and what it handed on."""

    def __init__(self, farm: Farm, source: Source[Any], store: Any = None) -> None:
        self.farm = farm
        self.heard: list[tuple[str, Cause]] = []
        self._tasks = BackgroundTasks(farm.world.clock)
        self.beginnings = 0
        self._watches = asyncio.Event()
        self._tasks.start("ear", Watcher(source, store or farm.store, self._add, on_start=self._began).run)

    def _began(self) -> None:
        self.beginnings += 1
        self._watches.set()

    def _add(self, key: str, cause: Cause, _rank: Rank, _after_s: float) -> None:
        self.heard.append((key, cause))

    async def listen(self) -> None:
        await self._watches.wait()

    async def keys(self) -> list[str]:
        await self.farm.rest(5)
        heard, self.heard = self.heard, []
        return [key for key, _ in heard]

    async def stop(self) -> None:
        await self._tasks.stop()


def listening(scenario: Callable[[Farm, Ear], Coroutine[Any, Any, None]], source: Source[Any]) -> None:
    async def run(world: World) -> None:
        async with farm(world) as environment:
            ear = Ear(environment, source)
            await ear.listen()
            await scenario(environment, ear)
            await ear.stop()

    simulate(run, 5)


environment = provided_by(listening)
ear = provided_by(listening, position=1)


def labelled(resource: Animal, **labels: str) -> Animal:
    return replace(resource, metadata=replace(resource.metadata, labels=labels))


def annotated(resource: Animal, text: str) -> Animal:
    return replace(resource, metadata=replace(resource.metadata, annotations={"note": text}))


def seen(resource: Animal, colour: str) -> Animal:
    return replace(resource, status=replace(resource.status, colour=colour))


def held(resource: Animal, *finalizers: str) -> Animal:
    return replace(resource, metadata=replace(resource.metadata, finalizers=finalizers))


@pytest.mark.parametrize(
    "when",
    [intent_changed, version_changed, lambda _: "never"],
    ids=["intent", "version", "never"],
)
@options(lambda when: {"source": Source(Animal, when=when)})
async def test_coming_and_going_always_count(environment: Farm, ear: Ear) -> None:
    bella = await environment.store.create(animal("bella"))
    assert await ear.keys() == ["bella"]
    await environment.store.delete(Animal, "bella", uid=bella.uid)
    assert await ear.keys() == ["bella"]


@pytest.mark.parametrize("when", [intent_changed, version_changed], ids=["intent", "version"])
@options(lambda when: {"source": Source(Animal, when=when, created=False)})
async def test_where_arrivals_do_not_count_going_and_changes_still_do(environment: Farm, ear: Ear) -> None:
    bella = await environment.store.create(animal("bella"))
    assert await ear.keys() == []
    bella = await environment.store.update(recoloured(bella, "brown"))
    assert await ear.keys() == ["bella"]
    await environment.store.delete(Animal, "bella", uid=bella.uid)
    assert await ear.keys() == ["bella"]


@options(lambda: {"source": Source(Animal, when=lambda animal: animal.metadata.generation)})
async def test_a_generation_moves_by_spec_and_deletion_mark_alone(environment: Farm, ear: Ear) -> None:
    bella = await environment.store.create(animal("bella", finalizers=("a.example.org/x",)))
    await ear.keys()
    bella = await environment.store.update_status(seen(bella, "grey"))
    bella = await environment.store.update(labelled(bella, seen="yes"))
    assert await ear.keys() == []
    bella = await environment.store.update(recoloured(bella, "grey"))
    assert await ear.keys() == ["bella"]
    marked = await environment.store.delete(Animal, "bella", uid=bella.uid)
    assert marked is not None
    assert await ear.keys() == ["bella"]


@options(lambda: {"source": Source(Animal)})
async def test_intent_is_all_but_the_status_and_the_finalizers_of_the_living(environment: Farm, ear: Ear) -> None:
    bella = await environment.store.create(animal("bella"))
    await ear.keys()
    bella = await environment.store.update_status(seen(bella, "grey"))
    bella = await environment.store.update(held(bella, "a.example.org/x", "a.example.org/y"))
    assert await ear.keys() == []
    bella = await environment.store.update(annotated(bella, "paused"))
    assert await ear.keys() == ["bella"]
    bella = await environment.store.update(labelled(bella, project="p"))
    assert await ear.keys() == ["bella"]
    marked = await environment.store.delete(Animal, "bella", uid=bella.uid)
    assert await ear.keys() == ["bella"]
    assert marked is not None
    await environment.store.update(held(marked, "a.example.org/x"))
    assert await ear.keys() == ["bella"]


@options(lambda: {"source": Source(Animal, when=version_changed)})
async def test_every_version_counts_where_that_is_wanted(environment: Farm, ear: Ear) -> None:
    bella = await environment.store.create(animal("bella"))
    bella = await environment.store.update_status(seen(bella, "grey"))
    await environment.store.update_status(seen(bella, "bay"))
    assert await ear.keys() == ["bella"] * 3


@options(lambda: {"source": Source(Animal, keys=owner_of(Herd))})
async def test_a_child_wakes_its_owner(environment: Farm, ear: Ear) -> None:
    herd = await environment.store.create(Herd(metadata=Metadata(name="herd")))
    mare = await environment.store.create(animal("mare", owner=HERD.owner(herd)))
    await environment.store.create(animal("foal", owner=ANIMAL.owner(mare)))
    assert await ear.keys() == ["herd"]


@options(seeds=5)
async def test_a_change_of_one_wakes_all_that_lie_under_it_in_an_index(world: World) -> None:
    async with farm(world) as environment:
        ear = Ear(
            environment, Source(Trough, keys=indexed(environment.store, Animal, "trough", lambda trough: trough.name))
        )
        await ear.listen()
        for name, trough in (("a", "left"), ("b", "right"), ("c", "left")):
            await environment.store.create(animal(name, trough=trough))
        left = await environment.store.create(Trough(metadata=Metadata(name="left")))
        assert await ear.keys() == ["a", "c"]
        await environment.store.update(replace(left, spec=TroughSpec(feed="oats")))
        assert await ear.keys() == ["a", "c"]
        await ear.stop()


def faulty_map(resource: Resource) -> Iterable[str]:
    return {"bella": ["a"], "luna": ["b"]}[resource.name]


def faulty_generator(resource: Resource) -> Iterable[str]:
    yield {"bella": "a", "luna": "b"}[resource.name]


def faulty_filter(resource: Animal) -> str:
    if resource.spec.colour == "odd":
        raise ValueError("hunter2")
    return resource.spec.colour


@options(lambda: {"source": Source(Animal, keys=faulty_map)})
async def test_a_map_that_fails_for_one_object_does_not_keep_the_others_from_coming(
    environment: Farm, ear: Ear
) -> None:
    with capture_logs() as logs:
        for name in ("bella", "stella", "luna"):
            await environment.store.create(animal(name))
        assert await ear.keys() == ["a", "b"]
    assert [(line["event"], line["name"]) for line in logs] == [("change not mapped to keys", "stella")]


@options(lambda: {"source": Source(Animal, keys=faulty_generator)})
async def test_a_generator_that_fails_late_keeps_nobody_else_from_coming(environment: Farm, ear: Ear) -> None:
    with capture_logs() as logs:
        for name in ("bella", "stella", "luna"):
            await environment.store.create(animal(name))
        assert await ear.keys() == ["a", "b"]
    assert [(line["event"], line["name"]) for line in logs] == [("change not mapped to keys", "stella")]


@options(lambda: {"source": Source(Animal, when=faulty_filter)})
async def test_a_faulty_filter_keeps_nobody_else_from_coming_and_counts_again_when_it_works(
    environment: Farm, ear: Ear
) -> None:
    bella = await environment.store.create(animal("bella"))
    assert await ear.keys() == ["bella"]
    with capture_logs() as logs:
        bella = await environment.store.update(recoloured(bella, "odd"))
        await environment.store.create(animal("luna"))
        assert await ear.keys() == ["luna"]
    assert [(line["event"], line["name"]) for line in logs] == [("change not mapped to keys", "bella")]
    await environment.store.update(recoloured(bella, "bay"))
    assert await ear.keys() == ["bella"]


class Look:
    """What a filter saw: equal if it saw the same, and counted while somebody remembers it."""

    remembered: ClassVar[WeakSet["Look"]] = WeakSet()

    def __init__(self, colour: str) -> None:
        self.colour = colour
        Look.remembered.add(self)


@options(lambda: {"source": Source(Animal, when=lambda resource: Look(resource.spec.colour))})
async def test_what_was_seen_of_very_many_objects_is_not_remembered_for_ever(
    environment: Farm, ear: Ear, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_MAX_STORED", 10)
    for number in range(40):
        await environment.store.create(animal(f"a{number:02}"))
    assert len(await ear.keys()) == 40
    gc.collect()
    assert len(Look.remembered) <= 11


class Troubled:
    """A store whose watch breaks and whose map meets a failing disk, now and then."""

    def __init__(self, environment: Farm) -> None:
        self._here = environment
        self.registry = environment.store.registry

    def __getattr__(self, name: str) -> Any:
        return getattr(self._here.store, name)

    async def watch(self, kind: type[Resource], *, since: str) -> AsyncIterator[Event[Resource]]:
        async for event in self._here.store.watch(kind, since=since):
            yield event
            if self._here.world.faults.fires("gone"):
                raise Gone(kind.__name__, since)
            if self._here.world.faults.fires("broken"):
                raise StorageFailing("x", "broken")


def test_no_change_goes_unheard_whatever_befalls_the_watch() -> None:
    async def scenario(world: World) -> None:
        async def slowly(resource: Resource) -> Iterable[str]:
            await world.clock.sleep(0.01)
            if world.faults.fires("map"):
                raise StorageFailing("x", "map")
            return [resource.name]

        async with farm(world) as environment:
            ear = Ear(environment, Source(Animal, keys=slowly), Troubled(environment))
            await ear.listen()
            for number in range(20):
                name = "abc"[world.randomness.randrange(3)]
                known, beginnings = await environment.animals(), ear.beginnings
                if name in known:
                    await environment.store.update(recoloured(known[name], f"colour-{number}"))
                else:
                    await environment.store.create(animal(name))
                await environment.rest(200)
                assert name in await ear.keys() or ear.beginnings > beginnings
            await ear.stop()

    with capture_logs():
        simulate(scenario, 10, rates={"gone": 0.2, "broken": 0.2, "map": 0.2})
