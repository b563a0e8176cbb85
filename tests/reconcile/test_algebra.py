"""The algebra of reconciling: where it ends depends on what is wanted, and on nothing else."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from remuda.kernel.errors import Conflict
from remuda.reconcile.ports import ControllerSettings
from remuda.reconcile.resync import ResyncSettings
from remuda.reconcile.status import STALLED
from remuda.store.objects import Metadata
from tests.kit.environment import options
from tests.kit.perturbed_watch import Perturbed
from tests.kit.sample_farm.controller import Animal, Farm, Trough, TroughSpec, animal, farm, recoloured
from tests.kit.simulation.runner import World, simulate

names = st.sampled_from(["a", "b", "c"])
colours = st.sampled_from(["bay", "grey", "white"])


@dataclass(frozen=True)
class Request:
    """Something a user does."""

    verb: str
    name: str
    value: str
    pause_s: float


requests = st.builds(
    Request,
    verb=st.sampled_from(["create", "create", "recolour", "delete", "feed"]),
    name=names,
    value=colours,
    pause_s=st.sampled_from([0.0, 0.01, 0.5, 2.0, 30.0]),
)
scripts = st.lists(requests, min_size=1, max_size=12)
seeds = st.integers(0, 2**32)
thorough = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


async def act_out(environment: Farm, script: list[Request]) -> None:
    for request in script:
        while not await is_done(environment, request):
            await environment.rest(0.1)
        await environment.rest(request.pause_s)


async def is_done(environment: Farm, request: Request) -> bool:
    """Try something, so that only the script decides what is wanted in the end: what is busy is waited for."""
    store, current = environment.store, (await environment.animals()).get(request.name)
    try:
        match request.verb:
            case "create" if current is not None:
                return not current.is_deleting
            case "create":
                await store.create(animal(request.name, request.value, trough="trough"))
            case "delete" if current is not None:
                await store.delete(Animal, request.name, uid=current.uid)
            case "recolour" if current is not None and not current.is_deleting:
                await store.update(recoloured(current, request.value))
            case "feed":
                await store.update(replace(await store.get(Trough, "trough"), spec=TroughSpec(feed=request.value)))
    except Conflict:
        return False
    return True


async def end(environment: Farm) -> dict[str, Any]:
    """Return where it ended, without what depends on the way: times, versions and generations."""
    state: dict[str, Any] = {}
    for name, each in (await environment.animals()).items():
        assert each.status.observed_generation == each.metadata.generation
        said = {c.type: (c.status, c.reason, c.message) for c in each.status.conditions}
        if said.get(STALLED, ("False",))[0] == "False":
            said.pop(STALLED, None)  # an object that waited beyond its deadline says so for ever
        state[name] = (each.spec, each.status.colour, each.metadata.finalizers, said)
    for name, stall in environment.barn.stalls.items():
        state[f"stall of {name}"] = (stall.colour, stall.feed)
    return state


async def wanted(environment: Farm) -> dict[str, tuple[str, str]]:
    """Return what should be in the barn."""
    feed = (await environment.store.get(Trough, "trough")).spec.feed
    return {name: (each.spec.colour, feed) for name, each in (await environment.animals()).items()}


async def assert_settled(environment: Farm) -> None:
    """Fail unless the barn is as wanted, and everything says so."""
    assert {name: (stall.colour, stall.feed) for name, stall in environment.barn.stalls.items()} == await wanted(
        environment
    )
    for each in (await environment.animals()).values():
        assert not each.is_deleting
        assert {c.type: c.status for c in each.status.conditions}["Available"] == "True"


def ending(seed: int, scenario: Callable[[Farm], Coroutine[Any, Any, None]]) -> dict[str, Any]:
    """Run a scenario on an empty farm with a full trough and return where it ended."""
    states: list[dict[str, Any]] = []

    async def run(world: World) -> None:
        async with farm(world) as environment:
            await environment.store.create(Trough(metadata=Metadata(name="trough")))
            await scenario(environment)
            await environment.rest()
            await assert_settled(environment)
            states.append(await end(environment))

    simulate(run, [seed])
    return states[-1]


def without_trouble(script: list[Request]) -> Callable[[Farm], Coroutine[Any, Any, None]]:
    async def scenario(environment: Farm) -> None:
        await environment.drive()
        await act_out(environment, script)

    return scenario


@given(scripts, seeds)
@thorough
def test_doubling_and_shuffling_events_leads_to_the_same_end(script: list[Request], seed: int) -> None:
    async def scenario(environment: Farm) -> None:
        await environment.drive(store=Perturbed(environment.store, seed, double=0.4))
        await act_out(environment, script)

    async def shuffled(environment: Farm) -> None:
        store = Perturbed(environment.store, seed, shuffle=0.4, double=0.2)
        driver = await environment.drive(store=store)
        await act_out(environment, script)
        await environment.rest()
        await driver.resync()  # an event that is kept back until another comes is lost if none does

    expected = ending(0, without_trouble(script))
    assert ending(seed, scenario) == expected
    assert ending(seed, shuffled) == expected


LATE = [Request("create", "a", "bay", 2.0), Request("create", "b", "bay", 2.0)]


@given(scripts, seeds)
@example([*LATE, Request("delete", "a", "bay", 0.0), Request("create", "a", "bay", 0.0)], 981)
@thorough
def test_events_that_are_lost_are_made_up_for_by_a_full_scan(script: list[Request], seed: int) -> None:
    async def scenario(environment: Farm) -> None:
        driver = await environment.drive(store=Perturbed(environment.store, seed, drop=0.5))
        await act_out(environment, script)
        await environment.rest()
        await driver.resync()
        await environment.rest()
        await driver.resync()

    assert ending(seed, scenario) == ending(0, without_trouble(script))


@given(scripts, seeds)
@thorough
def test_a_second_pass_over_what_is_settled_writes_nothing_and_a_full_scan_finds_nothing(
    script: list[Request], seed: int
) -> None:
    async def scenario(environment: Farm) -> None:
        driver = await environment.drive(settings=ControllerSettings(resync=ResyncSettings(interval_s=20)))
        await act_out(environment, script)
        await environment.rest()
        versions, calls, passes = (
            await environment.versions(),
            list(environment.barn.calls),
            len(environment.notes.passes),
        )
        count = await driver.resync()
        await environment.rest(10)
        assert len(environment.notes.passes) >= passes + count
        assert (await environment.versions(), environment.barn.calls) == (versions, calls)
        assert environment.notes.finds == []

    ending(seed, scenario)


@given(scripts, seeds)
@thorough
def test_the_way_there_does_not_matter(script: list[Request], seed: int) -> None:
    feeds: list[str] = []
    survivors: list[Animal] = []

    async def the_long_way(environment: Farm) -> None:
        await environment.drive()
        await act_out(environment, script)
        await environment.rest()
        feeds.append((await environment.store.get(Trough, "trough")).spec.feed)
        survivors.extend((await environment.animals()).values())

    async def the_short_way(environment: Farm) -> None:
        await environment.store.update(
            replace(await environment.store.get(Trough, "trough"), spec=TroughSpec(feed=feeds[-1]))
        )
        for survivor in survivors:
            await environment.store.create(Animal(metadata=Metadata(name=survivor.name), spec=survivor.spec))
        await environment.drive()

    assert ending(seed, the_long_way) == ending(seed, the_short_way)


@given(scripts, seeds)
@thorough
def test_two_that_both_believe_to_lead_do_no_harm(script: list[Request], seed: int) -> None:
    async def scenario(environment: Farm) -> None:
        await environment.drive()
        await environment.drive()
        await act_out(environment, script)
        await environment.rest()
        built = [name for verb, name in environment.barn.calls if verb == "build"]
        removed = [name for verb, name in environment.barn.calls if verb == "remove"]
        assert all(built.count(name) <= script_creates(script, name) for name in built)
        assert set(removed) <= set(built)

    assert ending(seed, scenario) == ending(0, without_trouble(script))


def script_creates(script: list[Request], name: str) -> int:
    return sum(request.verb == "create" and request.name == name for request in script)


@given(scripts, seeds, st.lists(st.floats(0.001, 3), min_size=1, max_size=8))
@thorough
def test_a_controller_that_is_killed_in_the_middle_and_restarts_comes_to_the_same_end(
    script: list[Request], seed: int, lives_s: list[float]
) -> None:
    async def scenario(environment: Farm) -> None:
        async def restart() -> None:
            for life_s in lives_s:
                driver = await environment.drive(settings=ControllerSettings(grace_s=0))
                await environment.rest(life_s)
                await driver.stop()
            await environment.drive()

        restarting = environment.world.loop.create_task(restart())
        await act_out(environment, script)
        await restarting

    assert ending(seed, scenario) == ending(0, without_trouble(script))


@options(seeds=20, rates={"barn rejects": 0.3, "barn done but silent": 0.3})
async def test_a_barn_that_rejects_and_stays_silent_only_delays_it(world: World) -> None:
    script = [
        Request("create", "a", "bay", 1),
        Request("create", "b", "grey", 3),
        Request("feed", "", "oats", 5),
        Request("recolour", "a", "white", 0.5),
        Request("delete", "b", "", 2),
        Request("create", "c", "bay", 0),
    ]
    async with farm(world) as environment:
        await environment.store.create(Trough(metadata=Metadata(name="trough")))
        driver = await environment.drive()
        await act_out(environment, script)
        await environment.rest(30)
        world.faults.stop()
        await environment.rest(1000)
        await assert_settled(environment)
        await driver.resync()
        await environment.rest()
        assert environment.notes.finds == []
