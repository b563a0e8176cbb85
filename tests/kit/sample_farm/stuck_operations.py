"""Operations whose undo fails until a test allows it."""

from remuda.operations.reporter import Reporter
from tests.kit.proofs.saga_environment import Process, SagaEnvironment
from tests.kit.proofs.saga_hooks import Again, InjectedError, Point, both, failing, hooked
from tests.kit.sample_farm.saga import PITCH

LAST = Point("do", "pitch-tent", "after")
POLE = Point("undo", "cut-pole", "before")


class Jam:
    """Keeps an undo from working until it is loosened."""

    def __init__(self) -> None:
        self.is_loose = False
        self.tries = 0

    async def __call__(self, point: Point, _again: Again) -> None:
        if point == POLE:
            self.tries += 1
            if not self.is_loose:
                raise InjectedError(str(point))


async def get_stuck(sagas: SagaEnvironment, jam: Jam, *, reporter: Reporter | None = None) -> Process:
    process = sagas.start(hooked(PITCH, both(failing(LAST), jam)), reporter=reporter)
    error = await process.try_to_run()
    assert str(error) == str(LAST), "the caller hears what the step said"
    while (await sagas.phase()) != "stuck":
        await sagas.world.clock.sleep(0.1)
    return process
