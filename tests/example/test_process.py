"""The livery in a real process: mounted, with its controllers, counted from the start, ready when they have begun."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from remuda.operations.kinds import CLOSED_PHASES, OPEN_PHASES
from remuda.reconcile.reporter import RECONCILE_RESULTS
from tests.example.calling import VERBS
from tests.example.customers import MOUNTS, YARDS
from tests.example.process import Standing, pasture_of, standing
from tests.example.running import new_mount, new_yard, running
from tests.kit.asgi.process_client import ask

USER = {"Authorization": "Bearer user"}
PATIENCE_S = 20


def until(holds: Callable[[], bool]) -> None:
    """Return when it holds."""
    ends = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.02)


def is_ready(one: Standing) -> bool:
    return ask(f"{one.server}/readyz").status_code == 200


def test_it_is_mounted_with_its_controllers_and_stops_in_order(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with standing(data) as one, httpx2.Client(base_url=one.url, headers=USER) as client:
        until(lambda: is_ready(one))
        assert client.get("/docs").status_code == 200
        assert client.get("/openapi.json").json()["servers"] == [{"url": "/livery"}]
        yard = client.post(YARDS, json=new_yard()).json()["metadata"]["id"]
        mount = client.post(MOUNTS, json=new_mount(yard)).json()["metadata"]["id"]

        def status() -> Any:
            return client.get(f"{MOUNTS}/{mount}").json()["metadata"]["provisioningStatus"]

        until(lambda: status() == "provisioned")
        assert [name.partition(".")[0] for name in pasture_of(data).mounts] == [mount]
        counted = one.metrics()
        assert counted['remuda_operations_closed_total{phase="done",saga="mount.create"}'] == 1
        assert counted['remuda_provider_calls_total{outcome="done",provider="pasture",verb="turn_out"}'] == 1
        assert one.stop() == 0
    assert (data / "remuda.db.lock").read_text() == "", "the store was closed"


def test_everything_is_counted_from_the_start(tmp_path: Path) -> None:
    with standing(tmp_path / "data") as one:
        there = one.metrics().keys()
    wanted = {
        f'remuda_reconcile_runs_total{{controller="{controller}",result="{result}"}}'
        for controller in ("mounts", "yards", "ledgers")
        for result in RECONCILE_RESULTS
    }
    wanted |= {f'remuda_operations_closed_total{{phase="{phase}",saga="mount.create"}}' for phase in CLOSED_PHASES}
    wanted |= {f'remuda_operations_open{{phase="{phase}",saga="mount.create"}}' for phase in OPEN_PHASES}
    wanted |= {f'remuda_provider_calls_total{{outcome="unknown",provider="pasture",verb="{verb}"}}' for verb in VERBS}
    wanted |= {'remuda_http_requests_total{route="create_mount",service="livery",status="5xx"}'}
    assert wanted - there == set()


class Candidate:
    """A leader that is not one yet."""

    def __init__(self) -> None:
        self.elected = asyncio.Event()

    @property
    def is_leading(self) -> bool:
        return self.elected.is_set()

    async def won(self) -> None:
        await self.elected.wait()

    async def lost(self) -> None:
        await asyncio.Event().wait()


async def test_it_is_not_ready_before_its_controllers_have_begun(tmp_path: Path) -> None:
    leader = Candidate()
    async with running(tmp_path, leader=leader) as livery:
        await asyncio.sleep(0.05)
        assert [part for part, _ in livery.app.check()] == ["mounts", "yards", "ledgers"]
        leader.elected.set()

        async def is_ready() -> bool:
            return not [*livery.app.check()]

        await livery.eventually("the controllers have begun", is_ready)
