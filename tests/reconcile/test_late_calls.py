"""A call that ends late: as soon as it has ended, its key is looked at, however often that was tried in vain."""

from collections.abc import Callable, Coroutine
from typing import Any

from structlog.testing import capture_logs

from remuda.providers.calls import Calls
from remuda.reconcile.controller import Controller
from remuda.reconcile.results import Done, ReconcileContext, Result
from tests.kit.environment import provided_by
from tests.kit.sample_farm.controller import Animal, Farm, animal, farm
from tests.kit.simulation.runner import World, simulate

TAKES_S = 1000.0


def in_simulation(scenario: Callable[[Farm], Coroutine[Any, Any, None]]) -> None:
    async def run(world: World) -> None:
        async with farm(world) as environment:
            await scenario(environment)

    with capture_logs():
        simulate(run, 5)


sample = provided_by(in_simulation)


async def test_passes_that_were_refused_while_a_call_was_out_do_not_make_its_key_come_late(sample: Farm) -> None:
    clock = sample.world.clock
    calls = Calls("barn", ("build",), clock=clock, randomness=sample.world.randomness)
    ended: list[float] = []
    refused: list[float] = []
    looked: list[float] = []

    async def build() -> None:
        await clock.sleep(TAKES_S)
        ended.append(clock.monotonic())

    async def reconcile(key: str, _: ReconcileContext) -> Result:
        if ended:
            looked.append(clock.monotonic())
            return Done()
        if calls.is_unknown(key):
            refused.append(clock.monotonic())
        await calls.call(key, "build", build, deadline_s=5)
        return Done()

    driver = Controller("t", reconcile, kind=Animal, ports=sample.ports())
    calls.on_known(driver.enqueue)
    await driver.start()
    await sample.store.create(animal("bella"))
    await sample.rest(TAKES_S + 10)
    assert len(refused) > 5, "the pause had grown to minutes"
    assert len(ended) == len(looked) == 1
    assert looked[0] - ended[0] < 0.1
    await driver.stop()
    await calls.close(0)
