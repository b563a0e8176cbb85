"""Servers that a cloud cannot bring up: they are made again so many times, and then an operator is waited for."""

from collections.abc import Callable

import pytest

from remuda.providers.contract.servers import Server as CloudServer
from remuda.providers.simulated.catalogue import Times
from remuda.providers.simulated.faults import INSTANT
from remuda.region.kinds.common import RETRIED
from remuda.region.recovery.rules import annotated, retried_server
from tests.region.servers_ground import Yard, in_yard

STEP_S = 0.25


async def _meanwhile(
    yard: Yard, seconds: float, fails: Callable[[CloudServer], bool] = lambda each: each.state == "building"
) -> int:
    """Let time pass, break what is to fail, and return how often that was; there is never more than one server."""
    broken = 0
    for _ in range(int(seconds / STEP_S)):
        for each in yard.at_cloud():
            if fails(each):
                yard.cloud.operator.fail(each.id, "no machine starts")
                broken += 1
        assert len(yard.at_cloud()) <= 1
        await yard.world.clock.sleep(STEP_S)
    return broken


async def _status(yard: Yard, server: str) -> tuple[str, str]:
    metadata = (await yard.read(server))["metadata"]
    return metadata["provisioningStatus"], metadata["healthStatus"]


def test_a_server_that_fails_once_is_made_again_with_the_same_address() -> None:
    async def scenario(yard: Yard) -> None:
        network = await yard.make_network()
        server = await yard.make_server(network)
        await yard.world.clock.sleep(1)
        (made,), (port,) = yard.at_cloud(), await yard.ports()
        yard.cloud.operator.fail(server, "no machine starts")
        await yard.rest()
        assert await _status(yard, server) == ("provisioned", "healthy")
        (now,) = yard.at_cloud()
        assert now.id != made.id
        assert [(each.spec.address, each.spec.mac) for each in await yard.ports()] == [
            (port.spec.address, port.spec.mac)
        ]
        status = (await yard.stored(server)).status
        assert (status.provider_create_failures, status.provider_create_retrying) == (0, False)
        assert "CreateFailed" in await yard.timeline(server)
        await yard.look_again()

    in_yard(scenario, at_work=True, is_instant=False)


def test_while_it_is_made_again_it_says_so() -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        await yard.world.clock.sleep(1)
        yard.cloud.operator.fail(server, "no machine starts")
        await yard.world.clock.sleep(0.5)
        stored = await yard.stored(server)
        assert stored.status.provider_create_failures == 1
        assert (await _status(yard, server))[0] == "provisioning"
        assert stored.status.mac_address
        assert stored.status.provisioned_at is None

    in_yard(scenario, at_work=True, is_instant=False)


async def _given_up(yard: Yard) -> str:
    """Return a server that nobody tries to make any more."""
    server = await yard.make_server(await yard.make_network())
    assert await _meanwhile(yard, 120) == 3
    assert await _status(yard, server) == ("error", "error")
    assert (await yard.available(server)).message == "it could not be brought up: no machine starts"
    assert (await yard.stored(server)).status.provider_create_failures == 3
    told = await yard.timeline(server)
    assert [each for each in told if each in {"CreateFailed", "GivenUp"}] == ["CreateFailed"] * 2 + ["GivenUp"]
    await yard.look_again()
    return server


def test_after_so_many_failures_it_waits_for_an_operator_who_has_it_tried_again() -> None:
    async def scenario(yard: Yard) -> None:
        server = await _given_up(yard)
        reset = await yard.store.update_status(retried_server(await yard.stored(server)))
        await yard.store.update(annotated(reset, RETRIED, "now"))
        assert await _meanwhile(yard, 120) == 2, "the one that is there counts as the first"
        assert await _status(yard, server) == ("error", "error")
        reset = await yard.store.update_status(retried_server(await yard.stored(server)))
        await yard.store.update(annotated(reset, RETRIED, "again"))
        await yard.rest()
        assert await _status(yard, server) == ("provisioned", "healthy")
        assert len(yard.at_cloud()) == len(await yard.ports()) == 1
        await yard.look_again()

    in_yard(scenario, at_work=True, is_instant=False)


def test_what_was_given_up_on_can_be_given_up() -> None:
    async def scenario(yard: Yard) -> None:
        await yard.delete(await _given_up(yard))
        await yard.rest()
        await yard.nothing_is_left()

    in_yard(scenario, at_work=True, is_instant=False)


@pytest.mark.parametrize("fault", ["timeout_done", "error_done", "error"])
def test_each_failure_counts_once_whatever_answers_are_lost(fault: str) -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        for nth in range(2):
            yard.at_fault(fault, "remove_server", after=nth)  # type: ignore[arg-type]  # it is one
        assert await _meanwhile(yard, 400) == 3
        assert (await yard.stored(server)).status.provider_create_failures == 3
        assert await _status(yard, server) == ("error", "error")

    in_yard(scenario, at_work=True, is_instant=False)


@pytest.mark.parametrize("seen_at_once", range(4))
def test_an_old_read_of_what_failed_is_not_taken_for_another_failure(seen_at_once: int) -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        await yard.world.clock.sleep(1)
        yard.cloud.operator.fail(server, "no machine starts")
        for nth in range(seen_at_once, 40):
            yard.at_fault("stale", "find_server", after=nth)
        await yard.rest()
        await yard.rest()
        assert await _status(yard, server) == ("provisioned", "healthy")
        assert (await yard.timeline(server)).count("CreateFailed") == 1

    times = Times(boot_s=2.0, remove_s=0.0)
    in_yard(scenario, at_work=True, is_instant=False, latency=INSTANT, times=times)


def test_a_failure_counts_though_the_answer_to_its_making_was_lost() -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        for nth in range(3):
            yard.at_fault("error_done", "create_server", after=nth)
        assert await _meanwhile(yard, 400) == 3
        assert (await yard.stored(server)).status.provider_create_failures == 3

    in_yard(scenario, at_work=True, is_instant=False)


def test_what_once_ran_is_counted_anew() -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        await yard.world.clock.sleep(1)
        yard.cloud.operator.fail(server, "no machine starts")
        await yard.rest()
        yard.cloud.operator.vanish(server)
        assert await _meanwhile(yard, 120) == 3
        assert (await _status(yard, server))[0] == "error"

    in_yard(scenario, at_work=True, is_instant=False)


def test_what_the_cloud_does_not_offer_any_more_is_waited_for_and_said() -> None:
    async def scenario(yard: Yard) -> None:
        network = await yard.make_network()
        server = await yard.make_server(network)
        storage = yard.cloud._context  # what the cloud offers
        offered = storage.catalogue.flavors
        object.__setattr__(storage.catalogue, "flavors", ())
        await yard.world.clock.sleep(5)
        assert (await yard.available(server)).reason == "ProviderRefused"
        object.__setattr__(storage.catalogue, "flavors", offered)
        await yard.world.clock.sleep(600)
        assert await _status(yard, server) == ("provisioned", "healthy")

    in_yard(scenario, at_work=True)
