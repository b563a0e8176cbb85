"""The monitor: instances, servers and what is held for them, held against each other."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.compute.instances.rules import SCOPE, charge_of
from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.compute.settings import ComputeSettings
from remuda.identity.kinds.quotas import Allocation
from remuda.quota.ports import Charge, ChargeAmount, ProjectRef
from remuda.region.kinds.networks import Network
from remuda.region.kinds.servers import Server
from remuda.resources.crud import find
from tests.kit.compute.controllers import (
    UNHURRIED,
    at_cloud,
    choose,
    events,
    made,
    metric,
    network_of,
    rest,
    restarted,
    server_of,
    stored,
    tagged_server,
    timeline,
)
from tests.kit.compute.environment import ComputeEnvironment
from tests.kit.compute.region_api import with_methods
from tests.kit.compute.requests import at, held
from tests.kit.environment import options

NOBODY = "e0000000-0000-4000-8000-00000000000e"
LOOK_S = 310.0
RELEASE = "/api/v2/recovery/deletions/resume"


def findings(compute: ComputeEnvironment, checker: str) -> float:
    """Return how many findings of a checker are open."""
    return metric(compute, "remuda_compute_findings", checker=checker)


async def found(compute: ComputeEnvironment, instance: str, event: str = "Finding") -> list[str]:
    """Return what was found of an instance, or repaired."""
    return [each["checker"] for each in await timeline(compute, instance) if each["event"] == event]


async def test_c08_all_is_well_where_all_is_well(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute), networking={"publicIP": True})
    before = await stored(compute, instance)
    await rest(compute, 15 * LOOK_S)
    assert (await stored(compute, instance)).version == before.version
    assert await events(compute, instance) == ["ServerCreated"]
    for checker in ("instance-without-server", "allocation-differs", "allocation-without-owner", "stuck"):
        assert findings(compute, checker) == 0


class Deaf:
    """Region, of which nobody hears what becomes of servers."""

    def __init__(self, compute: ComputeEnvironment) -> None:
        self._region, self._clock, self.lookups = compute.app.ports.region, compute.clock, 0
        self.client = with_methods(self._region, watch_servers=self._watch, list_servers=self._list)

    def _list(self, *arguments: Any) -> AsyncIterator[Any]:
        self.lookups += 1
        return self._region.api.list_servers(*arguments)

    async def _watch(self, _since: str = "") -> AsyncIterator[Any]:
        await self._clock.sleep(1_000_000)
        yield


@options(controllers=UNHURRIED)
async def test_c08_an_instance_without_server_is_found_where_no_event_told_and_gets_one(
    compute: ComputeEnvironment,
) -> None:
    network = await network_of(compute)
    instance = max([await made(compute, network, name) for name in ("one", "other")])
    server = await compute.store.get(Server, instance)

    async def vanish() -> None:
        await compute.store.delete(Server, server.name, uid=server.uid)

    async with restarted(compute, vanish, region=Deaf(compute).client):
        assert await server_of(compute, instance) is None
        await rest(compute, LOOK_S)
        assert await found(compute, instance) == ["instance-without-server"]
        assert "ServerRecreated" in await events(compute, instance)
        await compute.until(instance, "provisioned")
        await rest(compute, LOOK_S)
        assert findings(compute, "instance-without-server") == 0


async def test_c08_a_server_whose_instance_was_released_is_found_twice_and_then_removed(
    compute: ComputeEnvironment,
) -> None:
    network = await network_of(compute)
    instance = await made(compute, network, "web")
    uid = (await stored(compute, instance)).uid
    await compute.root.delete(at(instance))
    await compute.until_gone(instance)
    late = await tagged_server(compute, network, "web", instance=instance, uid=uid)
    await rest(compute, LOOK_S)
    assert await server_of(compute, late) is not None, "it was seen once"
    await rest(compute, LOOK_S + 60)
    assert await server_of(compute, late) is None
    assert not at_cloud(compute)
    assert await found(compute, instance) == ["server-without-instance"]
    assert await found(compute, instance, "Repaired") == ["server-without-instance"]
    await rest(compute, LOOK_S)
    assert findings(compute, "server-without-instance") == 0


async def test_c08_a_server_whose_instance_went_without_it_is_found_and_left_to_an_operator(
    compute: ComputeEnvironment,
) -> None:
    instance = await made(compute, await network_of(compute))
    await rest(compute, LOOK_S)
    before = await stored(compute, instance)
    await compute.store.update(replace(before, metadata=replace(before.metadata, finalizers=())))
    assert await compute.store.delete(ComputeInstance, instance, uid=before.uid) is None
    await rest(compute, 3 * LOOK_S)
    assert len(at_cloud(compute)) == 1
    assert findings(compute, "server-without-instance") == 1
    assert await found(compute, instance) == ["server-without-instance"]


async def test_c08_an_ordinary_deletion_costs_the_monitor_one_lookup_and_finds_nothing(
    compute: ComputeEnvironment,
) -> None:
    instance = await made(compute, await network_of(compute))
    region = Deaf(compute)

    async def nothing() -> None:
        pass

    async with restarted(compute, nothing, region=region.client):
        await compute.root.delete(at(instance))
        await rest(compute)
        assert await find(compute.store, ComputeInstance, instance) is None
        region.lookups = 0
        await rest(compute, 4 * LOOK_S)
        assert region.lookups == 1
        assert findings(compute, "server-without-instance") == 0


async def test_c08_a_server_of_an_instance_that_nobody_remembers_waits_for_an_operator(
    compute: ComputeEnvironment,
) -> None:
    network = await network_of(compute)
    server = await tagged_server(compute, network, "orphan", instance=NOBODY, uid=NOBODY)
    await rest(compute, 4 * LOOK_S)
    assert await server_of(compute, server) is not None
    assert findings(compute, "server-without-instance") == 1
    assert await found(compute, NOBODY) == ["server-without-instance"]


@options(is_instant=True)
async def test_c08_no_more_orphans_are_removed_at_once_than_the_breaker_lets_pass(compute: ComputeEnvironment) -> None:
    network = await network_of(compute)
    for number in range(25):
        instance = await compute.instance(network, f"i{number}")
        uid = (await stored(compute, instance)).uid
        await compute.root.delete(at(instance))
        await compute.until_gone(instance)
        await tagged_server(compute, network, f"i{number}", instance=instance, uid=uid)
    await rest(compute, 4 * LOOK_S)
    assert len((await compute.store.list(Server)).items) == 5
    assert findings(compute, "server-without-instance") == 5
    assert (await compute.root.post(RELEASE)).status == 202
    await rest(compute, 2 * LOOK_S)
    assert (await compute.store.list(Server)).items == []


@options(is_instant=True)
async def test_c08_orphans_that_were_kept_from_going_by_the_dozen_go_when_an_operator_lets_them(
    compute: ComputeEnvironment,
) -> None:
    network = await network_of(compute)
    names = [f"i{number}" for number in range(5)]
    for name in names:
        instance = await compute.instance(network, name)
        uid = (await stored(compute, instance)).uid
        await compute.root.delete(at(instance))
        await compute.until_gone(instance)
        await tagged_server(compute, network, name, instance=instance, uid=uid)
    again = [await compute.instance(network, name) for name in names]
    await rest(compute, 60)
    told = [(await compute.read(each))["metadata"]["provisioningStatusDetail"]["reason"] for each in again]
    assert sorted(told) == ["MassDeletion"] * 2 + ["Provisioned"] * 3
    assert (await compute.root.post(RELEASE)).status == 202
    for each in again:
        await compute.until(each, "provisioned")


async def test_c08_a_server_of_another_incarnation_than_was_released_waits_for_an_operator(
    compute: ComputeEnvironment,
) -> None:
    network = await network_of(compute)
    instance = await made(compute, network, "web")
    await compute.root.delete(at(instance))
    await compute.until_gone(instance)
    other = await tagged_server(compute, network, "web", instance=instance, uid=NOBODY)
    await rest(compute, 4 * LOOK_S)
    assert await server_of(compute, other) is not None
    assert findings(compute, "server-without-instance") == 1


@options(settings=ComputeSettings(monitor_interval=timedelta(seconds=20)))
async def test_c08_what_is_held_for_nobody_is_released_after_two_looks(compute: ComputeEnvironment) -> None:
    region, identity = compute.region, compute.app.ports.identity
    charge = Charge(
        payer=ProjectRef(region.organization, region.project),
        operation="a0000000-0000-4000-8000-00000000000a",
        kind=INSTANCE.qualified,
        id=NOBODY,
        amounts=(ChargeAmount("servers", 1),),
    )
    await identity.allocate(charge)
    assert await identity.confirm(charge)
    seldom_s = 72 * 20
    await rest(compute, seldom_s + 60)
    assert await held(compute) == [{"servers": 1}], "it was seen once"
    await rest(compute, seldom_s)
    assert await held(compute) == []
    assert await found(compute, NOBODY, "Repaired") == ["allocation-without-owner"]


@pytest.mark.parametrize("is_released", [True, False])
async def test_c08_what_is_held_wrongly_is_put_right(compute: ComputeEnvironment, *, is_released: bool) -> None:
    instance = await made(compute, await network_of(compute))
    charge, identity = charge_of(await stored(compute, instance)), compute.app.ports.identity
    if is_released:
        await identity.release(charge)
    else:
        amounts = (ChargeAmount("servers", 1), ChargeAmount("floatingips", 1))
        await identity.update(
            Charge(payer=charge.payer, operation=charge.operation, kind=charge.kind, id=charge.id, amounts=amounts)
        )
    wrong = await held(compute)
    await rest(compute, LOOK_S)
    assert await held(compute) == wrong, "it was seen once"
    await rest(compute, LOOK_S)
    assert await held(compute) == [{"servers": 1}]
    assert await found(compute, instance) == await found(compute, instance, "Repaired") == ["allocation-differs"]
    rows = (await compute.store.list(Allocation)).items
    assert {row.spec.state for row in rows if row.spec.state != "released"} == {"confirmed"}


async def test_c08_a_state_that_has_not_moved_for_too_long_is_told_once(compute: ComputeEnvironment) -> None:
    network = await network_of(compute)
    instance = await made(compute, network)
    await tagged_server(compute, network, "twin", instance=instance, uid=(await stored(compute, instance)).uid)
    await rest(compute, 5 * LOOK_S)
    assert findings(compute, "stuck") == 0
    await rest(compute, 3 * LOOK_S)
    assert findings(compute, "stuck") == 1
    (told,) = [each for each in await timeline(compute, instance) if each["event"] == "Finding"]
    assert "not clear which server" in told["message"]


@pytest.mark.parametrize("label", SCOPE)
@pytest.mark.parametrize("value", ["", "another", NOBODY])
@pytest.mark.parametrize("is_deleted", [False, True])
async def test_c08_c12_damaged_labels_are_found_and_told(
    compute: ComputeEnvironment, label: str, value: str, *, is_deleted: bool
) -> None:
    instance = await made(compute, await network_of(compute))
    before = await stored(compute, instance)
    labels = dict(before.metadata.labels) | {label: value}
    await compute.store.update(replace(before, metadata=replace(before.metadata, labels=labels)))
    if is_deleted:
        await compute.store.delete(ComputeInstance, instance, uid=before.uid)
    await rest(compute, 2 * LOOK_S)
    assert await found(compute, instance) == ["damaged"]
    assert findings(compute, "damaged") == 1
    assert len(at_cloud(compute)) == 1


async def test_c08_c12_a_prefix_that_is_none_is_found_and_told(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    networking = (await stored(compute, instance)).spec.networking
    await choose(compute, instance, networking=replace(networking, allowed_source_addresses=("nope",)))
    await rest(compute, 2 * LOOK_S)
    assert await found(compute, instance) == ["damaged"]
    assert findings(compute, "damaged") == 1


async def test_m18_an_instance_whose_network_went_while_nobody_watched_is_ended(compute: ComputeEnvironment) -> None:
    network = await network_of(compute)
    instance = await made(compute, network)

    async def end_network() -> None:
        found = await compute.store.get(Network, network)
        await compute.store.delete(Network, network, uid=found.uid)

    async with restarted(compute, end_network):
        assert await find(compute.store, Network, network) is None
        await rest(compute, 4 * LOOK_S)
        assert await find(compute.store, ComputeInstance, instance) is None
        assert "NetworkDeleted" in await events(compute, instance)
        assert await held(compute) == []


@options(settings=ComputeSettings(monitor_interval=timedelta(seconds=20)))
async def test_it_looks_as_often_as_it_is_told(compute: ComputeEnvironment) -> None:
    instance = await made(compute, await network_of(compute))
    await choose(compute, instance, server_id=NOBODY)
    await rest(compute, 30)
    assert findings(compute, "damaged") == 1
