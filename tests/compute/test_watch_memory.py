"""Starts that continue where the last process was: nothing is compared twice, and nothing is lost."""

import dataclasses
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.clients.watch import Changed
from remuda.compute.instances.server_watch import ServerWatch
from remuda.compute.instances.watch_memory import WatchMemory
from remuda.compute.kinds import WatchPosition
from remuda.compute.ports import ComputePorts, RegionClient
from remuda.kernel.errors import Unavailable
from remuda.reconcile.lifecycle import PAUSED
from remuda.region.kinds.servers import Server
from tests.kit.compute.controllers import (
    UNHURRIED,
    Woken,
    made,
    metric,
    network_of,
    rest,
    restarted,
    stored,
    tagged_server,
)
from tests.kit.compute.environment import ComputeEnvironment
from tests.kit.compute.region_api import with_methods

NOBODY = "e0000000-0000-4000-8000-00000000000e"


class Listening:
    """Region, and what its watches of servers have sent."""

    def __init__(self, compute: ComputeEnvironment) -> None:
        self._api = compute.app.ports.region.api
        self.client = with_methods(compute.app.ports.region, watch_servers=self._watch)
        self.sent: list[tuple[str, list[str]]] = []
        """The cursor after which each watch began, and the servers that it has sent."""

    async def _watch(self, since: str = "") -> AsyncIterator[Any]:
        ids: list[str] = []
        self.sent.append((since, ids))
        async for message in self._api.watch_servers(since):
            if isinstance(message, Changed):
                ids.append(message.item.metadata.id)
            yield message

    @property
    def continued(self) -> list[str]:
        """The servers that the watch has sent which continued from a cursor."""
        (ids,) = (ids for since, ids in self.sent if since)
        return ids


