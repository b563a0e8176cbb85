"""Which server is whose: the watch of servers, and what is made of those that are odd."""

import dataclasses
from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.clients.watch import Changed
from remuda.compute.instances.server_lookup import list_tagged
from remuda.compute.instances.server_watch import ServerWatch
from remuda.compute.kinds import ComputeInstance
from remuda.compute.ports import RegionClient
from remuda.reconcile.reporter import ReconcileResult, Reporter
from remuda.reconcile.results import ReconcileContext
from remuda.region.kinds.servers import Server
from tests.kit.compute.controllers import (
    UNHURRIED,
    Counting,
    Woken,
    at_cloud,
    delete_server,
    made,
    metric,
    network_of,
    rest,
    restarted,
    said,
    server_of,
    stored,
    tagged_server,
    timeline,
)
from tests.kit.compute.environment import ComputeEnvironment
from tests.kit.compute.region_api import server_read
from tests.kit.compute.requests import at

NOBODY = "e0000000-0000-4000-8000-00000000000e"


tagged = pytest.mark.parametrize("names_incarnation", [True, False])
"""A server names the incarnation of an instance, or the instance alone, as the reference tags it."""


@tagged
async def test_c02_several_servers_are_said_counted_and_told_and_nothing_is_done_to_any(
    compute: ComputeEnvironment, *, names_incarnation: bool
) -> None:
    network = await network_of(compute)
    instance = await made(compute, network)
    uid = (await stored(compute, instance)).uid if names_incarnation else ""
    other = await tagged_server(compute, network, "twin", instance=instance, uid=uid)
    await rest(compute, 200)
    found = await said(compute, instance)
    assert (found.status, found.reason) == ("False", "AmbiguousServer")
    assert instance in found.message
    assert other in found.message
    (told,) = [each for each in await timeline(compute, instance) if each["event"] == "AmbiguousServer"]
    assert set(told["servers"]) == {instance, other}
    assert metric(compute, "remuda_compute_ambiguous_servers_total") == 1
    assert metric(compute, "remuda_compute_orphan_servers_total", reason="duplicate") == 1
    assert {each.state for each in at_cloud(compute)} == {"running"}
    assert len(at_cloud(compute)) == 2
    await delete_server(compute, other)
    await rest(compute, 5)
    assert (await compute.read(instance))["metadata"]["provisioningStatus"] == "provisioned"


@tagged
async def test_c02_a_single_server_that_is_not_the_linked_one_is_not_taken_for_it(
    compute: ComputeEnvironment, *, names_incarnation: bool
) -> None:
    network = await network_of(compute)
    instance = await made(compute, network)
    uid = (await stored(compute, instance)).uid if names_incarnation else ""
    other = await tagged_server(compute, network, "twin", instance=instance, uid=uid)
    await delete_server(compute, instance)
    await rest(compute)
    assert (await said(compute, instance)).reason == "AmbiguousServer"
    assert await server_of(compute, instance) is None
    assert await server_of(compute, other) is not None
    refused = await compute.root.post(f"{at(instance)}/stop")
    assert (refused.status, refused.json["code"]) == (500, "inconsistent")
    assert {each.state for each in at_cloud(compute)} == {"running"}
    waits = (await compute.root.get(f"{at(instance)}/explain")).json["waitingFor"]
    assert [each["reason"] for each in waits] == ["AmbiguousServer"]


async def test_c02_a_server_of_which_it_is_not_clear_whose_it_is_stays_when_the_instance_goes(
    compute: ComputeEnvironment,
) -> None:
    network = await network_of(compute)
    instance = await made(compute, network)
    other = await tagged_server(compute, network, "twin", instance=instance)
    await rest(compute)
    assert (await compute.root.delete(at(instance))).status == 202
    await compute.until_gone(instance)
    await rest(compute, 700)
    assert [each.name for each in (await compute.store.list(Server)).items] == [other]
    assert metric(compute, "remuda_compute_findings", checker="server-without-instance") == 1


