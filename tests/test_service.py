"""Service app: the order in which a service is started and stopped, and its readiness."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from remuda.http.audit import FindOwner
from remuda.http.routes import Table
from remuda.operations.saga import AnyBoundSaga
from remuda.reconcile.controller import Controller
from remuda.service import ServiceApp, ServicePorts
from remuda.store.background import BackgroundTask
from tests.kit.resource_api import ByName, with_machinery
from tests.kit.simulation.runner import World, simulate
from tests.kit.simulation.store import SEALER, open_simulated

STARTED = ["seed", "background built", "controller started", "background runs"]
STOPPED = ["controller stopped", "closed"]


@dataclass
class Recorded:
    """A controller that records its start and stop."""

    steps: list[str]
    name: str = "controller"
    is_synced: bool = False

    async def start(self) -> None:
        self.steps.append("controller started")

    async def stop(self) -> None:
        self.steps.append("controller stopped")


class SampleApp(ServiceApp[ServicePorts, dict[str, object]]):
    """A service with one controller and one background task, which records what is done to it."""

    table = Table("sample", title="Sample", description="No routes.", routes=[])

    def __init__(self, ports: ServicePorts) -> None:
        self.steps: list[str] = []
        self.controller = Recorded(self.steps)
        super().__init__(ports, ByName(), url="https://sample.example.com")

    def sagas(self) -> Sequence[AnyBoundSaga]:
        return ()

    def build_services(self) -> dict[str, object]:
        return {"operations": self.operations}

    def owners(self) -> Mapping[str, FindOwner]:
        return {}

    def controllers(self) -> Sequence[Controller]:
        return (cast("Controller", self.controller),)

    def background(self) -> Iterator[tuple[str, BackgroundTask]]:
        self.steps.append("background built")
        yield "sample", self._run

    async def _run(self) -> None:
        self.steps.append("background runs")

    async def seed(self) -> None:
        self.steps.append("seed")

    async def close(self) -> None:
        self.steps.append("closed")


async def _started_and_stopped(world: World) -> None:
    store = open_simulated(world, with_machinery(()))
    ports = ServicePorts(store=store, log=store, clock=world.clock, randomness=world.randomness, sealer=SEALER)
    try:
        app = SampleApp(ports)
        assert app.services == {"operations": app.operations}
        for _ in range(2):  # an app can be started again
            app.steps.clear()
            await app.start()
            await world.clock.sleep(1)
            assert app.steps == STARTED
            app.steps.clear()
            await app.stop()
            assert app.steps == STOPPED
        assert ports.closing.is_set()
    finally:
        await store.close()


async def _ready(world: World) -> None:
    store = open_simulated(world, with_machinery(()))
    try:
        app = SampleApp(
            ServicePorts(store=store, log=store, clock=world.clock, randomness=world.randomness, sealer=SEALER)
        )
        ((name, reason),) = app.check()
        assert (name, bool(reason)) == ("controller", True)
        app.controller.is_synced = True
        assert list(app.check()) == []
    finally:
        await store.close()


def test_background_tasks_are_built_before_controllers_start_and_stop_after_them() -> None:
    simulate(_started_and_stopped, 1)


def test_a_service_is_ready_when_its_controllers_have_begun() -> None:
    simulate(_ready, 1)
