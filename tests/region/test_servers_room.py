"""A region that runs out of room: what a server loses by that, and what is said of it meanwhile."""

from remuda.providers.simulated.catalogue import Hosts
from remuda.providers.simulated.catalogue_file import load_catalogues
from remuda.region.servers.api import SERVERS
from tests.region.servers_ground import COMPUTE, SMALL, STANDARD, UBUNTU, Yard, in_yard

HOSTS = dict(load_catalogues()["sim-north"].hosts) | {SMALL: Hosts(count=1, size=1)}


async def _is_asked_for(yard: Yard, server: str) -> int:
    body = {"flavorId": SMALL, "imageId": UBUNTU}
    return (await yard.servers.ask(COMPUTE).post(f"{SERVERS}/{server}/replace", body)).status


def test_how_much_room_there_is_is_asked_afresh_before_anything_is_destroyed() -> None:
    async def scenario(yard: Yard) -> None:
        network = await yard.make_network()
        server = await yard.make_server(network, flavorId=STANDARD)
        await yard.make_server(network, "other", flavorId=SMALL)
        await yard.rest()
        assert await _is_asked_for(yard, server) == 422, "the last place went a moment ago"
        await yard.rest()
        assert len(yard.at_cloud()) == 2

    in_yard(scenario, at_work=True, hosts=HOSTS)


def test_a_server_is_kept_while_there_is_no_room_for_the_one_that_takes_its_place() -> None:
    async def scenario(yard: Yard) -> None:
        network = await yard.make_network()
        server = await yard.make_server(network, flavorId=STANDARD)
        await yard.rest()
        (before,) = yard.at_cloud()
        other = await yard.make_server(network, "other", flavorId=SMALL)
        assert await _is_asked_for(yard, server) == 202, "there is a place yet, and two want it"
        await yard.rest()
        assert before.id in {each.id for each in yard.at_cloud()}
        seen = await yard.read(server)
        assert seen["metadata"]["provisioningStatus"] == "error"
        assert "its old server is kept" in seen["metadata"]["provisioningStatusDetail"]["message"]
        await yard.delete(other)
        await yard.world.clock.sleep(3_600)
        seen = await yard.read(server)
        assert (seen["metadata"]["provisioningStatus"], seen["spec"]["flavorId"]) == ("provisioned", SMALL)

    in_yard(scenario, at_work=True, hosts=HOSTS)


def test_a_server_that_vanished_and_has_no_room_is_not_called_healthy_and_is_not_written_for_ever() -> None:
    async def scenario(yard: Yard) -> None:
        network = await yard.make_network()
        server = await yard.make_server(network, flavorId=SMALL)
        await yard.rest()
        (there,) = yard.at_cloud()
        yard.cloud.operator.vanish(there.id)
        await yard.make_server(network, "other", flavorId=SMALL)
        await yard.world.clock.sleep(60)
        seen = await yard.read(server)
        assert seen["metadata"]["provisioningStatus"] == "error"
        assert (seen["metadata"]["healthStatus"], seen["status"]["powerState"]) == ("unknown", "Pending")
        await yard.world.clock.sleep(3_600)  # in which it is told, once, that it has stalled
        before = await yard.stored(server)
        await yard.world.clock.sleep(3_600)
        assert (await yard.stored(server)).version == before.version

    in_yard(scenario, at_work=True, hosts=HOSTS)
