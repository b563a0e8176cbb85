"""A region that runs out of capacity: what a server loses by that, and what is said of it meanwhile."""

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.providers.contract.common import Handle
from remuda.providers.simulated.catalogue import Hosts, load_catalogues
from remuda.region.kinds.servers import ReplacementStatus, Server
from remuda.region.servers.capacity import CapacityReservations
from remuda.region.servers.routes import SERVERS
from tests.kit.environment import options
from tests.kit.region.servers import COMPUTE, SMALL, STANDARD, UBUNTU, ServersEnvironment

HOSTS = dict(load_catalogues()["sim-north"].hosts) | {SMALL: Hosts(count=1, size=1)}


async def _is_asked_for(region_servers: ServersEnvironment, server: str, flavor: str = SMALL) -> int:
    body = {"flavorId": flavor, "imageId": UBUNTU}
    return (await region_servers.servers.ask(COMPUTE).post(f"{SERVERS}/{server}/replace", body)).status


async def _asked_at_once(region_servers: ServersEnvironment, count: int) -> tuple[list[str], dict[str, str]]:
    """Want the only place for so many servers at once; return them, and what each is at the cloud before."""
    network = await region_servers.make_network()
    servers = [
        await region_servers.make_server(network, f"server-{number}", flavorId=STANDARD) for number in range(count)
    ]
    await region_servers.rest()
    before = {server: (await region_servers.stored(server)).status.provider_id for server in servers}
    assert [await _is_asked_for(region_servers, server) for server in servers] == [202] * count, "there is a place yet"
    await region_servers.rest()
    return servers, before


async def _settling(region_servers: ServersEnvironment, server: str) -> str:
    return str((await region_servers.read(server))["metadata"]["provisioningStatus"])


@options(at_work=True, hosts=HOSTS)
async def test_how_much_capacity_there_is_is_asked_afresh_before_anything_is_destroyed(
    region_servers: ServersEnvironment,
) -> None:
    network = await region_servers.make_network()
    server = await region_servers.make_server(network, flavorId=STANDARD)
    await region_servers.make_server(network, "other", flavorId=SMALL)
    await region_servers.rest()
    assert await _is_asked_for(region_servers, server) == 422, "the last place went a moment ago"
    await region_servers.rest()
    assert len(region_servers.at_cloud()) == 2


@pytest.mark.parametrize("is_instant", [True, False])
@options(lambda is_instant: {"is_instant": is_instant}, at_work=True, hosts=HOSTS)
async def test_of_several_that_want_one_place_all_others_are_kept_until_there_is_another(
    region_servers: ServersEnvironment,
) -> None:
    servers, before = await _asked_at_once(region_servers, 3)
    there = {each.id for each in region_servers.at_cloud()}
    (first,) = [server for server in servers if await _settling(region_servers, server) == "provisioned"]
    kept = [server for server in servers if server != first]
    for server in kept:
        assert before[server] in there
        seen = await region_servers.read(server)
        assert seen["metadata"]["provisioningStatus"] == "error"
        assert "the old server is kept" in seen["metadata"]["provisioningStatusDetail"]["message"]
        assert seen["status"]["powerState"] == "Running"
    await region_servers.delete(first)
    await region_servers.world.clock.sleep(3_600)
    assert sorted([await _settling(region_servers, server) for server in kept]) == ["error", "provisioned"]
    assert len(region_servers.at_cloud()) == len(kept)


@pytest.mark.parametrize("after_s", [0, 0.5, 1, 2, 3, 4, 6, 8])
@options(at_work=True, hosts=HOSTS, is_instant=False)
async def test_who_is_recreated_takes_no_place_that_is_promised_to_a_replacement(
    region_servers: ServersEnvironment, after_s: float
) -> None:
    network = await region_servers.make_network()
    server = await region_servers.make_server(network, flavorId=STANDARD)
    await region_servers.rest()
    (before,) = region_servers.at_cloud()
    assert await _is_asked_for(region_servers, server) == 202
    await region_servers.world.clock.sleep(after_s)
    other = await region_servers.make_server(network, "other", flavorId=SMALL)
    await region_servers.rest()
    ends = [await _settling(region_servers, each) for each in (server, other)]
    assert sorted(ends) == ["error", "provisioned"]
    assert ends[0] == "provisioned" or before.id in {each.id for each in region_servers.at_cloud()}


