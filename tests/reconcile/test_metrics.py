"""What can be seen from outside."""

from prometheus_client import CollectorRegistry

from remuda.reconcile.controller import Controller
from remuda.reconcile.deletion_guard import DeletionGuard
from remuda.reconcile.ports import ReconcilePorts
from remuda.reconcile.reporter import RECONCILE_RESULTS, PrometheusReporter
from remuda.reconcile.results import Done, Failed, ReconcileContext, Result
from tests.kit.environment import options
from tests.kit.sample_farm.controller import Animal, animal, farm
from tests.kit.simulation.runner import World

COUNTERS = ("retries", "resynced", "resync_finds")
GAUGES = ("queue_depth", "queue_oldest_seconds")


@options(seeds=1)
async def test_every_label_value_is_there_from_the_start(world: World) -> None:
    async with farm(world) as environment:
        registry = CollectorRegistry()
        ports = ReconcilePorts(store=environment.store, clock=world.clock, reporter=PrometheusReporter(registry))

        async def reconcile(_key: str, _run: ReconcileContext) -> Result:
            return Done()

        Controller("animals", reconcile, kind=Animal, ports=ports)
        for outcome in RECONCILE_RESULTS:
            labels = {"controller": "animals", "result": outcome}
            assert registry.get_sample_value("remuda_reconcile_runs_total", labels) == 0
        for name in (*(f"{counter}_total" for counter in COUNTERS), *GAUGES, "seconds_count"):
            assert registry.get_sample_value(f"remuda_reconcile_{name}", {"controller": "animals"}) == 0
        orphans = {"controller": "orphans"}
        assert registry.get_sample_value("remuda_reconcile_deletion_guard_tripped", orphans) is None
        DeletionGuard("orphans", Animal, ports=ports)
        assert registry.get_sample_value("remuda_reconcile_deletion_guard_tripped", orphans) == 0


@options(seeds=1)
async def test_what_happens_is_counted(world: World) -> None:
    async with farm(world) as environment:
        registry = CollectorRegistry()
        reporter = PrometheusReporter(registry)
        ports = ReconcilePorts(
            store=environment.store, clock=world.clock, randomness=world.randomness, reporter=reporter
        )
        results: list[Result] = [Failed("No", "no"), Done()]
        acts = False

        async def reconcile(_: str, run: ReconcileContext) -> Result:
            await world.clock.sleep(0.3)
            run.acted = acts
            return results.pop(0) if results else Done()

        def sample(name: str, **labels: str) -> float | None:
            return registry.get_sample_value(f"remuda_reconcile_{name}", {"controller": "animals"} | labels)

        driver = Controller("animals", reconcile, kind=Animal, ports=ports)
        await driver.start()
        await environment.store.create(animal("bella"))
        await environment.rest(30)
        acts = True
        await driver.resync()
        await environment.rest(30)
        await driver.stop()
        assert (sample("runs_total", result="failed"), sample("runs_total", result="done")) == (1, 2)
        assert (sample("retries_total"), sample("resync_finds_total")) == (1, 1)
        assert (sample("seconds_count"), sample("seconds_bucket", le="0.1")) == (3, 0)
        reporter.tripped("animals", 2)
        reporter.leading("region", True)  # noqa: FBT003  as the port has it
        assert sample("deletion_guard_tripped") == 2
        assert registry.get_sample_value("remuda_reconcile_leading", {"lease": "region"}) == 1


@options(seeds=1)
async def test_the_queue_can_be_seen_while_it_waits(world: World) -> None:
    async with farm(world) as environment:
        registry = CollectorRegistry()
        ports = ReconcilePorts(store=environment.store, clock=world.clock, reporter=PrometheusReporter(registry))

        async def reconcile(_key: str, _run: ReconcileContext) -> Result:
            await world.clock.sleep(20)
            return Done()

        driver = Controller("animals", reconcile, kind=Animal, ports=ports)
        await driver.start()
        for number in range(11):
            await environment.store.create(animal(f"a{number}"))
        await environment.rest(5)
        labels = {"controller": "animals"}
        assert registry.get_sample_value("remuda_reconcile_queue_depth", labels) == 3
        oldest = registry.get_sample_value("remuda_reconcile_queue_oldest_seconds", labels)
        assert oldest is not None
        assert 4 < oldest < 6
        await driver.stop()
