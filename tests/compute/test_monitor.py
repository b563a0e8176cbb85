"""The monitor: instances, servers and what is held for them, held against each other."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.compute.instances.rules import SCOPE, charge_for
from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.compute.settings import ComputeSettings
from remuda.identity.kinds.quotas import Allocation
from remuda.quota.ports import Amount, Charge, Place
from remuda.region.kinds.networks import Network
from remuda.region.kinds.servers import Server
from remuda.resources.crud import find
from tests.compute.asking import at, held
from tests.compute.controlling import (
    UNHURRIED,
    at_cloud,
    begun_anew,
    choose,
    events,
    made,
    metric,
    network_of,
    rest,
    server_of,
    stored,
    tagged_server,
    timeline,
)
from tests.compute.house import ComputeHouse, in_a_compute

NOBODY = "e0000000-0000-4000-8000-00000000000e"
LOOK_S = 310.0
RELEASE = "/api/v2/recovery/removals/release"


def findings(house: ComputeHouse, checker: str) -> float:
    """Return how many findings of a checker are open."""
    return metric(house, "remuda_compute_findings", checker=checker)


async def found(house: ComputeHouse, instance: str, event: str = "Finding") -> list[str]:
    """Return what was found of an instance, or repaired."""
    return [each["checker"] for each in await timeline(house, instance) if each["event"] == event]


def test_c08_all_is_well_where_all_is_well() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house), networking={"publicIP": True})
        before = await stored(house, instance)
        await rest(house, 15 * LOOK_S)
        assert (await stored(house, instance)).version == before.version
        assert await events(house, instance) == ["ServerMade"]
        for checker in ("instance-without-server", "allocation-differs", "allocation-without-owner", "stuck"):
            assert findings(house, checker) == 0

    in_a_compute(scenario)


class Deaf:
    """Region, of which nobody hears what becomes of servers."""

    def __init__(self, house: ComputeHouse) -> None:
        self._region, self._clock, self.lookups = house.app.ports.region, house.clock, 0

    def __getattr__(self, name: str) -> Any:
        self.lookups += name == "servers_anywhere"
        return getattr(self._region, name)

    async def servers(self) -> AsyncIterator[Any]:
        await self._clock.sleep(1_000_000)
        yield


def test_c08_an_instance_without_server_is_found_where_no_event_told_and_gets_one() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        instance = max([await made(house, network, name) for name in ("one", "other")])
        server = await house.store.get(Server, instance)

        async def vanish() -> None:
            await house.store.delete(Server, server.name, uid=server.uid)

        async with begun_anew(house, vanish, region=Deaf(house)):
            assert await server_of(house, instance) is None
            await rest(house, LOOK_S)
            assert await found(house, instance) == ["instance-without-server"]
            assert "MadeAgain" in await events(house, instance)
            await house.until(instance, "provisioned")
            await rest(house, LOOK_S)
            assert findings(house, "instance-without-server") == 0

    in_a_compute(scenario, control=UNHURRIED)


def test_c08_a_server_whose_instance_was_let_go_is_found_twice_and_then_removed() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        instance = await made(house, network, "web")
        uid = (await stored(house, instance)).uid
        await house.root.delete(at(instance))
        await house.until_gone(instance)
        late = await tagged_server(house, network, "web", instance=instance, uid=uid)
        await rest(house, LOOK_S)
        assert await server_of(house, late) is not None, "it was seen once"
        await rest(house, LOOK_S + 60)
        assert await server_of(house, late) is None
        assert not at_cloud(house)
        assert await found(house, instance) == ["server-without-instance"]
        assert await found(house, instance, "Repaired") == ["server-without-instance"]
        await rest(house, LOOK_S)
        assert findings(house, "server-without-instance") == 0

    in_a_compute(scenario)


def test_c08_a_server_whose_instance_went_without_it_is_found_and_left_to_an_operator() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        await rest(house, LOOK_S)
        before = await stored(house, instance)
        await house.store.update(replace(before, metadata=replace(before.metadata, finalizers=())))
        assert await house.store.delete(ComputeInstance, instance, uid=before.uid) is None
        await rest(house, 3 * LOOK_S)
        assert len(at_cloud(house)) == 1
        assert findings(house, "server-without-instance") == 1
        assert await found(house, instance) == ["server-without-instance"]

    in_a_compute(scenario)


def test_c08_an_ordinary_deletion_costs_the_monitor_one_lookup_and_finds_nothing() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        region = Deaf(house)

        async def nothing() -> None:
            pass

        async with begun_anew(house, nothing, region=region):
            await house.root.delete(at(instance))
            await rest(house)
            assert await find(house.store, ComputeInstance, instance) is None
            region.lookups = 0
            await rest(house, 4 * LOOK_S)
            assert region.lookups == 1
            assert findings(house, "server-without-instance") == 0

    in_a_compute(scenario)


def test_c08_a_server_of_an_instance_that_nobody_remembers_waits_for_an_operator() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        server = await tagged_server(house, network, "stray", instance=NOBODY, uid=NOBODY)
        await rest(house, 4 * LOOK_S)
        assert await server_of(house, server) is not None
        assert findings(house, "server-without-instance") == 1
        assert await found(house, NOBODY) == ["server-without-instance"]

    in_a_compute(scenario)


def test_c08_no_more_strays_are_removed_at_once_than_the_breaker_lets_pass() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        for number in range(25):
            instance = await house.instance(network, f"i{number}")
            uid = (await stored(house, instance)).uid
            await house.root.delete(at(instance))
            await house.until_gone(instance)
            await tagged_server(house, network, f"i{number}", instance=instance, uid=uid)
        await rest(house, 4 * LOOK_S)
        assert len((await house.store.list(Server)).items) == 5
        assert findings(house, "server-without-instance") == 5
        assert (await house.root.post(RELEASE)).status == 202
        await rest(house, 2 * LOOK_S)
        assert (await house.store.list(Server)).items == []

    in_a_compute(scenario, is_instant=True)


def test_c08_leftovers_that_were_kept_from_going_by_the_dozen_go_when_an_operator_lets_them() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        names = [f"i{number}" for number in range(5)]
        for name in names:
            instance = await house.instance(network, name)
            uid = (await stored(house, instance)).uid
            await house.root.delete(at(instance))
            await house.until_gone(instance)
            await tagged_server(house, network, name, instance=instance, uid=uid)
        anew = [await house.instance(network, name) for name in names]
        await rest(house, 60)
        told = [(await house.read(each))["metadata"]["provisioningStatusDetail"]["reason"] for each in anew]
        assert sorted(told) == ["MassDestruction"] * 2 + ["Provisioned"] * 3
        assert (await house.root.post(RELEASE)).status == 202
        for each in anew:
            await house.until(each, "provisioned")

    in_a_compute(scenario, is_instant=True)


def test_c08_a_server_of_another_incarnation_than_was_let_go_waits_for_an_operator() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        instance = await made(house, network, "web")
        await house.root.delete(at(instance))
        await house.until_gone(instance)
        other = await tagged_server(house, network, "web", instance=instance, uid=NOBODY)
        await rest(house, 4 * LOOK_S)
        assert await server_of(house, other) is not None
        assert findings(house, "server-without-instance") == 1

    in_a_compute(scenario)


def test_c08_what_is_held_for_nobody_is_given_back_after_two_looks() -> None:
    async def scenario(house: ComputeHouse) -> None:
        region, identity = house.region, house.app.ports.identity
        charge = Charge(
            payer=Place(region.organization, region.project),
            operation="a0000000-0000-4000-8000-00000000000a",
            kind=INSTANCE.qualified,
            id=NOBODY,
            amounts=(Amount("servers", 1),),
        )
        await identity.allocate(charge)
        assert await identity.confirm(charge)
        seldom_s = 72 * 20
        await rest(house, seldom_s + 60)
        assert await held(house) == [{"servers": 1}], "it was seen once"
        await rest(house, seldom_s)
        assert await held(house) == []
        assert await found(house, NOBODY, "Repaired") == ["allocation-without-owner"]

    in_a_compute(scenario, settings=ComputeSettings(check_every=timedelta(seconds=20)))


@pytest.mark.parametrize("is_released", [True, False])
def test_c08_what_is_held_wrongly_is_put_right(is_released: bool) -> None:  # noqa: FBT001  a parameter of the test
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        charge, identity = charge_for(await stored(house, instance)), house.app.ports.identity
        if is_released:
            await identity.release(charge)
        else:
            amounts = (Amount("servers", 1), Amount("floatingips", 1))
            await identity.change(
                Charge(payer=charge.payer, operation=charge.operation, kind=charge.kind, id=charge.id, amounts=amounts)
            )
        wrong = await held(house)
        await rest(house, LOOK_S)
        assert await held(house) == wrong, "it was seen once"
        await rest(house, LOOK_S)
        assert await held(house) == [{"servers": 1}]
        assert await found(house, instance) == await found(house, instance, "Repaired") == ["allocation-differs"]
        rows = (await house.store.list(Allocation)).items
        assert {row.spec.life for row in rows if row.spec.life != "released"} == {"confirmed"}

    in_a_compute(scenario)


def test_c08_a_state_that_has_not_moved_for_too_long_is_told_once() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        instance = await made(house, network)
        await tagged_server(house, network, "twin", instance=instance, uid=(await stored(house, instance)).uid)
        await rest(house, 5 * LOOK_S)
        assert findings(house, "stuck") == 0
        await rest(house, 3 * LOOK_S)
        assert findings(house, "stuck") == 1
        (told,) = [each for each in await timeline(house, instance) if each["event"] == "Finding"]
        assert "not clear which server" in told["message"]

    in_a_compute(scenario)


@pytest.mark.parametrize("label", SCOPE)
@pytest.mark.parametrize("value", ["", "another", NOBODY])
@pytest.mark.parametrize("is_deleted", [False, True])
def test_c08_c12_damaged_labels_are_found_and_told(label: str, value: str, is_deleted: bool) -> None:  # noqa: FBT001  a parameter of the test
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        before = await stored(house, instance)
        labels = dict(before.metadata.labels) | {label: value}
        await house.store.update(replace(before, metadata=replace(before.metadata, labels=labels)))
        if is_deleted:
            await house.store.delete(ComputeInstance, instance, uid=before.uid)
        await rest(house, 2 * LOOK_S)
        assert await found(house, instance) == ["damaged"]
        assert findings(house, "damaged") == 1
        assert len(at_cloud(house)) == 1

    in_a_compute(scenario)


def test_c08_c12_a_prefix_that_is_none_is_found_and_told() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        networking = (await stored(house, instance)).spec.networking
        await choose(house, instance, networking=replace(networking, allowed_source_addresses=("nope",)))
        await rest(house, 2 * LOOK_S)
        assert await found(house, instance) == ["damaged"]
        assert findings(house, "damaged") == 1

    in_a_compute(scenario)


def test_m18_an_instance_whose_network_went_while_nobody_watched_is_ended() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        instance = await made(house, network)

        async def end_network() -> None:
            found = await house.store.get(Network, network)
            await house.store.delete(Network, network, uid=found.uid)

        async with begun_anew(house, end_network):
            assert await find(house.store, Network, network) is None
            await rest(house, 4 * LOOK_S)
            assert await find(house.store, ComputeInstance, instance) is None
            assert "NetworkDeleted" in await events(house, instance)
            assert await held(house) == []

    in_a_compute(scenario)


def test_it_looks_as_often_as_it_is_told() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        await choose(house, instance, server_id=NOBODY)
        await rest(house, 30)
        assert findings(house, "damaged") == 1

    in_a_compute(scenario, settings=ComputeSettings(check_every=timedelta(seconds=20)))