@options(at_work=True, hosts=HOSTS)
async def test_a_replacement_that_waits_for_capacity_is_rolled_back_and_what_stands_stays(
    region_servers: ServersEnvironment,
) -> None:
    servers, before = await _asked_at_once(region_servers, 2)
    (kept,) = [server for server in servers if await _settling(region_servers, server) == "error"]
    assert await _is_asked_for(region_servers, kept, STANDARD) == 202
    await region_servers.rest()
    seen = await region_servers.read(kept)
    assert (seen["metadata"]["provisioningStatus"], seen["spec"]["flavorId"]) == ("provisioned", STANDARD)
    assert seen["status"].get("replacements", 0) == 0
    assert before[kept] in {each.id for each in region_servers.at_cloud()}
    (other,) = [server for server in servers if server != kept]
    await region_servers.delete(other)
    await region_servers.rest()
    assert await _is_asked_for(region_servers, kept) == 202, "and another may be wanted later"
    await region_servers.rest()
    assert (await region_servers.read(kept))["spec"]["flavorId"] == SMALL
    assert [each.flavor for each in region_servers.at_cloud()] == [SMALL]


@options(at_work=True, hosts=HOSTS, is_instant=False)
async def test_what_has_begun_is_not_rolled_back(region_servers: ServersEnvironment) -> None:
    server = await region_servers.make_server(await region_servers.make_network(), flavorId=STANDARD)
    await region_servers.rest()
    (before,) = region_servers.at_cloud()
    assert await _is_asked_for(region_servers, server) == 202
    while (await region_servers.stored(server)).status.replacement.started == 0:
        await region_servers.world.clock.sleep(0.05)
    assert await _is_asked_for(region_servers, server, STANDARD) == 202
    await region_servers.rest()
    (after,) = region_servers.at_cloud()
    assert (after.flavor, after.id == before.id) == (STANDARD, False)
    assert (await region_servers.read(server))["status"]["replacements"] == 2


@options(at_work=True, hosts=HOSTS)
async def test_a_server_that_vanished_and_has_no_capacity_is_not_called_healthy_and_is_not_written_for_ever(
    region_servers: ServersEnvironment,
) -> None:
    network = await region_servers.make_network()
    server = await region_servers.make_server(network, flavorId=SMALL)
    await region_servers.rest()
    (there,) = region_servers.at_cloud()
    region_servers.cloud.operator.vanish(there.id)
    await region_servers.make_server(network, "other", flavorId=SMALL)
    await region_servers.world.clock.sleep(60)
    seen = await region_servers.read(server)
    assert seen["metadata"]["provisioningStatus"] == "error"
    assert (seen["metadata"]["healthStatus"], seen["status"]["powerState"]) == ("unknown", "Pending")
    await region_servers.world.clock.sleep(3_600)  # in which it is told, once, that it has stalled
    before = await region_servers.stored(server)
    await region_servers.world.clock.sleep(3_600)
    assert (await region_servers.stored(server)).version == before.version


class _Told:
    """A cloud with one free place of every flavor and a server under every name, where something happens meanwhile."""

    def __init__(self, meanwhile: Callable[[], Awaitable[None]]) -> None:
        self.provider = SimpleNamespace(servers=self)
        self._meanwhile = meanwhile

    async def find_server(self, _: Handle) -> object:
        return self

    async def uncached_flavors(self) -> list[SimpleNamespace]:
        await self._meanwhile()
        return [SimpleNamespace(id=SMALL, free=1)]


async def _begun_and_asking(region_servers: ServersEnvironment) -> tuple[Server, Server]:
    """Return two servers that want one place: the replacement of the first has begun, in another process."""
    network = await region_servers.make_network()
    names = [await region_servers.make_server(network, f"server-{number}", flavorId=STANDARD) for number in range(2)]
    for name in names:
        assert await _is_asked_for(region_servers, name) == 202
        found = await region_servers.stored(name)
        turn = ReplacementStatus(started=1 if name == names[0] else 0)
        status = replace(found.status, flavor_id=STANDARD, replacement=turn)
        await region_servers.store.update_status(replace(found, status=status))
    return await region_servers.stored(names[0]), await region_servers.stored(names[1])


@options(hosts=HOSTS)
async def test_a_place_that_another_process_has_promised_is_not_promised_again(
    region_servers: ServersEnvironment,
) -> None:
    _, asking = await _begun_and_asking(region_servers)
    cloud: Any = _Told(lambda: region_servers.world.clock.sleep(0))
    assert not await CapacityReservations(region_servers.store).reserve(asking, cloud, [Handle("tenancy", "old")])


@options(hosts=HOSTS)
async def test_who_takes_its_place_while_the_cloud_is_asked_has_taken_the_one_that_the_cloud_tells_of(
    region_servers: ServersEnvironment,
) -> None:
    begun, asking = await _begun_and_asking(region_servers)

    async def end() -> None:
        turn = ReplacementStatus(started=1, completed=1)
        await region_servers.store.update_status(replace(begun, status=replace(begun.status, replacement=turn)))

    cloud: Any = _Told(end)
    assert not await CapacityReservations(region_servers.store).reserve(asking, cloud, [Handle("tenancy", "old")])
