"""The end of a project is one call: everything in it goes, in our store and at the cloud, each before what it needs."""

import asyncio
from itertools import count

import pytest

from remuda.region.kinds.networks import IDENTITY, NETWORK, Network
from remuda.region.kinds.servers import SERVER
from remuda.resources.conventions import identity_of
from tests.kit.environment import options
from tests.kit.region.environment import NORTH, STANDARD, UBUNTU, RegionEnvironment
from tests.kit.region.project_deletion import end_project, furnish, left_of, listening, release, until_project_is_gone

SERVERS, PARTS = 200, 5
WITHIN_S = 300.0


async def test_m21_m25_everything_in_a_project_goes_in_order_by_one_call(region: RegionEnvironment) -> None:
    async with listening(region) as heard:
        network = await region.network()
        servers = await furnish(region, network, servers=range(SERVERS), parts=PARTS)
        for server in servers:
            await region.until(f"/api/v2/servers/{server}", "provisioned")
        identity = identity_of(await region.store.get(Network, network))
        await end_project(region)
        await until_project_is_gone(region, within_s=WITHIN_S)
        assert await left_of(region) == {}

    ends, ports = heard.ends("server"), heard.ends("port")
    assert set(ends) == set(ports) == set(servers)
    assert all(ends[server] < ports[server] for server in servers), "a port goes after its server"
    (network_end,), (tenancy_end,) = heard.ends("network").values(), heard.ends("tenancy").values()
    parts = [*heard.ends("group").values(), *heard.ends("balancer").values(), *heard.ends("storage").values()]
    assert len(parts) == 3 * PARTS
    assert max(*ports.values(), *parts) < network_end < tenancy_end

    last_server = max([await release(region, SERVER, server) for server in servers])
    assert last_server < await release(region, NETWORK, network) < await release(region, IDENTITY, identity)


@pytest.mark.parametrize("seed", range(8))
@options(lambda seed: {"seed": seed})
async def test_m25_a_project_that_ends_while_half_of_it_is_being_made_leaves_nothing(
    region: RegionEnvironment, seed: int
) -> None:
    network = await region.network()
    await furnish(region, network, servers=range(6), parts=2)
    numbers, is_ending, made = count(), asyncio.Event(), list[str]()

    async def go_on() -> None:
        """Ask for more until somebody says no."""
        while await _is_given(region, network, next(numbers), made):
            await region.clock.sleep(0.4)
        assert is_ending.is_set(), "nobody is refused before"

    async with asyncio.TaskGroup() as clients:
        for _ in range(3):
            clients.create_task(go_on())
        await region.clock.sleep(0.35 * seed)
        is_ending.set()
        await end_project(region)
    assert made
    await until_project_is_gone(region, within_s=WITHIN_S)
    assert await left_of(region) == {}


async def _is_given(region: RegionEnvironment, network: str, number: int, made: list[str]) -> bool:
    """Ask for something more, and tell whether it was given."""
    place = {"organizationId": region.organization, "projectId": region.project, "regionId": NORTH}
    server = {"networkId": network, "flavorId": STANDARD, "imageId": UBUNTU}
    wanted = [
        ("/api/v2/networks", place | {"prefix": "10.1.0.0/16", "dnsNameservers": []}),
        ("/api/v2/servers", server),
        ("/api/v2/securitygroups", {"networkId": network, "rules": []}),
        ("/api/v2/servers", server),
        ("/api/v2/servers", server),
        ("/api/v2/servers", server),
    ]
    path, spec = wanted[number % len(wanted)]
    reply = await region.root.post(path, {"metadata": {"name": f"more-{number}"}, "spec": spec})
    if reply.status == 201:
        made.append(path)
        return True
    assert 400 <= reply.status < 500, reply
    return False
