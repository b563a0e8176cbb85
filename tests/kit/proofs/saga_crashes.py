"""A process that dies before or after each of its durable writes, and another that recovers what it left."""

from itertools import count

from remuda.operations.saga import AnySaga
from tests.kit.proofs.crashing_store import CrashError, Fuse, Moment
from tests.kit.proofs.saga_environment import FIRST, Process, Proof, SagaEnvironment, result_of, saga_environment
from tests.kit.proofs.saga_hooks import Point, failing, hooked
from tests.kit.simulation.runner import World, simulate


def crash_everywhere(proof: Proof, moment: Moment, fails_at: Point | None = None) -> None:
    """Crash at write 1, 2, 3, ... until a run ends without a crash."""
    saga = proof.saga if fails_at is None else hooked(proof.saga, failing(fails_at))
    for number in count(1):
        crashed: list[bool] = []

        async def scenario(world: World, number: int = number, crashed: list[bool] = crashed) -> None:
            crashed.append(await _crash_once(world, proof, saga, Fuse(number, moment)))

        simulate(scenario, [number])
        if not crashed[0]:
            assert number > 2, "there were writes to crash at"
            return


def crash_in_recovery(proof: Proof, moment: Moment) -> None:
    """Crash after each write, and then again at each write of the recovery from it."""
    for first in count(1):
        crashes = 0
        for second in count(1):
            blown: list[int] = []

            async def scenario(
                world: World, first: int = first, second: int = second, blown: list[int] = blown
            ) -> None:
                blown.append(await _crash_twice(world, proof, Fuse(first, "after"), Fuse(second, moment)))

            simulate(scenario, [first])
            crashes = max(crashes, blown[0])
            if blown[0] < 2:
                break
        if crashes == 0:
            return


async def _crash_once(world: World, proof: Proof, saga: AnySaga, fuse: Fuse) -> bool:
    done = await result_of(world, proof, (FIRST, proof.input))
    async with saga_environment(world, proof) as sagas:
        clean = await sagas.observe()
        was_told = await _run_until_crash(sagas.start(saga, fuse))
        if fuse.has_blown:
            await _restart(sagas)
        await _assert_whole(sagas, done=done, clean=clean)
        assert not was_told or await sagas.phase() == "done", "what was told is so"
        return fuse.has_blown


async def _crash_twice(world: World, proof: Proof, first: Fuse, second: Fuse) -> int:
    done = await result_of(world, proof, (FIRST, proof.input))
    async with saga_environment(world, proof) as sagas:
        clean = await sagas.observe()
        await _run_until_crash(sagas.start(proof.saga, first))
        if first.has_blown:
            await _restart(sagas, second)
        if second.has_blown:
            await _restart(sagas)
        await _assert_whole(sagas, done=done, clean=clean)
        return first.has_blown + second.has_blown


async def _run_until_crash(process: Process) -> bool:
    """Run; return whether the caller was told that it is done."""
    try:
        error = await process.try_to_run()
        await process.settle()
    except CrashError:
        return False
    return error is None


async def _restart(sagas: SagaEnvironment, fuse: Fuse | None = None) -> None:
    """Start again after a crash and recover, unless the next fuse blows."""
    await sagas.crash()
    process = sagas.start(fuse=fuse)
    try:
        await process.recovery.recover()
        await process.settle()
    except CrashError:
        return


async def _assert_whole(sagas: SagaEnvironment, *, done: object, clean: object) -> None:
    await sagas.assert_closed()
    phase = await sagas.phase()
    assert phase in {"done", "undone"}
    seen = await sagas.observe()
    assert seen == (done if phase == "done" else clean), f"it is {phase}, and there is {seen}"
