"""Servers over a simulated cloud that does things by itself: each ends as it should, and says why."""

from typing import Any

from remuda.providers.contract.common import server_name
from remuda.region.kinds.servers import Server
from tests.kit.identity.environment import expect
from tests.kit.region.environment import STANDARD, UBUNTU, RegionEnvironment
from tests.kit.region.server_view import shown_of

SMALL = "sim-small-1"


async def _flavor(region: RegionEnvironment, name: str) -> str:
    flavors = await region.north.provider.catalogue.flavors()
    return next(each.id for each in flavors if each.name == name)


async def _at_cloud(region: RegionEnvironment, server: str, replacement: int = 0) -> str:
    stored = await region.store.get(Server, server)
    return server_name(server, stored.uid, replacement)


async def _settled(region: RegionEnvironment, server: str) -> Any:
    return await region.until(f"/api/v2/servers/{server}", "provisioned")


async def test_a_replacement_keeps_port_addresses_and_mac(region: RegionEnvironment) -> None:
    server = await region.server(await region.network(), networking={"publicIP": True})
    path, before = f"/api/v2/servers/{server}", await _settled(region, server)
    small = await _flavor(region, SMALL)
    body = {"flavorId": small, "imageId": UBUNTU}
    assert (await region.root.post(f"{path}/replace", body)).status == 403
    compute = region.service("unikorn-compute")
    assert expect(await compute.post(f"{path}/replace", body), 202)["spec"]["flavorId"] == small
    await region.clock.sleep(1.0)
    after = await _settled(region, server)
    assert shown_of(after) == shown_of(before)
    stored = await region.store.get(Server, server)
    assert stored.status.flavor_id == small
    names = [one.handle.name async for part in region.north.provider.servers.server_versions() for one in part]  # type: ignore[union-attr]  # it has them
    assert names == [await _at_cloud(region, server, 1)]


async def test_a_server_that_vanished_is_recreated_with_the_same_addresses(region: RegionEnvironment) -> None:
    server = await region.server(await region.network())
    before = await _settled(region, server)
    first = (await region.store.get(Server, server)).status.provider_id
    region.north.operator.vanish(await _at_cloud(region, server))

    async def is_another() -> bool:
        status = (await region.store.get(Server, server)).status
        return status.provider_id not in {"", first} and status.phase == "Running"

    await region.identity.eventually("another server runs in its place", is_another)
    assert (await _settled(region, server))["status"] == before["status"] | {"recreations": 1}


async def test_a_server_stopped_behind_our_back_says_so_and_is_left_alone(region: RegionEnvironment) -> None:
    server = await region.server(await region.network())
    await _settled(region, server)
    region.north.operator.stop(await _at_cloud(region, server))

    async def is_stopped() -> bool:
        return (await region.store.get(Server, server)).status.phase == "Stopped"

    await region.identity.eventually("it is seen to be stopped", is_stopped)
    await region.clock.sleep(30.0)
    assert await is_stopped()
    assert (await _settled(region, server))["metadata"]["provisioningStatus"] == "provisioned"


async def test_a_flavor_without_capacity_is_waited_for_and_says_so(region: RegionEnvironment) -> None:
    metal = await _flavor(region, "sim-gpu-64")
    images = await region.north.provider.images.images()  # type: ignore[union-attr]  # it has them
    image = next(each.id for each in images if each.architecture == "x86_64" and each.virtualization != "baremetal")
    network = await region.network()
    servers = [await region.server(network, f"metal-{n}", flavorId=metal, imageId=image) for n in range(5)]
    await region.clock.sleep(60.0)
    reads = [(await region.root.get(f"/api/v2/servers/{each}")).json["metadata"] for each in servers]
    waiting = [each for each in reads if each["provisioningStatus"] != "provisioned"]
    assert len(waiting) == 1
    assert waiting[0]["provisioningStatusDetail"]["reason"] == "NoCapacity"
    settled = next(each for each in reads if each["provisioningStatus"] == "provisioned")
    assert (await region.root.delete(f"/api/v2/servers/{settled['id']}")).status == 202
    await _settled(region, waiting[0]["id"])


async def test_two_servers_of_one_name_on_one_network_are_one(region: RegionEnvironment) -> None:
    network = await region.network()
    await region.server(network, "one")
    spec = {"networkId": network, "flavorId": STANDARD, "imageId": UBUNTU}
    reply = await region.root.post("/api/v2/servers", {"metadata": {"name": "one"}, "spec": spec})
    assert reply.status == 409
