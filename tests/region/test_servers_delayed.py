"""What somebody who slept asks for when it has long been replaced: it goes again, and keeps nobody waiting."""

from remuda.providers.contract.common import Handle
from remuda.providers.contract.servers import CloudServerSpec
from remuda.region.kinds.servers import ReplacementStatus
from tests.kit.environment import options
from tests.kit.region.servers import DEBIAN, SMALL, UBUNTU, ServersEnvironment


async def _put_behind_the_port(region_servers: ServersEnvironment, name: str) -> None:
    """Have a server of this name made behind the only port there is."""
    (port,), servers = await region_servers.ports(), region_servers.cloud.provider.servers
    assert servers is not None
    handle = Handle(port.spec.handle.tenancy, name)
    await servers.create_server(
        CloudServerSpec(handle=handle, hostname="web", flavor=SMALL, image=UBUNTU, port=port.spec.handle.name)
    )
    assert [each.handle for each in region_servers.at_cloud()] == [handle]


async def _come_late(region_servers: ServersEnvironment, server: str) -> None:
    """Have the first server made, as it was asked for before another took its place."""
    await _put_behind_the_port(region_servers, await region_servers.name_of(server))


async def _replaced(region_servers: ServersEnvironment) -> str:
    """Make a server and replace it; what took its place is lost, and the first one comes late."""
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.rest()
    await region_servers.replace(server, imageId=DEBIAN)
    await region_servers.rest()
    region_servers.cloud.operator.vanish(server)
    await _come_late(region_servers, server)
    return server


async def _is_replaced(region_servers: ServersEnvironment, server: str) -> None:
    """See that a server is the one that took the first one's place, and that there is no other."""
    assert [each.handle.name for each in region_servers.at_cloud()] == [await region_servers.name_of(server, 1)]
    assert (await region_servers.read(server))["metadata"]["provisioningStatus"] == "provisioned"
    await region_servers.confirm_absence()


@options(at_work=True)
async def test_c02_what_comes_after_it_was_seen_gone_makes_way_for_what_takes_its_place(
    region_servers: ServersEnvironment,
) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.rest()
    region_servers.at_fault("error", "create_server")
    await region_servers.replace(server, imageId=DEBIAN)
    cleared = ReplacementStatus(started=1, completed=0, predecessors_deleted=1)
    while (await region_servers.stored(server)).status.replacement != cleared:
        await region_servers.world.clock.sleep(0.01)
    await _come_late(region_servers, server)
    await region_servers.rest()
    await _is_replaced(region_servers, server)


@options(at_work=True)
async def test_c02_what_comes_after_its_place_was_taken_makes_way_too(region_servers: ServersEnvironment) -> None:
    server = await _replaced(region_servers)
    await region_servers.rest()
    await _is_replaced(region_servers, server)


@options(at_work=True)
async def test_c02_what_comes_late_does_not_keep_a_server_from_being_deleted(
    region_servers: ServersEnvironment,
) -> None:
    await region_servers.delete(await _replaced(region_servers))
    await region_servers.rest()
    await region_servers.nothing_is_left()


@options(at_work=True)
async def test_what_somebody_else_has_put_behind_a_port_is_left_there(region_servers: ServersEnvironment) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.rest()
    region_servers.cloud.operator.vanish(server)
    await _put_behind_the_port(region_servers, "db.0")
    await region_servers.delete(server)
    await region_servers.rest()
    (theirs,) = region_servers.at_cloud()
    assert theirs.handle.name == "db.0"
    region_servers.cloud.operator.vanish(theirs.id)
    await region_servers.rest()
    await region_servers.nothing_is_left()
