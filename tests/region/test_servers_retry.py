"""Servers that a cloud cannot bring up: they are recreated so many times, and then an operator is waited for."""

from collections.abc import Callable

import pytest

from remuda.providers.contract.servers import CloudServer
from remuda.providers.simulated.catalogue import SimDurations
from remuda.providers.simulated.faults import NO_LATENCY
from remuda.region.kinds.common import RETRIED
from remuda.region.recovery.rules import annotated, retried_server
from tests.kit.environment import options
from tests.kit.region.servers import ServersEnvironment

STEP_S = 0.25


async def _meanwhile(
    region_servers: ServersEnvironment,
    seconds: float,
    fails: Callable[[CloudServer], bool] = lambda each: each.state == "building",
) -> int:
    """Let time pass, break what is to fail, and return how often that was; there is never more than one server."""
    broken = 0
    for _ in range(int(seconds / STEP_S)):
        for each in region_servers.at_cloud():
            if fails(each):
                region_servers.cloud.operator.fail(each.id, "no machine starts")
                broken += 1
        assert len(region_servers.at_cloud()) <= 1
        await region_servers.world.clock.sleep(STEP_S)
    return broken


async def _status(region_servers: ServersEnvironment, server: str) -> tuple[str, str]:
    metadata = (await region_servers.read(server))["metadata"]
    return metadata["provisioningStatus"], metadata["healthStatus"]


@options(at_work=True, is_instant=False)
async def test_a_server_that_fails_once_is_recreated_with_the_same_address(region_servers: ServersEnvironment) -> None:
    network = await region_servers.make_network()
    server = await region_servers.make_server(network)
    await region_servers.world.clock.sleep(1)
    (made,), (port,) = region_servers.at_cloud(), await region_servers.ports()
    region_servers.cloud.operator.fail(server, "no machine starts")
    await region_servers.rest()
    assert await _status(region_servers, server) == ("provisioned", "healthy")
    (now,) = region_servers.at_cloud()
    assert now.id != made.id
    assert [(each.spec.address, each.spec.mac) for each in await region_servers.ports()] == [
        (port.spec.address, port.spec.mac)
    ]
    status = (await region_servers.stored(server)).status
    assert (status.provider_create_failures, status.provider_create_retrying) == (0, False)
    assert "CreateFailed" in await region_servers.timeline(server)
    await region_servers.confirm_absence()


@options(at_work=True, is_instant=False)
async def test_while_it_is_recreated_it_says_so(region_servers: ServersEnvironment) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.world.clock.sleep(1)
    region_servers.cloud.operator.fail(server, "no machine starts")
    await region_servers.world.clock.sleep(0.5)
    stored = await region_servers.stored(server)
    assert stored.status.provider_create_failures == 1
    assert (await _status(region_servers, server))[0] == "provisioning"
    assert stored.status.mac_address
    assert stored.status.provisioned_at is None


async def _given_up(region_servers: ServersEnvironment) -> str:
    """Return a server that nobody tries to make any more."""
    server = await region_servers.make_server(await region_servers.make_network())
    assert await _meanwhile(region_servers, 120) == 3
    assert await _status(region_servers, server) == ("error", "error")
    assert (await region_servers.available(server)).message == "the server could not be started: no machine starts"
    assert (await region_servers.stored(server)).status.provider_create_failures == 3
    told = await region_servers.timeline(server)
    assert [each for each in told if each in {"CreateFailed", "AttemptsExhausted"}] == ["CreateFailed"] * 2 + [
        "AttemptsExhausted"
    ]
    await region_servers.confirm_absence()
    return server


@options(at_work=True, is_instant=False)
async def test_after_so_many_failures_it_waits_for_an_operator_who_has_it_tried_again(
    region_servers: ServersEnvironment,
) -> None:
    server = await _given_up(region_servers)
    reset = await region_servers.store.update_status(retried_server(await region_servers.stored(server)))
    await region_servers.store.update(annotated(reset, RETRIED, "now"))
    assert await _meanwhile(region_servers, 120) == 2, "the one that is there counts as the first"
    assert await _status(region_servers, server) == ("error", "error")
    reset = await region_servers.store.update_status(retried_server(await region_servers.stored(server)))
    await region_servers.store.update(annotated(reset, RETRIED, "again"))
    await region_servers.rest()
    assert await _status(region_servers, server) == ("provisioned", "healthy")
    assert len(region_servers.at_cloud()) == len(await region_servers.ports()) == 1
    await region_servers.confirm_absence()


@options(at_work=True, is_instant=False)
async def test_what_was_given_up_on_can_be_given_up(region_servers: ServersEnvironment) -> None:
    await region_servers.delete(await _given_up(region_servers))
    await region_servers.rest()
    await region_servers.nothing_is_left()


@pytest.mark.parametrize("fault", ["timeout_after_write", "error_after_write", "error"])
@options(at_work=True, is_instant=False)
async def test_each_failure_counts_once_whatever_answers_are_lost(
    region_servers: ServersEnvironment, fault: str
) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    for nth in range(2):
        region_servers.at_fault(fault, "remove_server", after=nth)  # type: ignore[arg-type]  # it is one
    assert await _meanwhile(region_servers, 400) == 3
    assert (await region_servers.stored(server)).status.provider_create_failures == 3
    assert await _status(region_servers, server) == ("error", "error")


@pytest.mark.parametrize("seen_at_once", range(4))
@options(lambda: {"times": SimDurations(boot_s=2.0, remove_s=0.0)}, at_work=True, is_instant=False, latency=NO_LATENCY)
async def test_an_old_read_of_what_failed_is_not_taken_for_another_failure(
    region_servers: ServersEnvironment, seen_at_once: int
) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.world.clock.sleep(1)
    region_servers.cloud.operator.fail(server, "no machine starts")
    for nth in range(seen_at_once, 40):
        region_servers.at_fault("stale", "find_server", after=nth)
    await region_servers.rest()
    await region_servers.rest()
    assert await _status(region_servers, server) == ("provisioned", "healthy")
    assert (await region_servers.timeline(server)).count("CreateFailed") == 1


@options(at_work=True, is_instant=False)
async def test_a_failure_counts_though_the_answer_to_its_making_was_lost(region_servers: ServersEnvironment) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    for nth in range(3):
        region_servers.at_fault("error_after_write", "create_server", after=nth)
    assert await _meanwhile(region_servers, 400) == 3
    assert (await region_servers.stored(server)).status.provider_create_failures == 3


@options(at_work=True, is_instant=False)
async def test_what_once_ran_is_counted_again(region_servers: ServersEnvironment) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.world.clock.sleep(1)
    region_servers.cloud.operator.fail(server, "no machine starts")
    await region_servers.rest()
    region_servers.cloud.operator.vanish(server)
    assert await _meanwhile(region_servers, 120) == 3
    assert (await _status(region_servers, server))[0] == "error"


@options(at_work=True)
async def test_what_the_cloud_does_not_offer_any_more_is_waited_for_and_said(
    region_servers: ServersEnvironment,
) -> None:
    network = await region_servers.make_network()
    server = await region_servers.make_server(network)
    storage = region_servers.cloud._context  # what the cloud offers
    offered = storage.catalogue.flavors
    object.__setattr__(storage.catalogue, "flavors", ())
    await region_servers.world.clock.sleep(5)
    assert (await region_servers.available(server)).reason == "ProviderRejected"
    object.__setattr__(storage.catalogue, "flavors", offered)
    await region_servers.world.clock.sleep(600)
    assert await _status(region_servers, server) == ("provisioned", "healthy")
