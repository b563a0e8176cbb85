"""Which server is whose: the watch of servers, and what is made of those that are odd."""

import dataclasses
from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.compute.instances.server_watch import Following
from remuda.compute.kinds import ComputeInstance
from remuda.compute.ports import ServerFacts, ServerSeen
from remuda.quota.ports import Place
from remuda.reconcile.reporter import PassOutcome, Silent
from remuda.reconcile.results import Run
from remuda.region.kinds.servers import Server
from remuda.resources.conventions import NETWORK, PROJECT, REGION
from tests.compute.asking import at
from tests.compute.controlling import (
    UNHURRIED,
    Counting,
    at_cloud,
    begun_anew,
    delete_server,
    made,
    metric,
    network_of,
    rest,
    said,
    server_of,
    stored,
    tagged_server,
    timeline,
)
from tests.compute.house import ComputeHouse, in_a_compute

NOBODY = "e0000000-0000-4000-8000-00000000000e"


tagged = pytest.mark.parametrize("names_incarnation", [True, False])
"""A server names the incarnation of an instance, or the instance alone, as the reference tags it."""


@tagged
def test_c02_several_servers_are_said_counted_and_told_and_nothing_is_done_to_any(*, names_incarnation: bool) -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        instance = await made(house, network)
        uid = (await stored(house, instance)).uid if names_incarnation else ""
        other = await tagged_server(house, network, "twin", instance=instance, uid=uid)
        await rest(house, 200)
        found = await said(house, instance)
        assert (found.status, found.reason) == ("False", "AmbiguousServer")
        assert instance in found.message
        assert other in found.message
        (told,) = [each for each in await timeline(house, instance) if each["event"] == "AmbiguousServer"]
        assert set(told["servers"]) == {instance, other}
        assert metric(house, "remuda_compute_ambiguous_servers_total") == 1
        assert metric(house, "remuda_compute_odd_servers_total", why="duplicate") == 1
        assert {each.state for each in at_cloud(house)} == {"running"}
        assert len(at_cloud(house)) == 2
        await delete_server(house, other)
        await rest(house, 5)
        assert (await house.read(instance))["metadata"]["provisioningStatus"] == "provisioned"

    in_a_compute(scenario)


@tagged
def test_c02_a_single_server_that_is_not_the_linked_one_is_not_taken_for_it(*, names_incarnation: bool) -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        instance = await made(house, network)
        uid = (await stored(house, instance)).uid if names_incarnation else ""
        other = await tagged_server(house, network, "twin", instance=instance, uid=uid)
        await delete_server(house, instance)
        await rest(house)
        assert (await said(house, instance)).reason == "AmbiguousServer"
        assert await server_of(house, instance) is None
        assert await server_of(house, other) is not None
        refused = await house.root.post(f"{at(instance)}/stop")
        assert (refused.status, refused.json["code"]) == (500, "inconsistent")
        assert {each.state for each in at_cloud(house)} == {"running"}
        waits = (await house.root.get(f"{at(instance)}/explain")).json["waits"]
        assert [each["reason"] for each in waits] == ["AmbiguousServer"]

    in_a_compute(scenario)


def test_c02_a_server_of_which_it_is_not_clear_whose_it_is_stays_when_the_instance_goes() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        instance = await made(house, network)
        other = await tagged_server(house, network, "twin", instance=instance)
        await rest(house)
        assert (await house.root.delete(at(instance))).status == 202
        await house.until_gone(instance)
        await rest(house, 700)
        assert [each.name for each in (await house.store.list(Server)).items] == [other]
        assert metric(house, "remuda_compute_findings", checker="server-without-instance") == 1

    in_a_compute(scenario)


def test_m16_a_change_of_the_server_reaches_the_instance_at_once() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        server = await house.store.get(Server, instance)
        await house.store.update_status(replace(server, status=replace(server.status, public_ip="203.0.113.9")))
        await house.clock.sleep(0.5)
        assert (await stored(house, instance)).status.public_ip == "203.0.113.9"

    in_a_compute(scenario)


def test_m16_a_change_of_the_server_while_nobody_watched_is_seen_at_the_next_start() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        server = await house.store.get(Server, instance)
        following = _Woken(house)
        assert await following.woken_by(instance) == [], "it is at rest, and shows all there is"
        await house.app.stop()
        changed = replace(server, status=replace(server.status, public_ip="203.0.113.9"))
        await house.store.update_status(changed)
        assert await following.woken_by(instance) == [instance]

    in_a_compute(scenario)


