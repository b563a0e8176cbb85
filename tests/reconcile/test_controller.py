"""The driver: whatever a reconciler does, the others go on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import structlog
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from remuda.kernel.backoff import Backoff
from remuda.kernel.errors import Conflict, StorageFull
from remuda.reconcile.controller import Controller, Reconcile
from remuda.reconcile.ports import ControllerSettings
from remuda.reconcile.results import Blocked, Done, Failed, ReconcileContext, Requeue, Result
from remuda.reconcile.resync import ResyncSettings
from remuda.reconcile.sources import Source
from remuda.store.contract import Event, Page
from remuda.store.objects import Resource
from tests.kit.environment import options, provided_by
from tests.kit.sample_farm.controller import Animal, Farm, Herd, animal, recoloured
from tests.kit.sample_farm.driver import Script, in_simulation

sample = provided_by(in_simulation)


@asynccontextmanager
async def driving(
    farm: Farm, reconcile: Reconcile, settings: ControllerSettings | None = None
) -> AsyncIterator[Controller]:
    driver = Controller("t", reconcile, kind=Animal, ports=farm.ports(), settings=settings)
    await driver.start()
    try:
        yield driver
    finally:
        await driver.stop()


@options(seeds=2)
async def test_everything_is_looked_at_when_control_begins(sample: Farm) -> None:
    for number in range(120):
        await sample.store.create(animal(f"a{number}"))
    seen: list[str] = []

    async def reconcile(key: str, run: ReconcileContext) -> Result:
        assert run.cause == "start"
        seen.append(key)
        return Done()

    async with driving(sample, reconcile) as driver:
        await sample.rest()
        assert driver.is_idle
    assert sorted(seen) == sorted(f"a{number}" for number in range(120))


async def test_again_is_woken_after_its_time_and_done_is_not(sample: Farm) -> None:
    script = Script(sample, Requeue(7), Requeue(3))
    async with driving(sample, script):
        await sample.store.create(animal("bella"))
        await sample.rest(500)
    assert script.pauses() == pytest.approx([7, 3], abs=0.1)


async def test_a_failure_is_tried_again_after_growing_pauses(sample: Farm) -> None:
    script = Script(sample, *[Failed("No", "no")] * 12)
    async with driving(sample, script, ControllerSettings(backoff=Backoff(first_s=1, longest_s=60))):
        await sample.store.create(animal("bella"))
        await sample.rest(600)
    for number, pause in enumerate(script.pauses()):
        longest = min(2**number, 60)
        assert longest / 2 <= pause <= longest + 0.1
    assert len(script.times) == 13
    assert len(sample.notes.retries) == 12


async def test_a_blocked_key_is_looked_at_now_and_then(sample: Farm) -> None:
    script = Script(sample, *[Blocked("NoHay", "no hay")] * 5)
    async with driving(sample, script, ControllerSettings(blocked_every_s=60)):
        await sample.store.create(animal("bella"))
        await sample.rest(1000)
    assert [54 <= pause <= 67 for pause in script.pauses()] == [True] * 5


@pytest.mark.parametrize("error", [ValueError("hunter2"), asyncio.CancelledError("hunter2"), TimeoutError("hunter2")])
async def test_what_a_reconciler_raises_is_told_in_the_log_and_the_others_go_on(
    sample: Farm, error: BaseException
) -> None:
    seen: list[str] = []

    async def reconcile(key: str, _: ReconcileContext) -> Result:
        seen.append(key)
        if key == "bad":
            raise error
        return Done()

    with capture_logs() as logs:
        async with driving(sample, reconcile, ControllerSettings(workers=1)):
            await sample.store.create(animal("bad"))
            await sample.rest(10)
            await sample.store.create(animal("good"))
            await sample.rest(10)
    assert "good" in seen
    failures = [line for line in logs if line["event"] == "reconcile failed"]
    assert len(failures) == seen.count("bad") > 1
    assert all(line["exc_info"] and line["key"] == "bad" for line in failures)


async def test_a_conflict_is_tried_again_soon_and_without_noise(sample: Farm) -> None:
    script = Script(sample, Conflict("Animal", "bella"), Conflict("Animal", "bella"))
    with capture_logs() as logs:
        async with driving(sample, script):
            await sample.store.create(animal("bella"))
            await sample.rest(10)
    assert len(script.times) == 3
    assert max(script.pauses()) < 0.1
    assert logs == []


async def test_trouble_of_the_store_is_waited_out(sample: Farm) -> None:
    script = Script(sample, StorageFull("x"), StorageFull("x"))
    with capture_logs() as logs:
        async with driving(sample, script):
            await sample.store.create(animal("bella"))
            await sample.rest(10)
    assert len(script.times) == 3
    assert [line["log_level"] for line in logs] == ["warning", "warning"]
    assert [outcome for _, _, outcome in sample.notes.passes] == ["unavailable", "unavailable", "done"]


async def test_a_pass_that_does_not_end_is_cut_off_at_its_deadline(sample: Farm) -> None:
    began: list[float] = []

    async def reconcile(_: str, run: ReconcileContext) -> Result:
        began.append(sample.world.clock.monotonic())
        if run.cause != "retry":
            await sample.world.clock.sleep(10_000)
        return Done()

    with capture_logs() as logs:
        async with driving(sample, reconcile, ControllerSettings(workers=1, deadline_s=20)):
            await sample.store.create(animal("bella"))
            await sample.rest(60)
    assert [outcome for _, _, outcome in sample.notes.passes] == ["timeout", "done"]
    assert [line["event"] for line in logs] == ["reconcile timed out"]


async def test_a_wake_that_a_pass_asks_for_comes_even_if_its_result_waits_longer(sample: Farm) -> None:
    times: list[float] = []

    async def reconcile(_: str, run: ReconcileContext) -> Result:
        times.append(sample.world.clock.monotonic())
        if len(times) == 1:
            run.requeue_after(30)
            run.requeue_after(12)
            run.requeue_after(40)
        return Blocked("NoHay", "no hay") if len(times) == 1 else Done()

    async with driving(sample, reconcile):
        await sample.store.create(animal("bella"))
        await sample.rest()
    assert times[1] - times[0] == pytest.approx(12, abs=0.1)


async def test_stopping_lets_passes_under_way_end_and_cancels_those_that_do_not(sample: Farm) -> None:
    ended: list[str] = []

    async def reconcile(key: str, _: ReconcileContext) -> Result:
        await sample.world.clock.sleep({"quick": 5, "slow": 1000}[key])
        ended.append(key)
        return Done()

    driver = Controller(
        "t", reconcile, kind=Animal, ports=sample.ports(), settings=ControllerSettings(grace_s=10, workers=2)
    )
    await driver.start()
    for key in ("quick", "slow"):
        await sample.store.create(animal(key))
    await sample.rest(1)
    began = sample.world.clock.monotonic()
    await driver.stop()
    assert ended == ["quick"]
    assert sample.world.clock.monotonic() - began == pytest.approx(10, abs=0.1)
    await driver.stop()
    tasks = [task.get_name() for task in asyncio.all_tasks()]
    assert not [name for name in tasks if name.startswith(("t-", "driver", "t "))]


@options(seeds=50)
async def test_to_stop_twice_at_once_and_start_again_loses_no_task(sample: Farm) -> None:
    await sample.store.create(animal("bella"))
    driver = Controller("t", Script(sample), kind=Animal, ports=sample.ports())
    await driver.start()
    await sample.rest(1)

    async def stop_and_start() -> None:
        await driver.stop()
        await driver.start()

    await asyncio.gather(stop_and_start(), driver.stop(), stop_and_start(), driver.stop())
    await driver.stop()
    await sample.rest(1)
    named = [task.get_name() for task in asyncio.all_tasks()]
    assert not [name for name in named if name.startswith(("driver t", "t "))], named


async def test_a_stop_that_is_cancelled_can_be_called_again(sample: Farm) -> None:
    async def reconcile(_key: str, _: ReconcileContext) -> Result:
        await sample.world.clock.sleep(1000)
        return Done()

    driver = Controller("t", reconcile, kind=Animal, ports=sample.ports(), settings=ControllerSettings(grace_s=10))
    await driver.start()
    await sample.store.create(animal("slow"))
    await sample.rest(1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await driver.stop()
    await driver.stop()
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith(("t-", "driver", "t "))]


async def test_a_key_can_be_woken_by_hand(sample: Farm) -> None:
    script = Script(sample)
    async with driving(sample, script) as driver:
        await sample.store.create(animal("bella"))
        await sample.rest(1)
        looked = len(script.times)
        driver.enqueue("bella")
        await sample.rest(1)
        assert len(script.times) == looked + 1
    driver.enqueue("bella")
    await sample.rest(1)
    assert len(script.times) == looked + 1, "nobody controls any more"


async def test_a_driver_can_be_started_again(sample: Farm) -> None:
    driver = await sample.drive()
    await driver.stop()
    await sample.store.create(animal("bella"))
    await driver.start()
    await sample.rest()
    assert sample.barn.stalls.keys() == {"bella"}


async def test_scans_check_everything_now_and_then_and_are_spread_out(sample: Farm) -> None:
    for number in range(30):
        await sample.store.create(animal(f"a{number}"))
    times: list[float] = []

    async def reconcile(_: str, run: ReconcileContext) -> Result:
        if run.cause == "resync":
            times.append(sample.world.clock.monotonic())
        return Done()

    settings = ControllerSettings(resync=ResyncSettings(interval_s=100, keys_per_s=2, chunk=5))
    async with driving(sample, reconcile, settings):
        await sample.rest(130)
    assert len(times) == 30
    assert times[-1] - times[0] >= 12
    assert sample.notes.scans == [30, 30], "the one when control began counts as well"


async def test_a_find_of_a_scan_is_counted_only_if_nothing_else_was_under_way(sample: Farm) -> None:
    act = asyncio.Event()

    async def reconcile(key: str, run: ReconcileContext) -> Result:
        if key == "busy":
            run.acted = True
            return Requeue(1000)
        run.acted = act.is_set()
        return Done()

    async with driving(sample, reconcile) as driver:
        for key in ("busy", "idle"):
            await sample.store.create(animal(key))
        await sample.rest()
        assert await driver.resync() == 2
        await sample.rest()
        assert sample.notes.finds == []
        act.set()
        await driver.resync()
        await sample.rest()
        assert sample.notes.finds == ["idle"]


class Slow:
    """A store whose watches begin late, and tell late."""

    def __init__(self, farm: Farm, *, begin_s: float = 0, tell_s: float = 0) -> None:
        self._here = farm
        self._begin_s, self._tell_s = begin_s, tell_s

    def __getattr__(self, name: str) -> Any:
        return getattr(self._here.store, name)

    async def list_names(self, kind: type[Resource], *, limit: int | None = None, **options: Any) -> Page[str]:
        if limit == 1:
            await self._here.rest(self._begin_s)
        return await self._here.store.list_names(kind, limit=limit, **options)

    async def watch(self, kind: type[Resource], *, since: str) -> AsyncIterator[Event[Resource]]:
        async for event in self._here.store.watch(kind, since=since):
            await self._here.rest(self._tell_s)
            yield event


async def test_a_scan_that_overtakes_an_event_has_found_nothing(sample: Farm) -> None:
    store: Any = Slow(sample, tell_s=1)
    driver = await sample.drive(store=store)
    await sample.store.create(animal("bella"))
    await sample.rest()
    for colour in ("grey", "bay"):
        await sample.store.update(recoloured(await sample.store.get(Animal, "bella"), colour))
        await driver.resync()
        await sample.rest(0.5)
        assert sample.barn.stalls["bella"].colour == colour
        await sample.rest()
    assert sample.notes.finds == []


async def test_what_is_made_while_control_begins_is_not_missed(sample: Farm) -> None:
    store: Any = Slow(sample, begin_s=10)
    await sample.drive(store=store)
    await sample.rest(5)
    await sample.store.create(animal("bella"))
    await sample.rest()
    assert sample.barn.stalls.keys() == {"bella"}


async def test_the_id_of_a_pass_is_in_every_line_that_is_logged_on_its_behalf(sample: Farm) -> None:
    ids: list[str] = []

    async def deep_inside() -> None:
        structlog.get_logger().info("called")

    async def reconcile(_: str, run: ReconcileContext) -> Result:
        ids.append(run.id)
        run.log.info("mine")
        await deep_inside()
        return Requeue(5) if len(ids) < 3 else Done()

    with capture_logs(processors=[merge_contextvars]) as logs:
        async with driving(sample, reconcile):
            await sample.store.create(animal("bella"))
            await sample.rest(30)
    assert [line["reconcile_id"] for line in logs] == [one for one in ids for _ in range(2)]
    assert len(set(ids)) == 3
    assert [(line["controller"], line["key"]) for line in logs if line["event"] == "mine"] == [("t", "bella")] * 3


@options(seeds=1)
async def test_sources_that_leave_out_the_own_kind_are_refused(sample: Farm) -> None:
    with pytest.raises(ValueError, match="Animal"):
        Controller("t", Script(sample), kind=Animal, ports=sample.ports(), sources=(Source(Herd),))
