"""A server is rebuilt from the image that it has: once for each number of rebuilds, whatever is lost or repeated."""

import pytest

from remuda.region.kinds.servers import Rebuild, is_drifted
from tests.kit.environment import options
from tests.kit.region.server_view import shown_of
from tests.kit.region.servers import DEBIAN, STANDARD, UBUNTU, ServersEnvironment, update

CALLS = "cloud.error.rebuild_server"


async def _running(region_servers: ServersEnvironment) -> str:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.rest()
    return server


def _asked(region_servers: ServersEnvironment) -> int:
    """Return how often the cloud was asked for a rebuild."""
    found = region_servers.world.faults.counts.get(CALLS)
    return 0 if found is None else found.asked


async def _assert_rebuilt(region_servers: ServersEnvironment, server: str, number: int, state: str = "running") -> None:
    assert [(each.state, each.image, each.rebuilds) for each in region_servers.at_cloud()] == [(state, UBUNTU, number)]
    stored = await region_servers.stored(server)
    assert (stored.status.rebuild, stored.status.applied_rebuilds, stored.spec.rebuilds) == (None, number, number)
    assert not is_drifted(stored)
    assert (await region_servers.read(server))["metadata"]["provisioningStatus"] == "provisioned"
    await region_servers.confirm_absence()


@options(at_work=True, is_instant=False)
async def test_a_rebuild_from_the_same_image_keeps_everything_but_the_disk(region_servers: ServersEnvironment) -> None:
    server = await _running(region_servers)
    before, (made,) = await region_servers.read(server), region_servers.at_cloud()
    await region_servers.put(server, update(rebuilds=1))
    read = await region_servers.read(server)
    assert (read["metadata"]["provisioningStatus"], read["spec"]["rebuilds"]) == ("provisioning", 1)
    await region_servers.world.clock.sleep(1)
    assert [each.state for each in region_servers.at_cloud()] == ["rebuilding"]
    marker = Rebuild(target_image_id=UBUNTU, state="Rebuilding", number=1)
    assert (await region_servers.stored(server)).status.rebuild == marker
    await region_servers.rest()
    await _assert_rebuilt(region_servers, server, 1)
    assert region_servers.at_cloud()[0].id == made.id
    assert shown_of(await region_servers.read(server)) == shown_of(before)
    assert [each for each in await region_servers.timeline(server) if "Reb" in each] == ["Rebuilding", "Rebuilt"]


@options(at_work=True, is_instant=False)
async def test_each_number_rebuilds_once_and_the_same_or_a_smaller_one_does_nothing(
    region_servers: ServersEnvironment,
) -> None:
    server = await _running(region_servers)
    for asked, stands in ((1, 1), (1, 1), (2, 2), (0, 2), (1, 2), (5, 5)):
        await region_servers.put(server, update(rebuilds=asked))
        await region_servers.rest()
        await _assert_rebuilt(region_servers, server, stands)
    assert _asked(region_servers) == 3


@pytest.mark.parametrize("after_s", [0, 0.05, 0.2, 1, 2, 3])
@options(at_work=True, is_instant=False)
async def test_another_rebuild_that_is_requested_meanwhile_comes_too(
    region_servers: ServersEnvironment, after_s: float
) -> None:
    server = await _running(region_servers)
    await region_servers.put(server, update(rebuilds=1))
    await region_servers.world.clock.sleep(after_s)
    begun = _asked(region_servers)
    await region_servers.put(server, update(rebuilds=2))
    await region_servers.rest()
    await _assert_rebuilt(region_servers, server, 2)
    assert begun < _asked(region_servers) <= 2


@options(at_work=True, is_instant=False)
async def test_a_stopped_server_stays_stopped(region_servers: ServersEnvironment) -> None:
    server = await _running(region_servers)
    region_servers.cloud.operator.stop(server)
    await region_servers.rest()
    await region_servers.put(server, update(rebuilds=1))
    await region_servers.rest()
    await _assert_rebuilt(region_servers, server, 1, "stopped")


