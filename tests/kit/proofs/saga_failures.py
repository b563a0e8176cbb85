"""Steps and undos that fail, or happen twice."""

from remuda.operations.kinds import attempt_id
from tests.kit.proofs.saga_environment import FIRST, Proof, result_of, saga_environment
from tests.kit.proofs.saga_hooks import InjectedError, Point, both, failing, hooked, repeating
from tests.kit.simulation.runner import World


async def run_clean(world: World, proof: Proof) -> None:
    """It is done, shows in what there is, and costs two writes beyond its steps."""
    done, clean = await result_of(world, proof, (FIRST, proof.input)), await result_of(world, proof)
    assert done != clean, "observe tells done from clean"
    async with saga_environment(world, proof) as sagas:
        process = sagas.start()
        operation = await process.run()
        assert (operation.name, operation.phase) == (FIRST, "done")
        assert process.fuse.by_kind["Operation"] == 2
        assert await sagas.observe() == done
        await sagas.assert_closed()


async def repeat_step(world: World, proof: Proof, at: Point) -> None:
    """A step that is done twice is done."""
    done = await result_of(world, proof, (FIRST, proof.input))
    async with saga_environment(world, proof) as sagas:
        await sagas.start(hooked(proof.saga, repeating(at))).run()
        assert await sagas.observe() == done
        await sagas.assert_closed()


async def fail_step(world: World, proof: Proof, at: Point) -> None:
    """A step that fails, with or without its effect, leaves nothing, is told as it was, and costs three writes."""
    async with saga_environment(world, proof) as sagas:
        clean = await sagas.observe()
        process = sagas.start(hooked(proof.saga, failing(at)))
        error = await process.try_to_run()
        assert isinstance(error, InjectedError), error
        assert await sagas.observe() == clean
        assert await sagas.phase() == "undone"
        assert process.fuse.by_kind["Operation"] == 3
        await sagas.assert_closed()


async def repeat_undo(world: World, proof: Proof, at: Point) -> None:
    """An undo that happens twice leaves nothing either."""
    last = Point("do", proof.saga.steps[-1].name, "after")
    async with saga_environment(world, proof) as sagas:
        clean = await sagas.observe()
        await sagas.start(hooked(proof.saga, both(failing(last), repeating(at)))).try_to_run()
        assert await sagas.observe() == clean
        await sagas.assert_closed()


async def fail_undo(world: World, proof: Proof, at: Point) -> None:
    """An undo that fails once is tried again, and the caller hears what the step said."""
    last = Point("do", proof.saga.steps[-1].name, "after")
    async with saga_environment(world, proof) as sagas:
        clean = await sagas.observe()
        process = sagas.start(hooked(proof.saga, failing(last, at, once=True)))
        error = await process.try_to_run()
        assert str(error) == str(last)
        await process.settle()
        assert await sagas.observe() == clean
        assert await sagas.phase() == "undone"
        await sagas.assert_closed()


async def repeat_request(world: World, proof: Proof) -> None:
    """A request that is sent again after it was done runs nothing."""
    async with saga_environment(world, proof) as sagas:
        process = sagas.start()
        done, seen, version = await process.run(), await sagas.observe(), await sagas.version()
        assert await process.run() == done
        await process.settle()
        assert await process.run() == done
        assert (await sagas.observe(), await sagas.version()) == (seen, version)


async def repeat_request_after_failure(world: World, proof: Proof, at: Point) -> None:
    """A request that is sent again after it failed is an attempt of its own."""
    second = attempt_id(FIRST, 2)
    done = await result_of(world, proof, (second, proof.input))
    async with saga_environment(world, proof) as sagas:
        process = sagas.start(hooked(proof.saga, failing(at)))
        await process.try_to_run()
        operation = await process.run()
        assert (operation.name, operation.spec.request) == (second, FIRST)
        assert await sagas.observe() == done
        await sagas.assert_closed()