async def test_m16_a_change_of_the_server_reaches_the_instance_at_once(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    server = await compute.store.get(Server, instance)
    await compute.store.update_status(replace(server, status=replace(server.status, public_ip="203.0.113.9")))
    await compute.clock.sleep(0.5)
    assert (await stored(compute, instance)).status.public_ip == "203.0.113.9"


async def test_m16_a_change_of_the_server_while_nobody_watched_is_seen_at_the_next_start(
    compute: ComputeEnvironment,
) -> None:
    instance = await made(compute, await network_of(compute))
    server = await compute.store.get(Server, instance)
    following = _Woken(compute)
    assert await following.woken_by(instance) == [], "it is at rest, and shows all there is"
    await compute.app.stop()
    changed = replace(server, status=replace(server.status, public_ip="203.0.113.9"))
    await compute.store.update_status(changed)
    assert await following.woken_by(instance) == [instance]


class _Woken(Woken):
    """What a watch of servers would wake."""

    def __init__(self, compute: ComputeEnvironment) -> None:
        super().__init__()
        self._compute = compute
        ports = compute.app.ports
        fresh: Any = type(ports.metrics)()
        self._following = ServerWatch(_with(ports, metrics=fresh), self)

    async def woken_by(self, instance: str) -> list[str]:
        """Return who is woken by the server of an instance, as it is now."""
        found = await stored(self._compute, instance)
        self.keys.clear()
        for server in await list_tagged(self._compute.app.ports.region, found):
            await self._following.observe(Changed("modified", server))
        return list(self.keys)


def _with(ports: Any, **changes: Any) -> Any:
    return dataclasses.replace(ports, **changes)


async def test_c05_finding_the_instance_of_a_server_is_one_lookup_however_many_there_are(
    compute: ComputeEnvironment,
) -> None:
    network = await network_of(compute)
    instances = [await made(compute, network, f"i{number}") for number in range(5)]
    counting = Counting(compute.store)
    controller = Woken()
    fresh: Any = type(compute.app.ports.metrics)()
    following = ServerWatch(_with(compute.app.ports, store=counting, metrics=fresh), controller)
    uid = (await stored(compute, instances[3])).uid
    await following.observe(Changed("added", server_read(instances[3], instance=instances[3], uid=uid)))
    assert counting.asked == {"get": 1}
    assert controller.keys == [instances[3]]


async def test_c06_a_server_whose_instance_is_not_there_is_counted_once_and_nobody_is_woken(
    compute: ComputeEnvironment,
) -> None:
    network = await network_of(compute)
    await tagged_server(compute, network, "orphan", instance=NOBODY, uid=NOBODY)
    await rest(compute)
    assert metric(compute, "remuda_compute_orphan_servers_total", reason="missing") == 1
    assert metric(compute, "remuda_compute_orphan_servers_total", reason="duplicate") == 0
    assert len(at_cloud(compute)) == 1, "the watch removes nothing"


async def test_c04_everything_asks_region_through_the_one_port_that_compute_was_given(
    compute: ComputeEnvironment,
) -> None:
    port = compute.app.ports.region
    counted: Counter[str] = Counter()
    plain = RegionClient.list_servers

    async def counting(self: RegionClient, *args: Any) -> Any:
        counted[str(id(self))] += 1
        return await plain(self, *args)

    network = await network_of(compute)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(RegionClient, "list_servers", counting)
        for number in range(3):
            await made(compute, network, f"i{number}")
    assert set(counted) == {str(id(port))}
    assert counted.total() >= 6


async def test_an_instance_at_rest_is_looked_at_again_without_a_write(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    await rest(compute)
    before = await stored(compute, instance)
    (driver,) = compute.app.running_controllers.values()
    assert await driver.resync() == 1
    await rest(compute)
    assert (await stored(compute, instance)).version == before.version
    assert isinstance(before, ComputeInstance)


async def test_m16_a_start_wakes_nobody_without_a_reason_and_hurries_those_that_are_unsettled(
    compute: ComputeEnvironment,
) -> None:
    network = await network_of(compute)
    resting = [await made(compute, network, f"i{number}") for number in range(5)]
    looked_at: Counter[str] = Counter()

    class Counts(Reporter):
        def finished(self, run: ReconcileContext, outcome: ReconcileResult, seconds: float) -> None:  # noqa: ARG002  as told
            looked_at[run.key] += 1

    async def meanwhile() -> None:
        server = await compute.store.get(Server, resting[2])
        await compute.store.update_status(replace(server, status=replace(server.status, public_ip="203.0.113.9")))

    new = await compute.instance(network, "new")
    async with restarted(compute, meanwhile, reporter=Counts(), controllers=UNHURRIED):
        await compute.until(new, "provisioned")
        await rest(compute, 20)
        assert (await stored(compute, resting[2])).status.public_ip == "203.0.113.9"
        assert set(looked_at) <= {new, resting[2], min(new, *resting)}, "the first of the scan is looked at as well"
