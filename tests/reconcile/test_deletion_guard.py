"""Mass deletion that nobody asked for stops, and asks."""

import asyncio

import msgspec

from remuda.kernel.errors import Conflict
from remuda.reconcile.deletion_guard import PROJECT_LABEL, DeletionGuard, DeletionGuardSettings, DeletionLimit
from remuda.reconcile.kinds import EVERYTHING, DeletionGuardRecord
from remuda.store.objects import Metadata
from remuda.store.sqlite.store import SqliteStore
from tests.kit.environment import options, provided_by
from tests.kit.sample_farm.controller import ANIMAL, HERD, Animal, Farm, Herd, animal, farm
from tests.kit.sample_farm.deletion_guard import allowed, breaker, in_simulation, populate, run_of
from tests.kit.simulation.runner import World

sample = provided_by(in_simulation)


async def test_more_than_a_share_of_a_project_trips_it_and_other_projects_go_on(sample: Farm) -> None:
    guard = breaker(sample)
    many, few, nobodys = [await populate(sample, *of) for of in (("p", 40), ("q", 3), ("", 20))]
    assert await allowed(guard, sample, many) == 8
    assert await guard.tripped() == ["p"]
    assert await allowed(guard, sample, few) == 3
    assert await allowed(guard, sample, nobodys) == 4
    assert sorted(await guard.tripped()) == ["", "p"]
    assert sample.notes.trips[-1] == 2


async def test_what_is_marked_goes_however_many_there_are_and_does_not_count(sample: Farm) -> None:
    guard = breaker(sample)
    herd = await populate(sample, "p", 40)
    marked = [await sample.store.delete(Animal, each.name, uid=each.uid) for each in herd[:30]]
    assert await allowed(guard, sample, [each for each in marked if each]) == 30
    assert await allowed(guard, sample, herd[30:]) == 8
    assert await allowed(guard, sample, [each for each in marked if each]) == 30


async def test_a_mark_on_any_owner_is_a_request_too(sample: Farm) -> None:
    herd = await sample.store.create(Herd(metadata=Metadata(name="herd", finalizers=("a.example.org/x",))))
    labels = {PROJECT_LABEL: "p"}
    mare = await sample.store.create(
        animal("mare", labels=labels, owner=HERD.owner(herd), finalizers=("a.example.org/x",))
    )
    foals = [
        await sample.store.create(
            animal(f"foal-{n}", labels=labels, owner=ANIMAL.owner(mare), finalizers=("a.example.org/x",))
        )
        for n in range(20)
    ]
    guard = breaker(sample)
    assert await allowed(guard, sample, foals) == 4
    await sample.store.delete(Herd, "herd", uid=herd.uid)
    # What the controller has read may be older than the mark: the owners are read again.
    assert await allowed(guard, sample, foals) == 20


async def test_an_owner_of_another_incarnation_is_no_owner(sample: Farm) -> None:
    herd = await sample.store.create(Herd(metadata=Metadata(name="herd", finalizers=("a.example.org/x",))))
    stranger = msgspec.structs.replace(HERD.owner(herd), uid="another")
    orphans = await populate(sample, "p", 20)
    orphans = [
        msgspec.structs.replace(each, metadata=msgspec.structs.replace(each.metadata, owner_references=(stranger,)))
        for each in orphans
    ]
    await sample.store.delete(Herd, "herd", uid=herd.uid)
    assert await allowed(breaker(sample), sample, orphans) == 4


async def test_asking_again_for_the_same_object_counts_once(sample: Farm) -> None:
    guard, herd = breaker(sample), await populate(sample, "p", 10)
    for _ in range(5):
        assert await allowed(guard, sample, herd[:3]) == 3


async def test_what_was_destroyed_long_ago_no_longer_counts(sample: Farm) -> None:
    guard, herd = breaker(sample), await populate(sample, "p", 10)
    for number in range(0, 9, 3):
        assert await allowed(guard, sample, herd[number : number + 3]) == 3
        await sample.rest(601)


async def test_a_restart_resets_neither_the_count_nor_the_trip(sample: Farm) -> None:
    herd = await populate(sample, "p", 40)
    for each in herd[:8]:
        assert await allowed(breaker(sample), sample, [each]) == 1
    assert await allowed(breaker(sample), sample, herd[8:]) == 0
    await sample.rest(100_000)
    assert await allowed(breaker(sample), sample, herd[20:]) == 0
    sample.notes.trips.clear()
    await breaker(sample).report()
    assert sample.notes.trips == [1]


async def test_an_operator_releases_it_and_it_counts_from_nothing(sample: Farm) -> None:
    guard, herd = breaker(sample), await populate(sample, "p", 40)
    assert await allowed(guard, sample, herd[:20]) == 8
    await guard.resume("p")
    assert await guard.tripped() == []
    assert sample.notes.trips[-1] == 0
    assert await allowed(guard, sample, herd[20:]) == 8
    await guard.resume("no such project")


async def test_it_has_an_upper_bound_whatever_the_share(sample: Farm) -> None:
    settings = DeletionGuardSettings(group=DeletionLimit(share=1.0, most=5))
    assert await allowed(breaker(sample, settings), sample, await populate(sample, "p", 40)) == 5


@options(seeds=10)
async def test_two_that_count_at_once_do_not_miss_each_other(world: World) -> None:
    async with farm(world) as environment:
        herd, granted = await populate(environment, "p", 40), 0

        async def destroy(guard: DeletionGuard, mine: list[Animal]) -> None:
            nonlocal granted
            for each in mine:
                while True:
                    try:
                        granted += await guard.admit_deletion(each, run_of(environment)) is None
                        break
                    except Conflict:
                        await world.clock.sleep(world.randomness.uniform(0, 0.1))

        guards = [breaker(environment), breaker(environment)]
        tasks = [world.loop.create_task(destroy(guard, herd[n::2])) for n, guard in enumerate(guards)]
        for task in tasks:
            await task
        records = {each.spec.group: each for each in (await environment.store.list(DeletionGuardRecord)).items}
        assert len(records["p"].spec.deleted) == 8
        assert 6 <= granted <= 8, "one of each may have been counted, and then stopped by the other's trip"


async def test_workers_of_one_process_take_turns_and_do_not_disturb_each_other(sample: Farm) -> None:
    guard, herds = breaker(sample), [await populate(sample, project, 3) for project in "pqr"]
    asking = [asyncio.create_task(guard.admit_deletion(each, run_of(sample))) for herd in herds for each in herd]
    assert [await verdict for verdict in asking] == [None] * 9


async def test_it_says_in_the_timeline_what_it_released_and_what_it_stopped(sample: Farm) -> None:
    guard, herd = breaker(sample), await populate(sample, "p", 4)
    await allowed(guard, sample, herd)
    assert isinstance(sample.store, SqliteStore)
    events = []
    for each in herd:
        page = await sample.store.read("timeline", f"{ANIMAL.qualified}/{each.name}")
        events.append([msgspec.json.decode(entry.data)["event"] for entry in page.entries])
    assert events == [["DeletedWithoutRequest"]] * 3 + [["MassDeletionStopped"]]
    records = (await sample.store.list(DeletionGuardRecord)).items
    assert {each.spec.group: len(each.spec.deleted) for each in records} == {"p": 3, EVERYTHING: 3}
