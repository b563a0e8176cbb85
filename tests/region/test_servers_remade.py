"""How often a server vanished at its cloud and was made again: each time is counted once, and nothing else is."""

import pytest

from tests.region.servers_ground import DEBIAN, STANDARD, Yard, in_yard, update


async def _running(yard: Yard) -> str:
    server = await yard.make_server(await yard.make_network())
    await yard.rest()
    return server


async def _remade(yard: Yard, server: str) -> int:
    count: int = (await yard.read(server))["status"].get("timesMadeAgain", 0)
    assert count == (await yard.stored(server)).status.remade
    return count


@pytest.mark.parametrize("is_answered", [True, False])
def test_each_time_is_counted_also_if_whoever_made_it_did_not_hear_that_it_was_made(*, is_answered: bool) -> None:
    async def scenario(yard: Yard) -> None:
        server = await _running(yard)
        for time in (1, 2):
            if not is_answered:
                yard.at_fault("timeout_done", "create_server")
            yard.cloud.operator.vanish(server)
            for driver in yard.drivers:
                await driver.scan()
            await yard.rest()
            assert await _remade(yard, server) == time
            assert len(yard.at_cloud()) == 1

    in_yard(scenario, at_work=True)


def test_what_somebody_asked_for_and_what_never_came_up_is_not_counted() -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        await yard.world.clock.sleep(1)
        yard.cloud.operator.fail(server, "no machine starts")
        await yard.rest()
        await yard.replace(server, flavorId=STANDARD)
        await yard.rest()
        await yard.put(server, update(flavorId=STANDARD, imageId=DEBIAN))
        await yard.rest()
        assert [(each.state, each.flavor, each.image) for each in yard.at_cloud()] == [("running", STANDARD, DEBIAN)]
        assert await _remade(yard, server) == 0

    in_yard(scenario, at_work=True, is_instant=False)