class _Woken:
    """What a watch of servers would wake."""

    has_begun = True

    def __init__(self, house: ComputeHouse) -> None:
        self.woken: list[str] = []
        self._house = house
        ports = house.app.ports
        fresh: Any = type(ports.metrics)()
        self._following = Following(_with(ports, metrics=fresh), self)

    def wake(self, key: str) -> None:
        self.woken.append(key)

    async def woken_by(self, instance: str) -> list[str]:
        """Return who is woken by the server of an instance, as it is now."""
        found = await stored(self._house, instance)
        labels, region = found.metadata.labels, self._house.app.ports.region
        place = Place(self._house.region.organization, labels[PROJECT])
        self.woken.clear()
        for server in await region.servers_of(instance, place, labels[REGION], labels[NETWORK]):
            await self._following.notice(server)
        return list(self.woken)


def _with(ports: Any, **changes: Any) -> Any:
    return dataclasses.replace(ports, **changes)


def test_c05_finding_the_instance_of_a_server_is_one_lookup_however_many_there_are() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        instances = [await made(house, network, f"i{number}") for number in range(5)]
        counting = Counting(house.store)
        woken: list[str] = []

        class Controller:
            has_begun = True

            def wake(self, key: str) -> None:
                woken.append(key)

        fresh: Any = type(house.app.ports.metrics)()
        following = Following(_with(house.app.ports, store=counting, metrics=fresh), Controller())
        await following.notice(_seen(instances[3], uid=(await stored(house, instances[3])).uid))
        assert counting.asked == {"get": 1}
        assert woken == [instances[3]]

    in_a_compute(scenario)


def _seen(instance: str, *, uid: str, server: str = "") -> ServerSeen:
    return ServerSeen(
        id=server or instance,
        name="x",
        place=Place("o", "p"),
        region="r",
        network="n",
        instance=instance,
        incarnation=uid,
        facts=ServerFacts(flavor="f", image="i"),
        settling="provisioned",
    )


def test_c06_a_server_whose_instance_is_not_there_is_counted_once_and_nobody_is_woken() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        await tagged_server(house, network, "stray", instance=NOBODY, uid=NOBODY)
        await rest(house)
        assert metric(house, "remuda_compute_odd_servers_total", why="missing") == 1
        assert metric(house, "remuda_compute_odd_servers_total", why="duplicate") == 0
        assert len(at_cloud(house)) == 1, "the watch removes nothing"

    in_a_compute(scenario)


def test_c04_everything_asks_region_through_the_one_port_that_compute_was_given() -> None:
    async def scenario(house: ComputeHouse) -> None:
        port = house.app.ports.region
        counted: Counter[str] = Counter()
        plain = type(port).servers_anywhere

        async def counting(self: Any, *args: Any) -> Any:
            counted[str(id(self))] += 1
            return await plain(self, *args)

        network = await network_of(house)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(type(port), "servers_anywhere", counting)
            for number in range(3):
                await made(house, network, f"i{number}")
        assert set(counted) == {str(id(port))}
        assert counted.total() >= 6

    in_a_compute(scenario)


def test_an_instance_at_rest_is_looked_at_again_without_a_write() -> None:
    async def scenario(house: ComputeHouse) -> None:
        instance = await made(house, await network_of(house))
        await rest(house)
        before = await stored(house, instance)
        (driver,) = house.app.drivers.values()
        assert await driver.scan() == 1
        await rest(house)
        assert (await stored(house, instance)).version == before.version
        assert isinstance(before, ComputeInstance)

    in_a_compute(scenario)


def test_m16_a_start_wakes_nobody_without_a_reason_and_hurries_those_that_are_unsettled() -> None:
    async def scenario(house: ComputeHouse) -> None:
        network = await network_of(house)
        resting = [await made(house, network, f"i{number}") for number in range(5)]
        looked_at: Counter[str] = Counter()

        class Counts(Silent):
            def finished(self, run: Run, outcome: PassOutcome, seconds: float) -> None:  # noqa: ARG002  as told
                looked_at[run.key] += 1

        async def meanwhile() -> None:
            server = await house.store.get(Server, resting[2])
            await house.store.update_status(replace(server, status=replace(server.status, public_ip="203.0.113.9")))

        new = await house.instance(network, "new")
        async with begun_anew(house, meanwhile, reporter=Counts(), control=UNHURRIED):
            await house.until(new, "provisioned")
            await rest(house, 20)
            assert (await stored(house, resting[2])).status.public_ip == "203.0.113.9"
            assert set(looked_at) <= {new, resting[2], min(new, *resting)}, "the first of the scan is looked at as well"

    in_a_compute(scenario)