@options(at_work=True, is_instant=False)
async def test_a_server_that_failed_after_it_ran_runs_again(region_servers: ServersEnvironment) -> None:
    server = await _running(region_servers)
    region_servers.cloud.operator.fail(server, "the disk broke")
    await region_servers.rest()
    assert (await region_servers.read(server))["metadata"]["healthStatus"] == "error"
    await region_servers.put(server, update(rebuilds=1))
    await region_servers.rest()
    await _assert_rebuilt(region_servers, server, 1)
    assert (await region_servers.read(server))["metadata"]["healthStatus"] == "healthy"


@options(at_work=True, is_instant=False)
async def test_a_rebuild_that_failed_is_said_and_repaired_by_the_next(region_servers: ServersEnvironment) -> None:
    server = await _running(region_servers)
    await region_servers.put(server, update(rebuilds=1))
    await region_servers.world.clock.sleep(1)
    assert [each.state for each in region_servers.at_cloud()] == ["rebuilding"]
    region_servers.cloud.operator.fail(server, "the disk broke")
    await region_servers.rest()
    assert (await region_servers.read(server))["metadata"]["provisioningStatus"] == "error"
    failed = (await region_servers.stored(server)).status
    assert (failed.rebuild, failed.applied_rebuilds) == (Rebuild(UBUNTU, "Failed", 1), 0)
    assert _asked(region_servers) == 1, "nobody requested another"
    await region_servers.put(server, update(rebuilds=2))
    await region_servers.rest()
    await _assert_rebuilt(region_servers, server, 2)


@options(at_work=True, is_instant=False)
async def test_a_server_that_comes_up_is_rebuilt_when_it_runs(region_servers: ServersEnvironment) -> None:
    server = await region_servers.make_server(await region_servers.make_network())
    await region_servers.world.clock.sleep(1)
    assert [each.state for each in region_servers.at_cloud()] == ["building"]
    await region_servers.put(server, update(rebuilds=1))
    await region_servers.rest()
    await _assert_rebuilt(region_servers, server, 1)


@options(at_work=True, is_instant=False)
async def test_a_new_disk_for_another_reason_stands_for_the_rebuilds_before_it(
    region_servers: ServersEnvironment,
) -> None:
    server = await region_servers.make_server(await region_servers.make_network(), rebuilds=3)
    await region_servers.rest()
    await _assert_rebuilt(region_servers, server, 3)
    await region_servers.replace(server, flavorId=STANDARD, imageId=UBUNTU, rebuilds=4)
    await region_servers.rest()
    await _assert_rebuilt(region_servers, server, 4)
    region_servers.cloud.operator.vanish(server)
    await region_servers.put(server, update(rebuilds=5))
    await region_servers.rest()
    await _assert_rebuilt(region_servers, server, 5)
    assert _asked(region_servers) == 0
    await region_servers.put(server, update(imageId=DEBIAN, rebuilds=5))
    await region_servers.rest()
    await region_servers.put(server, update(rebuilds=6))
    await region_servers.rest()
    await _assert_rebuilt(region_servers, server, 6)
    assert _asked(region_servers) == 2, "another image and another number are one rebuild"


@pytest.mark.parametrize("fault", ["timeout_after_write", "error_after_write"])
@pytest.mark.parametrize("is_instant", [True, False])
@options(lambda is_instant: {"is_instant": is_instant}, at_work=True)
async def test_a_lost_answer_does_not_rebuild_twice(region_servers: ServersEnvironment, fault: str) -> None:
    server = await _running(region_servers)
    region_servers.at_fault(fault, "rebuild_server")  # type: ignore[arg-type]  # it is one
    await region_servers.put(server, update(rebuilds=1))
    await region_servers.rest()
    await region_servers.rest()
    await _assert_rebuilt(region_servers, server, 1)
    assert _asked(region_servers) == 1, "the new disk is not lost, too"


@options(at_work=True, is_instant=False)
async def test_an_old_read_is_taken_neither_for_a_failure_nor_for_the_end(region_servers: ServersEnvironment) -> None:
    server = await _running(region_servers)
    for nth in range(6):
        region_servers.at_fault("stale", "find_server", after=nth)
    await region_servers.put(server, update(rebuilds=1))
    for _ in range(20):
        await region_servers.world.clock.sleep(0.1)
        status = (await region_servers.read(server))["metadata"]["provisioningStatus"]
        assert status == "provisioning" or region_servers.at_cloud()[0].rebuilds == 1
        assert status != "error"
    await region_servers.rest()
    await _assert_rebuilt(region_servers, server, 1)
