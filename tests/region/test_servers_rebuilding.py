"""Another image on a server: it is rebuilt where it is, once, and what comes of that is known."""

import pytest

from remuda.providers.contract.servers import Server, ServerSpec
from remuda.providers.simulated.servers import SimServers
from remuda.region.kinds.common import RETRIED
from remuda.region.kinds.servers import Rebuild, is_drifted
from remuda.region.recovery.rules import annotated, retried_server
from tests.region.servers_ground import DEBIAN, ROCKY, UBUNTU, Yard, in_yard, update
from tests.region.shown import shown_of


async def _running(yard: Yard) -> str:
    server = await yard.make_server(await yard.make_network())
    await yard.rest()
    return server


async def _provisioning(yard: Yard, server: str) -> str:
    return str((await yard.read(server))["metadata"]["provisioningStatus"])


def test_a_rebuild_keeps_everything_but_the_disk() -> None:
    async def scenario(yard: Yard) -> None:
        server = await _running(yard)
        before, (made,) = await yard.read(server), yard.at_cloud()
        await yard.put(server, update(imageId=DEBIAN))
        await yard.world.clock.sleep(1)
        assert (await yard.read(server))["status"]["powerState"] == "Building"
        assert (await yard.read(server))["metadata"]["healthStatus"] == "unknown"
        assert await _provisioning(yard, server) == "provisioning"
        assert (await yard.stored(server)).status.rebuild == Rebuild(target_image_id=DEBIAN, state="Rebuilding")
        await yard.rest()
        assert await _provisioning(yard, server) == "provisioned"
        (now,) = yard.at_cloud()
        assert (now.id, now.image) == (made.id, DEBIAN)
        assert shown_of(await yard.read(server)) == shown_of(before)
        assert [each for each in await yard.timeline(server) if "Reb" in each] == ["Rebuilding", "Rebuilt"]
        await yard.look_again()

    in_yard(scenario, at_work=True, is_instant=False)


def test_a_stopped_server_is_rebuilt_and_stays_stopped() -> None:
    async def scenario(yard: Yard) -> None:
        server = await _running(yard)
        yard.cloud.operator.stop(server)
        await yard.rest()
        await yard.put(server, update(imageId=DEBIAN))
        await yard.rest()
        assert [(each.state, each.image) for each in yard.at_cloud()] == [("stopped", DEBIAN)]
        assert await _provisioning(yard, server) == "provisioned"

    in_yard(scenario, at_work=True, is_instant=False)


def test_a_server_that_drifted_and_is_rebuilt_no_longer_says_so_as_soon_as_it_is_done() -> None:
    async def scenario(yard: Yard) -> None:
        server = await _running(yard)
        assert yard.cloud.provider.servers is not None
        await yard.cloud.provider.servers.rebuild_server(yard.at_cloud()[0].handle, ROCKY)
        await yard.rest()
        assert is_drifted(await yard.stored(server))
        await yard.put(server, update(imageId=DEBIAN))
        await yard.rest()
        assert [(each.state, each.image) for each in yard.at_cloud()] == [("running", DEBIAN)]
        assert not is_drifted(await yard.stored(server))
        await yard.look_again()

    in_yard(scenario, at_work=True, is_instant=False)


def test_an_image_chosen_while_the_server_comes_up_is_put_on_it_when_it_runs() -> None:
    async def scenario(yard: Yard) -> None:
        server = await yard.make_server(await yard.make_network())
        await yard.world.clock.sleep(1)
        assert [each.state for each in yard.at_cloud()] == ["building"]
        await yard.put(server, update(imageId=DEBIAN))
        await yard.rest()
        assert [(each.state, each.image) for each in yard.at_cloud()] == [("running", DEBIAN)]
        assert await _provisioning(yard, server) == "provisioned"

    in_yard(scenario, at_work=True, is_instant=False)


@pytest.mark.parametrize("after_s", [0, 0.05, 0.2, 1, 2, 3])
@pytest.mark.parametrize("last", [ROCKY, UBUNTU])
def test_an_image_that_is_changed_again_is_the_one_that_stays(after_s: float, last: str) -> None:
    async def scenario(yard: Yard) -> None:
        server = await _running(yard)
        await yard.put(server, update(imageId=DEBIAN))
        await yard.world.clock.sleep(after_s)
        await yard.put(server, update(imageId=last))
        await yard.rest()
        assert [(each.state, each.image) for each in yard.at_cloud()] == [("running", last)]
        stored = (await yard.stored(server)).status
        assert (stored.rebuild, stored.applied_image_id) == (None, last)
        assert await _provisioning(yard, server) == "provisioned"
        await yard.look_again()

    in_yard(scenario, at_work=True, is_instant=False)


def test_a_wish_that_is_taken_back_while_a_vanished_server_is_made_again_is_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(yard: Yard) -> None:
        server = await _running(yard)
        create, made_of = SimServers.create_server, list[str]()

        async def create_slowly(servers: SimServers, wanted: ServerSpec) -> Server:
            made = await create(servers, wanted)
            made_of.append(made.image)
            await yard.put(server, update(imageId=UBUNTU))
            return made

        monkeypatch.setattr(SimServers, "create_server", create_slowly)
        yard.cloud.operator.vanish(server)
        await yard.put(server, update(imageId=DEBIAN))
        await yard.rest()
        assert made_of == [DEBIAN]
        assert [each.image for each in yard.at_cloud()] == [UBUNTU]
        assert (await yard.read(server))["metadata"]["provisioningStatus"] == "provisioned"
        await yard.look_again()

    in_yard(scenario, at_work=True)


