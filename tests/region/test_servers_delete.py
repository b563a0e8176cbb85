"""How servers go: nothing is left at the cloud, and what was theirs is released after that."""

import pytest

from remuda.providers.simulated.faults import FaultBounds
from remuda.region.servers.routes import SERVERS
from tests.kit.asgi.contract import Reply
from tests.kit.environment import options
from tests.kit.region.resource_api import rejection
from tests.kit.region.servers import SMALL, TENANT, UBUNTU, ServersEnvironment


@options(at_work=True, is_instant=False)
async def test_an_address_is_released_after_the_cloud_has_release_it(region_servers: ServersEnvironment) -> None:
    server = await region_servers.make_server(await region_servers.make_network(), networking={"publicIP": True})
    await region_servers.rest()
    watched: list[tuple[bool, bool]] = []
    await region_servers.delete(server)
    for _ in range(200):
        watched.append(
            (bool(await region_servers.ports() or region_servers.at_cloud()), bool(await region_servers.addresses()))
        )
        await region_servers.world.clock.sleep(0.2)
    assert (True, False) not in watched
    assert watched[-1] == (False, False)
    assert (False, True) in watched, "it is looked for twice"
    await region_servers.nothing_is_left()


@pytest.mark.parametrize("after_s", [0, 0.05, 0.2, 0.4, 1.0, 2.0, 3.0])
@options(at_work=True, is_instant=False)
async def test_a_server_that_is_given_up_while_it_is_made_leaves_nothing(
    region_servers: ServersEnvironment, after_s: float
) -> None:
    network = await region_servers.make_network()
    server = await region_servers.make_server(network)
    await region_servers.world.clock.sleep(after_s)
    await region_servers.delete(server)
    await region_servers.rest()
    await region_servers.nothing_is_left()


@pytest.mark.parametrize("verb", ["converge_port", "create_server"])
@options(at_work=True)
async def test_what_was_asked_for_and_not_answered_is_waited_for_before_it_is_called_gone(
    region_servers: ServersEnvironment, verb: str
) -> None:
    network = await region_servers.make_network()
    region_servers.at_fault("timeout_after_write", verb)
    server = await region_servers.make_server(network)
    await region_servers.world.clock.sleep(5)
    await region_servers.delete(server)
    await region_servers.rest()
    await region_servers.rest()
    await region_servers.nothing_is_left()


@pytest.mark.parametrize("verb", ["converge_port", "create_server"])
@options(at_work=True, bounds=FaultBounds(slow_s=600))
async def test_what_the_cloud_is_slow_to_do_is_not_called_gone_before_it_is_done(
    region_servers: ServersEnvironment, verb: str
) -> None:
    network = await region_servers.make_network()
    region_servers.at_fault("slow", verb)
    server = await region_servers.make_server(network)
    await region_servers.world.clock.sleep(5)
    await region_servers.delete(server)
    await region_servers.world.clock.sleep(1000)
    await region_servers.nothing_is_left()


@options(at_work=True)
async def test_the_next_server_of_the_name_is_another_one(region_servers: ServersEnvironment) -> None:
    network = await region_servers.make_network()
    first = await region_servers.make_server(network)
    await region_servers.rest()
    (made,) = region_servers.at_cloud()
    await region_servers.delete(first)
    assert rejection(await _post_again(region_servers, network)) == (409, "the requested resource already exists")
    await region_servers.rest()
    second = await region_servers.make_server(network)
    await region_servers.rest()
    assert second == first
    (now,) = region_servers.at_cloud()
    assert now.handle != made.handle
    assert [each.spec.holder_uid for each in await region_servers.addresses()] == [
        (await region_servers.stored(second)).uid
    ]


async def _post_again(region_servers: ServersEnvironment, network: str) -> Reply:
    spec = {"networkId": network, "flavorId": SMALL, "imageId": UBUNTU}
    return await region_servers.servers.ask(TENANT).post(SERVERS, {"metadata": {"name": "web"}, "spec": spec})
