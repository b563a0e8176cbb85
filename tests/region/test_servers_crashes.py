"""The power goes at any moment of a server's life: what was acknowledged is kept, and there is never one too many.

The cloud is outside our store, and remembers what it was told.
"""

from collections.abc import Awaitable, Callable
from itertools import count

import apsw
import pytest
from structlog.testing import capture_logs

from remuda.kernel.errors import RemudaError
from remuda.region.kinds.servers import ReplacementStatus, Server
from remuda.region.networks.routes import NETWORKS
from remuda.region.servers.routes import SERVERS
from tests.kit.asgi.contract import Reply
from tests.kit.region.resource_api import make_region
from tests.kit.region.servers import (
    COMPUTE,
    DEBIAN,
    STANDARD,
    TENANT,
    ServersEnvironment,
    identity_of_project,
    open_servers,
    servers_cloud,
    update,
    wanted,
)
from tests.kit.simulation.platter import Keep
from tests.kit.simulation.runner import World, simulate

Deed = Callable[[ServersEnvironment, str], Awaitable[Reply]]


async def make(region_servers: ServersEnvironment, network: str) -> Reply:
    return await region_servers.servers.ask(TENANT).post(SERVERS, wanted(network), idempotency_key="make")


async def replace(region_servers: ServersEnvironment, network: str) -> Reply:
    body = {"flavorId": STANDARD, "imageId": DEBIAN}
    return await region_servers.servers.ask(COMPUTE).post(
        await _path(region_servers, network, "/replace"), body, idempotency_key="replace"
    )


async def rebuild(region_servers: ServersEnvironment, network: str) -> Reply:
    path = await _path(region_servers, network)
    return await region_servers.servers.ask(TENANT).put(path, update(imageId=DEBIAN), idempotency_key="rebuild")


async def rebuild_again(region_servers: ServersEnvironment, network: str) -> Reply:
    path = await _path(region_servers, network)
    return await region_servers.servers.ask(TENANT).put(path, update(rebuilds=1), idempotency_key="rebuild")


async def delete(region_servers: ServersEnvironment, network: str) -> Reply:
    return await region_servers.servers.ask(TENANT).delete(
        await _path(region_servers, network), idempotency_key="delete"
    )


async def _path(region_servers: ServersEnvironment, network: str, tail: str = "") -> str:
    del network
    found = (await region_servers.store.list(Server)).items
    return f"{SERVERS}/{found[0].name if found else 'f0000000-0000-4000-8000-000000000001'}{tail}"


async def _settle(region_servers: ServersEnvironment, *, fails_at_first: bool) -> None:
    """Let everything come to rest; the first server that comes up may fail."""
    if not fails_at_first:
        await region_servers.rest()
        return
    for _ in range(120):
        for each in region_servers.at_cloud():
            if (
                each.state == "building"
                and (await region_servers.store.list(Server)).items[0].status.provider_create_failures < 1
            ):
                region_servers.cloud.operator.fail(each.id, "no machine starts")
        assert len(region_servers.at_cloud()) <= 1
        await region_servers.world.clock.sleep(0.25)


def lose_power(deed: Deed, sync: int, keep: Keep, *, fails_at_first: bool = False) -> bool:
    """Lose power at the nth sync of a deed, do it again, and tell whether the power went at all."""
    reached: list[bool] = []

    async def scenario(world: World) -> None:
        identity, cloud = identity_of_project(), servers_cloud(world, is_instant=not fails_at_first)
        await cloud.start()
        async with open_servers(world, identity=identity, cloud=cloud, at_work=True) as region_servers:
            await make_region(region_servers.store)
            network = await region_servers.make_network()
            if deed is not make:
                assert (await make(region_servers, network)).status == 201
            await region_servers.rest()
            ports = await region_servers.ports()
        world.plan_power_cut(sync, keep=keep)
        told = 0
        try:
            async with open_servers(world, identity=identity, cloud=cloud, at_work=True) as region_servers:
                told = (await deed(region_servers, network)).status
                await _settle(region_servers, fails_at_first=fails_at_first)
        except (RemudaError, apsw.Error):
            pass
        reached.append(world.disk.is_cut)
        world.power_cut(keep)
        async with open_servers(world, identity=identity, cloud=cloud, at_work=True) as region_servers:
            if told not in {201, 202}:
                told = (await deed(region_servers, network)).status
                assert told in {201, 202} or (deed is delete and told == 404)
            await _settle(region_servers, fails_at_first=fails_at_first)
            await region_servers.rest()
            await (_check_gone if deed is delete else _check_there)(region_servers, network, deed)
            if ports and deed is not delete:
                assert [each.spec for each in await region_servers.ports()] == [each.spec for each in ports]
            await region_servers.confirm_absence()
        await cloud.stop()

    with capture_logs():
        simulate(scenario, [sync])
    return reached[0]


async def _check_there(region_servers: ServersEnvironment, network: str, deed: Deed) -> None:
    del network
    (server,) = (await region_servers.store.list(Server)).items
    (made,), (port,), (address,) = (
        region_servers.at_cloud(),
        await region_servers.ports(),
        await region_servers.addresses(),
    )
    number = 1 if deed is replace else 0
    assert made.handle.name == port.server == await region_servers.name_of(server.name, number)
    assert (made.state, made.image) == ("running", server.spec.image.id)
    assert port.spec.address == address.spec.ip == server.status.private_ip
    assert server.status.replacement == ReplacementStatus(started=number, completed=number)
    assert (server.status.rebuild, server.status.applied_image_id) == (None, server.spec.image.id)
    assert (await region_servers.read(server.name))["metadata"]["provisioningStatus"] == "provisioned"
    assert server.status.applied_rebuilds == server.spec.rebuilds == made.rebuilds == int(deed is rebuild_again)
    if deed in {rebuild, rebuild_again}:
        assert region_servers.world.faults.counts["cloud.error.rebuild_server"].asked == 1, (
            "the new disk is not lost too"
        )


async def _check_gone(region_servers: ServersEnvironment, network: str, deed: Deed) -> None:
    del deed
    await region_servers.nothing_is_left()
    assert (await region_servers.networks.ask(TENANT).delete(f"{NETWORKS}/{network}")).status == 202
    await region_servers.rest()


@pytest.mark.parametrize("keep", ["none", "all"])
@pytest.mark.parametrize(("deed", "least"), [(make, 5), (replace, 4), (rebuild, 4), (rebuild_again, 4), (delete, 3)])
def test_a_loss_of_power_at_any_write_loses_nothing_and_doubles_nothing(deed: Deed, least: int, keep: Keep) -> None:
    syncs = next(sync for sync in count(1) if not lose_power(deed, sync, keep)) - 1
    assert syncs >= least


@pytest.mark.parametrize("keep", ["none", "all"])
def test_a_loss_of_power_while_a_server_is_recreated_doubles_nothing(keep: Keep) -> None:
    syncs = next(sync for sync in count(1) if not lose_power(make, sync, keep, fails_at_first=True)) - 1
    assert syncs >= 7