def test_a_wish_that_is_taken_back_in_time_destroys_nothing() -> None:
    async def scenario(yard: Yard) -> None:
        server = await _running(yard)
        for nth in range(3):
            yard.at_fault("error", "rebuild_server", after=nth)
        await yard.put(server, update(imageId=DEBIAN))
        await yard.world.clock.sleep(0.1)
        await yard.put(server, update())
        await yard.rest()
        assert [each.image for each in yard.at_cloud()] == [UBUNTU]
        assert "Rebuilding" not in await yard.timeline(server)
        assert (await yard.stored(server)).status.rebuild is None
        await yard.look_again()

    in_yard(scenario, at_work=True)


@pytest.mark.parametrize("fault", ["timeout_done", "error_done"])
@pytest.mark.parametrize("is_instant", [True, False])
def test_a_lost_answer_does_not_rebuild_twice(fault: str, *, is_instant: bool) -> None:
    async def scenario(yard: Yard) -> None:
        server = await _running(yard)
        yard.at_fault(fault, "rebuild_server")  # type: ignore[arg-type]  # it is one
        await yard.put(server, update(imageId=DEBIAN))
        await yard.rest()
        await yard.rest()
        assert [(each.state, each.image) for each in yard.at_cloud()] == [("running", DEBIAN)]
        assert yard.world.faults.counts["cloud.error.rebuild_server"].asked == 1, "the new disk is not lost too"
        assert await _provisioning(yard, server) == "provisioned"
        await yard.look_again()

    in_yard(scenario, at_work=True, is_instant=is_instant)


def test_an_old_read_is_not_taken_for_a_failure() -> None:
    async def scenario(yard: Yard) -> None:
        server = await _running(yard)
        for nth in range(6):
            yard.at_fault("stale", "find_server", after=nth)
        await yard.put(server, update(imageId=DEBIAN))
        for _ in range(20):
            await yard.world.clock.sleep(0.1)
            assert await _provisioning(yard, server) != "error"
        await yard.rest()
        assert await _provisioning(yard, server) == "provisioned"
        assert [each.image for each in yard.at_cloud()] == [DEBIAN]

    in_yard(scenario, at_work=True, is_instant=False)


async def _failed(yard: Yard) -> str:
    """Return a server whose rebuild has failed."""
    server = await _running(yard)
    await yard.put(server, update(imageId=DEBIAN))
    await yard.world.clock.sleep(1)
    assert [each.state for each in yard.at_cloud()] == ["rebuilding"]
    yard.cloud.operator.fail(server, "the disk broke")
    await yard.rest()
    assert (await yard.read(server))["metadata"]["provisioningStatus"] == "error"
    assert (await yard.read(server))["metadata"]["healthStatus"] == "error"
    available = await yard.available(server)
    assert available.message == "the rebuild failed: select another image or replace the server"
    assert (await yard.stored(server)).status.rebuild == Rebuild(target_image_id=DEBIAN, state="Failed")
    await yard.look_again()
    return server


def test_a_rebuild_that_failed_waits_for_another_choice() -> None:
    async def scenario(yard: Yard) -> None:
        server = await _failed(yard)
        before = (await yard.read(server))["status"]
        await yard.put(server, update(imageId=ROCKY))
        await yard.rest()
        assert [(each.state, each.image) for each in yard.at_cloud()] == [("running", ROCKY)]
        read = await yard.read(server)
        assert (read["metadata"]["provisioningStatus"], read["metadata"]["healthStatus"]) == ("provisioned", "healthy")
        assert read["status"]["privateIP"] == before["privateIP"]
        await yard.look_again()

    in_yard(scenario, at_work=True, is_instant=False)


def test_a_rebuild_that_failed_is_repaired_by_the_old_image_or_a_replacement() -> None:
    async def scenario(yard: Yard) -> None:
        server = await _failed(yard)
        await yard.put(server, update(imageId=UBUNTU))
        await yard.rest()
        assert [(each.state, each.image) for each in yard.at_cloud()] == [("running", UBUNTU)]
        assert await _provisioning(yard, server) == "provisioned"

    async def other(yard: Yard) -> None:
        server = await _failed(yard)
        await yard.replace(server, imageId=DEBIAN)
        await yard.rest()
        assert [(each.state, each.image) for each in yard.at_cloud()] == [("running", DEBIAN)]
        assert await _provisioning(yard, server) == "provisioned"
        assert (await yard.stored(server)).status.rebuild is None
        await yard.look_again()

    for each in (scenario, other):
        in_yard(each, at_work=True, is_instant=False)


def test_a_rebuild_that_failed_is_tried_again_when_an_operator_says_so() -> None:
    async def scenario(yard: Yard) -> None:
        server = await _failed(yard)
        reset = await yard.store.update_status(retried_server(await yard.stored(server)))
        await yard.store.update(annotated(reset, RETRIED, "now"))
        await yard.rest()
        assert [(each.state, each.image) for each in yard.at_cloud()] == [("running", DEBIAN)]
        assert await _provisioning(yard, server) == "provisioned"

    in_yard(scenario, at_work=True, is_instant=False)


@pytest.mark.parametrize("after_s", [0, 0.05, 0.2, 1, 2, 3])
def test_given_up_while_it_is_rebuilt_it_leaves_nothing(after_s: float) -> None:
    async def scenario(yard: Yard) -> None:
        server = await _running(yard)
        await yard.put(server, update(imageId=DEBIAN))
        await yard.world.clock.sleep(after_s)
        await yard.delete(server)
        await yard.rest()
        await yard.nothing_is_left()

    in_yard(scenario, at_work=True, is_instant=False)
