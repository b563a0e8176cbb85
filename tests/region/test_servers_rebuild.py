"""Another image on a server: it is rebuilt where it is, once, and what comes of that is known."""

import pytest

from remuda.providers.contract.servers import CloudServer, CloudServerSpec
from remuda.providers.simulated.servers import SimServers
from remuda.region.kinds.common import RETRIED
from remuda.region.kinds.servers import Rebuild, is_drifted
from remuda.region.recovery.rules import annotated, retried_server
from tests.kit.environment import options
from tests.kit.region.server_view import shown_of
from tests.kit.region.servers import DEBIAN, ROCKY, UBUNTU, ServersEnvironment, update


async def _running(region_servers: ServersEnvironment) -> str:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.rest()
    return server


async def _provisioning(region_servers: ServersEnvironment, server: str) -> str:
    return str((await region_servers.read(server))["metadata"]["provisioningStatus"])


@options(at_work=True, is_instant=False)
async def test_a_rebuild_keeps_everything_but_the_disk(region_servers: ServersEnvironment) -> None:
    server = await _running(region_servers)
    before, (made,) = await region_servers.read(server), region_servers.at_cloud()
    await region_servers.put(server, update(imageId=DEBIAN))
    await region_servers.world.clock.sleep(1)
    assert (await region_servers.read(server))["status"]["powerState"] == "Building"
    assert (await region_servers.read(server))["metadata"]["healthStatus"] == "unknown"
    assert await _provisioning(region_servers, server) == "provisioning"
    assert (await region_servers.stored(server)).status.rebuild == Rebuild(target_image_id=DEBIAN, state="Rebuilding")
    await region_servers.rest()
    assert await _provisioning(region_servers, server) == "provisioned"
    (now,) = region_servers.at_cloud()
    assert (now.id, now.image) == (made.id, DEBIAN)
    assert shown_of(await region_servers.read(server)) == shown_of(before)
    assert [each for each in await region_servers.timeline(server) if "Reb" in each] == ["Rebuilding", "Rebuilt"]
    await region_servers.confirm_absence()


@options(at_work=True, is_instant=False)
async def test_a_stopped_server_is_rebuilt_and_stays_stopped(region_servers: ServersEnvironment) -> None:
    server = await _running(region_servers)
    region_servers.cloud.operator.stop(server)
    await region_servers.rest()
    await region_servers.put(server, update(imageId=DEBIAN))
    await region_servers.rest()
    assert [(each.state, each.image) for each in region_servers.at_cloud()] == [("stopped", DEBIAN)]
    assert await _provisioning(region_servers, server) == "provisioned"


@options(at_work=True, is_instant=False)
async def test_a_server_that_drifted_and_is_rebuilt_no_longer_says_so_as_soon_as_it_is_done(
    region_servers: ServersEnvironment,
) -> None:
    server = await _running(region_servers)
    assert region_servers.cloud.provider.servers is not None
    await region_servers.cloud.provider.servers.rebuild_server(region_servers.at_cloud()[0].handle, ROCKY)
    await region_servers.rest()
    assert is_drifted(await region_servers.stored(server))
    await region_servers.put(server, update(imageId=DEBIAN))
    await region_servers.rest()
    assert [(each.state, each.image) for each in region_servers.at_cloud()] == [("running", DEBIAN)]
    assert not is_drifted(await region_servers.stored(server))
    await region_servers.confirm_absence()


@options(at_work=True, is_instant=False)
async def test_an_image_chosen_while_the_server_comes_up_is_put_on_it_when_it_runs(
    region_servers: ServersEnvironment,
) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.world.clock.sleep(1)
    assert [each.state for each in region_servers.at_cloud()] == ["building"]
    await region_servers.put(server, update(imageId=DEBIAN))
    await region_servers.rest()
    assert [(each.state, each.image) for each in region_servers.at_cloud()] == [("running", DEBIAN)]
    assert await _provisioning(region_servers, server) == "provisioned"


