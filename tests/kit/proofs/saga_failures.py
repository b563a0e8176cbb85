"""Steps and undos that fail, or happen twice."""

from remuda.operations.kinds import attempt_id
from tests.kit.proofs.saga_environment import FIRST, Proof, result_of, staged
from tests.kit.proofs.saga_hooks import InjectedError, Point, both, failing, hooked, repeating
from tests.kit.simulation.runner import World


async def run_clean(world: World, proof: Proof) -> None:
    """It is done, shows in what there is, and costs two writes beyond its steps."""
    done, clean = await result_of(world, proof, (FIRST, proof.input)), await result_of(world, proof)
    assert done != clean, "observe tells done from clean"
    async with staged(world, proof) as stage:
        process = stage.start()
        operation = await process.run()
        assert (operation.name, operation.phase) == (FIRST, "done")
        assert process.fuse.by_kind["Operation"] == 2
        assert await stage.observe() == done
        await stage.assert_closed()


async def repeat_step(world: World, proof: Proof, at: Point) -> None:
    """A step that is done twice is done."""
    done = await result_of(world, proof, (FIRST, proof.input))
    async with staged(world, proof) as stage:
        await stage.start(hooked(proof.saga, repeating(at))).run()
        assert await stage.observe() == done
        await stage.assert_closed()


async def fail_step(world: World, proof: Proof, at: Point) -> None:
    """A step that fails, with or without its effect, leaves nothing, is told as it was, and costs three writes."""
    async with staged(world, proof) as stage:
        clean = await stage.observe()
        process = stage.start(hooked(proof.saga, failing(at)))
        error = await process.try_to_run()
        assert isinstance(error, InjectedError), error
        assert await stage.observe() == clean
        assert await stage.phase() == "undone"
        assert process.fuse.by_kind["Operation"] == 3
        await stage.assert_closed()


async def repeat_undo(world: World, proof: Proof, at: Point) -> None:
    """An undo that happens twice leaves nothing either."""
    last = Point("do", proof.saga.steps[-1].name, "after")
    async with staged(world, proof) as stage:
        clean = await stage.observe()
        await stage.start(hooked(proof.saga, both(failing(last), repeating(at)))).try_to_run()
        assert await stage.observe() == clean
        await stage.assert_closed()


async def fail_undo(world: World, proof: Proof, at: Point) -> None:
    """An undo that fails once is tried again, and the caller hears what the step said."""
    last = Point("do", proof.saga.steps[-1].name, "after")
    async with staged(world, proof) as stage:
        clean = await stage.observe()
        process = stage.start(hooked(proof.saga, failing(last, at, once=True)))
        error = await process.try_to_run()
        assert str(error) == str(last)
        await process.settle()
        assert await stage.observe() == clean
        assert await stage.phase() == "undone"
        await stage.assert_closed()


async def repeat_request(world: World, proof: Proof) -> None:
    """A request that is sent again after it was done runs nothing."""
    async with staged(world, proof) as stage:
        process = stage.start()
        done, seen, version = await process.run(), await stage.observe(), await stage.version()
        assert await process.run() == done
        await process.settle()
        assert await process.run() == done
        assert (await stage.observe(), await stage.version()) == (seen, version)


async def repeat_request_after_failure(world: World, proof: Proof, at: Point) -> None:
    """A request that is sent again after it failed is an attempt of its own."""
    second = attempt_id(FIRST, 2)
    done = await result_of(world, proof, (second, proof.input))
    async with staged(world, proof) as stage:
        process = stage.start(hooked(proof.saga, failing(at)))
        await process.try_to_run()
        operation = await process.run()
        assert (operation.name, operation.spec.request) == (second, FIRST)
        assert await stage.observe() == done
        await stage.assert_closed()
