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
from tests.kit.region.room import make_region
from tests.kit.region.servers_ground import (
    COMPUTE,
    DEBIAN,
    STANDARD,
    TENANT,
    Yard,
    at_home,
    open_yard,
    update,
    wanted,
    yard_cloud,
)
from tests.kit.simulation.platter import Keep
from tests.kit.simulation.runner import World, simulate

Deed = Callable[[Yard, str], Awaitable[Reply]]


async def make(yard: Yard, network: str) -> Reply:
    return await yard.servers.ask(TENANT).post(SERVERS, wanted(network), idempotency_key="make")


async def replace(yard: Yard, network: str) -> Reply:
    body = {"flavorId": STANDARD, "imageId": DEBIAN}
    return await yard.servers.ask(COMPUTE).post(await _path(yard, network, "/replace"), body, idempotency_key="replace")


async def rebuild(yard: Yard, network: str) -> Reply:
    path = await _path(yard, network)
    return await yard.servers.ask(TENANT).put(path, update(imageId=DEBIAN), idempotency_key="rebuild")


async def delete(yard: Yard, network: str) -> Reply:
    return await yard.servers.ask(TENANT).delete(await _path(yard, network), idempotency_key="delete")


async def _path(yard: Yard, network: str, tail: str = "") -> str:
    del network
    found = (await yard.store.list(Server)).items
    return f"{SERVERS}/{found[0].name if found else 'f0000000-0000-4000-8000-000000000001'}{tail}"


async def _settle(yard: Yard, *, fails_at_first: bool) -> None:
    """Let everything come to rest; the first server that comes up may fail."""
    if not fails_at_first:
        await yard.rest()
        return
    for _ in range(120):
        for each in yard.at_cloud():
            if (
                each.state == "building"
                and (await yard.store.list(Server)).items[0].status.provider_create_failures < 1
            ):
                yard.cloud.operator.fail(each.id, "no machine starts")
        assert len(yard.at_cloud()) <= 1
        await yard.world.clock.sleep(0.25)


def lose_power(deed: Deed, sync: int, keep: Keep, *, fails_at_first: bool = False) -> bool:
    """Lose power at the nth sync of a deed, do it again, and tell whether the power went at all."""
    reached: list[bool] = []

    async def scenario(world: World) -> None:
        identity, cloud = at_home(), yard_cloud(world, is_instant=not fails_at_first)
        await cloud.start()
        async with open_yard(world, identity=identity, cloud=cloud, at_work=True) as yard:
            await make_region(yard.store)
            network = await yard.make_network()
            if deed is not make:
                assert (await make(yard, network)).status == 201
            await yard.rest()
            ports = await yard.ports()
        world.plan_power_cut(sync, keep=keep)
        told = 0
        try:
            async with open_yard(world, identity=identity, cloud=cloud, at_work=True) as yard:
                told = (await deed(yard, network)).status
                await _settle(yard, fails_at_first=fails_at_first)
        except (RemudaError, apsw.Error):
            pass
        reached.append(world.disk.is_cut)
        world.power_cut(keep)
        async with open_yard(world, identity=identity, cloud=cloud, at_work=True) as yard:
            if told not in {201, 202}:
                told = (await deed(yard, network)).status
                assert told in {201, 202} or (deed is delete and told == 404)
            await _settle(yard, fails_at_first=fails_at_first)
            await yard.rest()
            await (_check_gone if deed is delete else _check_there)(yard, network, deed)
            if ports and deed is not delete:
                assert [each.spec for each in await yard.ports()] == [each.spec for each in ports]
            await yard.look_again()
        await cloud.stop()

    with capture_logs():
        simulate(scenario, [sync])
    return reached[0]


async def _check_there(yard: Yard, network: str, deed: Deed) -> None:
    del network
    (server,) = (await yard.store.list(Server)).items
    (made,), (port,), (address,) = yard.at_cloud(), await yard.ports(), await yard.addresses()
    number = 1 if deed is replace else 0
    assert made.handle.name == port.server == await yard.name_of(server.name, number)
    assert (made.state, made.image) == ("running", server.spec.image.id)
    assert port.spec.address == address.spec.ip == server.status.private_ip
    assert server.status.replacement == ReplacementStatus(counter=number, done=number)
    assert (server.status.rebuild, server.status.applied_image_id) == (None, server.spec.image.id)
    assert (await yard.read(server.name))["metadata"]["provisioningStatus"] == "provisioned"
    if deed is rebuild:
        assert yard.world.faults.counts["cloud.error.rebuild_server"].asked == 1, "the new disk is not lost too"


async def _check_gone(yard: Yard, network: str, deed: Deed) -> None:
    del deed
    await yard.nothing_is_left()
    assert (await yard.networks.ask(TENANT).delete(f"{NETWORKS}/{network}")).status == 202
    await yard.rest()


@pytest.mark.parametrize("keep", ["none", "all"])
@pytest.mark.parametrize(("deed", "least"), [(make, 5), (replace, 4), (rebuild, 4), (delete, 3)])
def test_a_loss_of_power_at_any_write_loses_nothing_and_doubles_nothing(deed: Deed, least: int, keep: Keep) -> None:
    syncs = next(sync for sync in count(1) if not lose_power(deed, sync, keep)) - 1
    assert syncs >= least


@pytest.mark.parametrize("keep", ["none", "all"])
def test_a_loss_of_power_while_a_server_is_made_again_doubles_nothing(keep: Keep) -> None:
    syncs = next(sync for sync in count(1) if not lose_power(make, sync, keep, fails_at_first=True)) - 1
    assert syncs >= 7
