"""How often a server vanished at its cloud and was recreated: each time is counted once, and nothing else is."""

import pytest

from tests.kit.environment import options
from tests.kit.region.servers import DEBIAN, STANDARD, ServersEnvironment, update


async def _running(region_servers: ServersEnvironment) -> str:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.rest()
    return server


async def _remade(region_servers: ServersEnvironment, server: str) -> int:
    count: int = (await region_servers.read(server))["status"].get("recreations", 0)
    assert count == (await region_servers.stored(server)).status.recreations
    return count


@pytest.mark.parametrize("is_answered", [True, False])
@options(at_work=True)
async def test_each_time_is_counted_also_if_whoever_made_it_did_not_hear_that_it_was_made(
    region_servers: ServersEnvironment, *, is_answered: bool
) -> None:
    server = await _running(region_servers)
    for time in (1, 2):
        if not is_answered:
            region_servers.at_fault("timeout_after_write", "create_server")
        region_servers.cloud.operator.vanish(server)
        for driver in region_servers.drivers:
            await driver.resync()
        await region_servers.rest()
        assert await _remade(region_servers, server) == time
        assert len(region_servers.at_cloud()) == 1


@options(at_work=True, is_instant=False)
async def test_what_somebody_asked_for_and_what_never_came_up_is_not_counted(
    region_servers: ServersEnvironment,
) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.world.clock.sleep(1)
    region_servers.cloud.operator.fail(server, "no machine starts")
    await region_servers.rest()
    await region_servers.replace(server, flavorId=STANDARD)
    await region_servers.rest()
    await region_servers.put(server, update(flavorId=STANDARD, imageId=DEBIAN))
    await region_servers.rest()
    assert [(each.state, each.flavor, each.image) for each in region_servers.at_cloud()] == [
        ("running", STANDARD, DEBIAN)
    ]
    assert await _remade(region_servers, server) == 0