@pytest.mark.parametrize("after_s", [0, 0.05, 0.2, 1, 2, 3])
@pytest.mark.parametrize("last", [ROCKY, UBUNTU])
@options(at_work=True, is_instant=False)
async def test_an_image_that_is_changed_again_is_the_one_that_stays(
    region_servers: ServersEnvironment, after_s: float, last: str
) -> None:
    server = await _running(region_servers)
    await region_servers.put(server, update(imageId=DEBIAN))
    await region_servers.world.clock.sleep(after_s)
    await region_servers.put(server, update(imageId=last))
    await region_servers.rest()
    assert [(each.state, each.image) for each in region_servers.at_cloud()] == [("running", last)]
    stored = (await region_servers.stored(server)).status
    assert (stored.rebuild, stored.applied_image_id) == (None, last)
    assert await _provisioning(region_servers, server) == "provisioned"
    await region_servers.confirm_absence()


@options(at_work=True)
async def test_a_request_that_is_rolled_back_while_a_vanished_server_is_recreated_is_the_last(
    region_servers: ServersEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await _running(region_servers)
    create, made_of = SimServers.create_server, list[str]()

    async def create_slowly(servers: SimServers, wanted: CloudServerSpec) -> CloudServer:
        made = await create(servers, wanted)
        made_of.append(made.image)
        await region_servers.put(server, update(imageId=UBUNTU))
        return made

    monkeypatch.setattr(SimServers, "create_server", create_slowly)
    region_servers.cloud.operator.vanish(server)
    await region_servers.put(server, update(imageId=DEBIAN))
    await region_servers.rest()
    assert made_of == [DEBIAN]
    assert [each.image for each in region_servers.at_cloud()] == [UBUNTU]
    assert (await region_servers.read(server))["metadata"]["provisioningStatus"] == "provisioned"
    await region_servers.confirm_absence()


@options(at_work=True)
async def test_a_request_that_is_rolled_back_in_time_destroys_nothing(region_servers: ServersEnvironment) -> None:
    server = await _running(region_servers)
    for nth in range(3):
        region_servers.at_fault("error", "rebuild_server", after=nth)
    await region_servers.put(server, update(imageId=DEBIAN))
    await region_servers.world.clock.sleep(0.1)
    await region_servers.put(server, update())
    await region_servers.rest()
    assert [each.image for each in region_servers.at_cloud()] == [UBUNTU]
    assert "Rebuilding" not in await region_servers.timeline(server)
    assert (await region_servers.stored(server)).status.rebuild is None
    await region_servers.confirm_absence()


@pytest.mark.parametrize("fault", ["timeout_after_write", "error_after_write"])
@pytest.mark.parametrize("is_instant", [True, False])
@options(lambda is_instant: {"is_instant": is_instant}, at_work=True)
async def test_a_lost_answer_does_not_rebuild_twice(region_servers: ServersEnvironment, fault: str) -> None:
    server = await _running(region_servers)
    region_servers.at_fault(fault, "rebuild_server")  # type: ignore[arg-type]  # it is one
    await region_servers.put(server, update(imageId=DEBIAN))
    await region_servers.rest()
    await region_servers.rest()
    assert [(each.state, each.image) for each in region_servers.at_cloud()] == [("running", DEBIAN)]
    assert region_servers.world.faults.counts["cloud.error.rebuild_server"].asked == 1, "the new disk is not lost too"
    assert await _provisioning(region_servers, server) == "provisioned"
    await region_servers.confirm_absence()


@options(at_work=True, is_instant=False)
async def test_an_old_read_is_not_taken_for_a_failure(region_servers: ServersEnvironment) -> None:
    server = await _running(region_servers)
    for nth in range(6):
        region_servers.at_fault("stale", "find_server", after=nth)
    await region_servers.put(server, update(imageId=DEBIAN))
    for _ in range(20):
        await region_servers.world.clock.sleep(0.1)
        assert await _provisioning(region_servers, server) != "error"
    await region_servers.rest()
    assert await _provisioning(region_servers, server) == "provisioned"
    assert [each.image for each in region_servers.at_cloud()] == [DEBIAN]


async def _failed(region_servers: ServersEnvironment) -> str:
    """Return a server whose rebuild has failed."""
    server = await _running(region_servers)
    await region_servers.put(server, update(imageId=DEBIAN))
    await region_servers.world.clock.sleep(1)
    assert [each.state for each in region_servers.at_cloud()] == ["rebuilding"]
    region_servers.cloud.operator.fail(server, "the disk broke")
    await region_servers.rest()
    assert (await region_servers.read(server))["metadata"]["provisioningStatus"] == "error"
    assert (await region_servers.read(server))["metadata"]["healthStatus"] == "error"
    available = await region_servers.available(server)
    assert available.message == "the rebuild failed: rebuild it again or select another image"
    assert (await region_servers.stored(server)).status.rebuild == Rebuild(target_image_id=DEBIAN, state="Failed")
    await region_servers.confirm_absence()
    return server


@options(at_work=True, is_instant=False)
async def test_a_rebuild_that_failed_waits_for_another_choice(region_servers: ServersEnvironment) -> None:
    server = await _failed(region_servers)
    before = (await region_servers.read(server))["status"]
    await region_servers.put(server, update(imageId=ROCKY))
    await region_servers.rest()
    assert [(each.state, each.image) for each in region_servers.at_cloud()] == [("running", ROCKY)]
    read = await region_servers.read(server)
    assert (read["metadata"]["provisioningStatus"], read["metadata"]["healthStatus"]) == ("provisioned", "healthy")
    assert read["status"]["privateIP"] == before["privateIP"]
    await region_servers.confirm_absence()


@options(at_work=True, is_instant=False)
async def test_a_rebuild_that_failed_is_repaired_by_the_old_image(region_servers: ServersEnvironment) -> None:
    server = await _failed(region_servers)
    await region_servers.put(server, update(imageId=UBUNTU))
    await region_servers.rest()
    assert [(each.state, each.image) for each in region_servers.at_cloud()] == [("running", UBUNTU)]
    assert await _provisioning(region_servers, server) == "provisioned"


@options(at_work=True, is_instant=False)
async def test_a_rebuild_that_failed_is_repaired_by_a_replacement(region_servers: ServersEnvironment) -> None:
    server = await _failed(region_servers)
    await region_servers.replace(server, imageId=DEBIAN)
    await region_servers.rest()
    assert [(each.state, each.image) for each in region_servers.at_cloud()] == [("running", DEBIAN)]
    assert await _provisioning(region_servers, server) == "provisioned"
    assert (await region_servers.stored(server)).status.rebuild is None
    await region_servers.confirm_absence()


@options(at_work=True, is_instant=False)
async def test_a_rebuild_that_failed_is_tried_again_when_an_operator_says_so(
    region_servers: ServersEnvironment,
) -> None:
    server = await _failed(region_servers)
    reset = await region_servers.store.update_status(retried_server(await region_servers.stored(server)))
    await region_servers.store.update(annotated(reset, RETRIED, "now"))
    await region_servers.rest()
    assert [(each.state, each.image) for each in region_servers.at_cloud()] == [("running", DEBIAN)]
    assert await _provisioning(region_servers, server) == "provisioned"


@pytest.mark.parametrize("after_s", [0, 0.05, 0.2, 1, 2, 3])
@options(at_work=True, is_instant=False)
async def test_given_up_while_it_is_rebuilt_it_leaves_nothing(
    region_servers: ServersEnvironment, after_s: float
) -> None:
    server = await _running(region_servers)
    await region_servers.put(server, update(imageId=DEBIAN))
    await region_servers.world.clock.sleep(after_s)
    await region_servers.delete(server)
    await region_servers.rest()
    await region_servers.nothing_is_left()
