"""How servers go: nothing is left at the cloud, and what was theirs is given back after that."""

import pytest

from remuda.providers.simulated.faults import FaultBounds
from remuda.region.servers.routes import SERVERS
from tests.example.contract import Reply
from tests.region.room import refusal
from tests.region.servers_ground import SMALL, TENANT, UBUNTU, Yard, in_yard


def test_an_address_is_given_back_after_the_cloud_has_let_go_of_it() -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network(), networking={"publicIP": True})
        await yard.rest()
        watched: list[tuple[bool, bool]] = []
        await yard.delete(server)
        for _ in range(200):
            watched.append((bool(await yard.ports() or yard.at_cloud()), bool(await yard.addresses())))
            await yard.world.clock.sleep(0.2)
        assert (True, False) not in watched
        assert watched[-1] == (False, False)
        assert (False, True) in watched, "it is looked for twice"
        await yard.nothing_is_left()

    in_yard(scenario, at_work=True, is_instant=False)


@pytest.mark.parametrize("after_s", [0, 0.05, 0.2, 0.4, 1.0, 2.0, 3.0])
def test_a_server_that_is_given_up_while_it_is_made_leaves_nothing(after_s: float) -> None:
    async def scenario(yard: Yard) -> None:
        network = await yard.make_network()
        server = await yard.make_server(network)
        await yard.world.clock.sleep(after_s)
        await yard.delete(server)
        await yard.rest()
        await yard.nothing_is_left()

    in_yard(scenario, at_work=True, is_instant=False)


@pytest.mark.parametrize("verb", ["converge_port", "create_server"])
def test_what_was_asked_for_and_not_answered_is_waited_for_before_it_is_called_gone(verb: str) -> None:
    async def scenario(yard: Yard) -> None:
        network = await yard.make_network()
        yard.at_fault("timeout_done", verb)
        server = await yard.make_server(network)
        await yard.world.clock.sleep(5)
        await yard.delete(server)
        await yard.rest()
        await yard.rest()
        await yard.nothing_is_left()

    in_yard(scenario, at_work=True)


@pytest.mark.parametrize("verb", ["converge_port", "create_server"])
def test_what_the_cloud_is_slow_to_do_is_not_called_gone_before_it_is_done(verb: str) -> None:
    async def scenario(yard: Yard) -> None:
        network = await yard.make_network()
        yard.at_fault("slow", verb)
        server = await yard.make_server(network)
        await yard.world.clock.sleep(5)
        await yard.delete(server)
        await yard.world.clock.sleep(1000)
        await yard.nothing_is_left()

    in_yard(scenario, at_work=True, bounds=FaultBounds(slow_s=600))


def test_the_next_server_of_the_name_is_another_one() -> None:
    async def scenario(yard: Yard) -> None:
        network = await yard.make_network()
        first = await yard.make_server(network)
        await yard.rest()
        (made,) = yard.at_cloud()
        await yard.delete(first)
        assert refusal(await _post_again(yard, network)) == (409, "the requested resource already exists")
        await yard.rest()
        second = await yard.make_server(network)
        await yard.rest()
        assert second == first
        (now,) = yard.at_cloud()
        assert now.handle != made.handle
        assert [each.spec.holder_uid for each in await yard.addresses()] == [(await yard.stored(second)).uid]

    in_yard(scenario, at_work=True)


async def _post_again(yard: Yard, network: str) -> Reply:
    spec = {"networkId": network, "flavorId": SMALL, "imageId": UBUNTU}
    return await yard.servers.ask(TENANT).post(SERVERS, {"metadata": {"name": "web"}, "spec": spec})
