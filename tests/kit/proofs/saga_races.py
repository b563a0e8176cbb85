"""Two that meet: operations on one subject, a run and its impatient caller, a sleeper and recovery."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import permutations

import msgspec

from remuda.kernel.errors import RemudaError, Unavailable
from tests.kit.proofs.saga_environment import (
    FIRST,
    SECOND,
    SETTINGS,
    Process,
    Proof,
    SagaEnvironment,
    result_of,
    saga_environment,
)
from tests.kit.proofs.saga_hooks import Hook, InjectedError, Point, both, failing, hooked, meanwhile
from tests.kit.simulation.runner import World


async def meet_at(world: World, proof: Proof, at: Point) -> None:
    """Another operation on the same subject runs from start to end at some point of the first."""
    async with saga_environment(world, proof) as sagas:
        await _meet(sagas, lambda act: meanwhile(at, act))
        await assert_untouched(world, sagas)


async def meet_then_fail(world: World, proof: Proof, at: Point) -> None:
    """The first then fails, so that it is undone last; what the other made stays."""
    async with saga_environment(world, proof) as sagas:
        error = await _meet(sagas, lambda act: both(meanwhile(at, act), failing(at)))
        assert isinstance(error, InjectedError), error
        assert await sagas.phase(FIRST) == "undone"
        await assert_untouched(world, sagas)


async def meet_in_undoing(world: World, proof: Proof, at: Point) -> None:
    """The other runs while the first is being undone."""
    last = Point("do", proof.saga.steps[-1].name, "after")
    async with saga_environment(world, proof) as sagas:
        await _meet(sagas, lambda act: both(failing(last), meanwhile(at, act)))
        assert await sagas.phase(FIRST) == "undone"
        await assert_untouched(world, sagas)


async def meet_freely(world: World, proof: Proof) -> None:
    """Both run at once, in an order that the seed decides."""
    async with saga_environment(world, proof) as sagas:
        process = sagas.start()
        await asyncio.gather(process.try_to_run(), process.try_to_run(SECOND, _rival(proof)))
        await process.settle()
        await assert_untouched(world, sagas)


async def cancel_at(world: World, proof: Proof, at: Point) -> None:
    """The caller goes away, and what was begun is undone all the same."""
    async with saga_environment(world, proof) as sagas:
        clean = await sagas.observe()
        callers: list[asyncio.Task[object]] = []

        async def go_away() -> None:
            callers[0].cancel()
            await world.clock.sleep(1)

        process = sagas.start(hooked(proof.saga, meanwhile(at, go_away)))
        callers.append(asyncio.create_task(process.run()))
        await asyncio.wait(callers)
        assert callers[0].cancelled()
        await process.settle()
        assert await sagas.phase() == "undone"
        assert await sagas.observe() == clean
        await sagas.assert_closed()


async def overtake_at(world: World, proof: Proof, at: Point) -> None:
    """The process sleeps past deadline and grace, recovery undoes it, and it wakes up: it is told no success."""
    async with saga_environment(world, proof) as sagas:
        clean = await sagas.observe()
        other = sagas.start(is_only_process=False)

        async def sleep_through() -> None:
            world.clock.jump(timedelta(seconds=SETTINGS.run_s + SETTINGS.grace_s + 1))
            await other.recovery.recover()
            assert await sagas.phase() == "undone"

        process = sagas.start(hooked(proof.saga, meanwhile(at, sleep_through)), is_only_process=False)
        error = await process.try_to_run()
        assert isinstance(error, Unavailable), error
        await process.settle()
        assert await sagas.phase() == "undone"
        assert await sagas.observe() == clean
        await sagas.assert_closed()


async def assert_untouched(world: World, sagas: SagaEnvironment) -> None:
    """There is what those that are done would have made without the others, in one order or another."""
    await sagas.assert_closed()
    asked = {FIRST: sagas.proof.input, SECOND: _rival(sagas.proof)}
    done = [(name, work) for name, work in asked.items() if await sagas.phase(name) == "done"]
    seen = await sagas.observe()
    wanted = [await _result_of(world, sagas.proof, order) for order in permutations(done)]
    assert seen in wanted, f"{seen} is not one of {wanted}"


async def _meet(sagas: SagaEnvironment, hook: Callable[[Callable[[], Awaitable[None]]], Hook]) -> Exception | None:
    met: list[str] = []
    processes: list[Process] = []

    async def run_other() -> None:
        await processes[0].try_to_run(SECOND, _rival(sagas.proof))
        met.append(await sagas.phase(SECOND))

    processes.append(sagas.start(hooked(sagas.proof.saga, hook(run_other))))
    error = await processes[0].try_to_run()
    await processes[0].settle()
    assert met, "they met"
    return error


async def _result_of(world: World, proof: Proof, order: tuple[tuple[str, msgspec.Struct], ...]) -> object:
    try:
        return await result_of(world, proof, *order)
    except RemudaError:
        return None  # in this order one of them is refused, so it cannot have been this one


def _rival(proof: Proof) -> msgspec.Struct:
    return proof.rival or proof.input