@pytest.fixture
def unreviewed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no review find what a start has missed."""

    async def nothing(_: ServerWatch) -> None:
        return

    monkeypatch.setattr(ServerWatch, "_review", nothing)


async def show_address(compute: ComputeEnvironment, instance: str, address: str) -> None:
    """Change the server of an instance, as its provider would."""
    server = await compute.store.get(Server, instance)
    await compute.store.update_status(replace(server, status=replace(server.status, public_ip=address)))


@pytest.mark.usefixtures("unreviewed")
async def test_a_start_compares_only_what_has_changed_since(compute: ComputeEnvironment) -> None:
    network = await network_of(compute)
    instances = [await made(compute, network, f"i{number}") for number in range(3)]
    await rest(compute)
    region = Listening(compute)

    async def change() -> None:
        await show_address(compute, instances[1], "203.0.113.9")

    async with restarted(compute, change, controllers=UNHURRIED, region=region.client):
        await rest(compute, 1)
        assert region.continued == [instances[1]]
        assert (await stored(compute, instances[1])).status.public_ip == "203.0.113.9"


@pytest.mark.usefixtures("unreviewed")
async def test_a_server_that_was_deleted_since_is_missed(compute: ComputeEnvironment) -> None:
    instance = max([await made(compute, await network_of(compute), name) for name in ("one", "other")])
    await rest(compute)
    region = Listening(compute)

    async def vanish() -> None:
        server = await compute.store.get(Server, instance)
        await compute.store.delete(Server, server.name, uid=server.uid)

    async with restarted(compute, vanish, controllers=UNHURRIED, region=region.client):
        await rest(compute, 120)
        await compute.until(instance, "provisioned")
        assert instance in region.continued


async def test_other_source_code_compares_everything_again(compute: ComputeEnvironment) -> None:
    network = await network_of(compute)
    instances = {await made(compute, network, name) for name in ("one", "other")}
    await rest(compute)
    region = Listening(compute)

    async def nothing() -> None:
        return

    async with restarted(
        compute, nothing, controllers=UNHURRIED, region=region.client, source_digest=lambda: "another"
    ):
        await rest(compute)
        ((since, ids),) = region.sent
        assert since == ""
        assert set(ids) == instances


async def test_a_cursor_that_is_not_known_any_more_compares_everything_again(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    await rest(compute)
    region = Listening(compute)

    async def forget() -> None:
        found = await compute.store.get(WatchPosition, "servers")
        digest = found.spec.cursor.partition("-")[2]
        await compute.store.update(replace(found, spec=replace(found.spec, cursor=f"999999999999-{digest}")))

    async with restarted(compute, forget, controllers=UNHURRIED, region=region.client):
        await rest(compute)
        assert region.continued[:1] == [instance]


@pytest.mark.usefixtures("unreviewed")
async def test_an_instance_whose_reconcile_never_succeeded_before_the_crash_is_reconciled_at_the_start(
    compute: ComputeEnvironment,
) -> None:
    network = await network_of(compute)
    instance = max([await made(compute, network, name) for name in ("one", "other")])
    await rest(compute)

    async def nothing() -> None:
        return

    region = Listening(compute)
    async with restarted(compute, nothing, controllers=UNHURRIED, region=failing_lists(compute)):
        await show_address(compute, instance, "203.0.113.9")
        await rest(compute)
        position = await compute.store.get(WatchPosition, "servers")
        assert position.spec.instances == (instance,), "the change was observed, and the cursor is after it"
        assert (await stored(compute, instance)).status.public_ip == ""
    async with restarted(compute, nothing, controllers=UNHURRIED, region=region.client):
        await rest(compute, 1)
        assert region.continued == [], "nothing has changed since"
        assert (await stored(compute, instance)).status.public_ip == "203.0.113.9"


def failing_lists(compute: ComputeEnvironment) -> RegionClient:
    """Return region, without an answer to what reconciles ask for."""

    def fail(*_: Any) -> AsyncIterator[Any]:
        raise Unavailable("region")

    return with_methods(compute.app.ports.region, list_servers=fail)


@pytest.mark.usefixtures("unreviewed")
@pytest.mark.parametrize("after_s", [0.0, 0.001, 0.01, 0.1, 1.0, 1.99, 2.0, 2.01, 3.0, 10.0, 30.0])
async def test_a_crash_at_any_time_after_a_change_loses_nothing(compute: ComputeEnvironment, after_s: float) -> None:
    network = await network_of(compute)
    instance = max([await made(compute, network, name) for name in ("one", "other")])
    await rest(compute)
    await show_address(compute, instance, "203.0.113.9")
    await compute.clock.sleep(after_s)

    async def nothing() -> None:
        return

    async with restarted(compute, nothing, controllers=UNHURRIED):
        await rest(compute, 1)
        assert (await stored(compute, instance)).status.public_ip == "203.0.113.9"


async def test_orphans_are_counted_again_after_a_start(compute: ComputeEnvironment) -> None:
    await tagged_server(compute, await network_of(compute), "orphan", instance=NOBODY, uid=NOBODY)
    await rest(compute)

    async def nothing() -> None:
        return

    async with restarted(compute, nothing, controllers=UNHURRIED):
        await rest(compute)
        assert metric(compute, "remuda_compute_orphan_servers_total", reason="missing") == 1


class Remembering:
    """A memory over a controller that does what a test says."""

    def __init__(self, compute: ComputeEnvironment) -> None:
        self._ports: ComputePorts = dataclasses.replace(compute.app.ports, source_digest=lambda: "a test's")
        self.controller = Woken()
        self.memory = WatchMemory(self._ports, self.controller)

    async def begin(self) -> list[str]:
        return list(await self.memory.load())

    async def saved(self, cursor: str) -> tuple[str, list[str]]:
        """Save at a cursor, and return what a process would begin with that starts now."""
        self.memory.record_reached(cursor, by_change=True)
        await self.memory.save()
        other = WatchMemory(self._ports, Woken())
        instances = list(await other.load())
        return other.cursor, instances


Change = Callable[[Woken, str], None]


def _is_due(controller: Woken, instance: str) -> None:
    controller.due = {instance}


def _is_reconciled(controller: Woken, instance: str) -> None:
    controller.reconciling = {instance}


@pytest.mark.parametrize("state", [_is_due, _is_reconciled])
async def test_an_instance_is_remembered_until_its_reconcile_has_ended(
    compute: ComputeEnvironment, state: Change
) -> None:
    instance = await made(compute, await network_of(compute))
    await compute.app.stop()
    remembering = Remembering(compute)
    assert await remembering.begin() == []
    remembering.memory.record_enqueued(instance)
    state(remembering.controller, instance)
    assert await remembering.saved("1-a") == ("1-a", [instance])
    remembering.controller.due.clear()
    remembering.controller.reconciling.clear()
    assert await remembering.saved("2-a") == ("2-a", [])


async def test_what_is_not_saved_is_repeated(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    await compute.app.stop()
    remembering = Remembering(compute)
    await remembering.begin()
    remembering.memory.record_enqueued(instance)
    remembering.controller.due = {instance}
    assert await remembering.saved("1-a") == ("1-a", [instance])
    remembering.controller.due.clear()
    remembering.memory.record_reached("2-a", by_change=True)
    assert await remembering.begin() == [instance], "it was reconciled, and the process ended before the next save"
    assert remembering.memory.cursor == "1-a"


async def test_an_instance_that_a_start_reconciles_anyway_is_not_remembered(compute: ComputeEnvironment) -> None:
    instance = await compute.instance(await network_of(compute))
    await compute.app.stop()
    remembering = Remembering(compute)
    await remembering.begin()
    remembering.memory.record_enqueued(instance)
    remembering.controller.due = {instance}
    assert await remembering.saved("1-a") == ("1-a", [])
    remembering.controller.reconciling = {instance}
    assert await remembering.saved("2-a") == ("2-a", [instance]), "that reconcile may have begun before the change"


async def test_a_paused_instance_is_remembered(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    await compute.app.stop()
    found = await stored(compute, instance)
    await compute.store.update(replace(found, metadata=replace(found.metadata, annotations={PAUSED: "true"})))
    remembering = Remembering(compute)
    await remembering.begin()
    remembering.memory.record_enqueued(instance)
    assert await remembering.saved("1-a") == ("1-a", [instance]), "its reconcile did nothing"


async def test_nothing_is_saved_once_the_controller_has_forgotten_its_keys(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    await compute.app.stop()
    remembering = Remembering(compute)
    await remembering.begin()
    remembering.memory.record_enqueued(instance)
    remembering.controller.terms += 1
    assert await remembering.saved("1-a") == ("", [])


async def test_while_nothing_changes_nothing_is_written_but_what_keeps_the_cursor(compute: ComputeEnvironment) -> None:
    await made(compute, await network_of(compute))
    await rest(compute)
    before = (await compute.store.get(WatchPosition, "servers")).version
    await rest(compute, 500)
    assert (await compute.store.get(WatchPosition, "servers")).version == before
    await compute.region.identity.organization("other")
    await rest(compute, 700)
    assert (await compute.store.get(WatchPosition, "servers")).version != before
