"""What happens out of band is noticed, whoever does it."""

from dataclasses import replace
from pathlib import Path

import pytest

from remuda.cli.commands import sim
from remuda.cli.commands.sim import CloudOptions
from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import Invalid, NotFound, Unusable
from remuda.kernel.randomness import SystemRandomness
from remuda.providers.contract.common import Handle, NoCapacity, Rejected, WrongState, id_in, storage_name
from remuda.providers.contract.filestorage import CloudFileStorageSpec
from remuda.providers.contract.provider import CloudEvent
from remuda.providers.simulated.catalogue import SimDurations, without_delays
from remuda.providers.simulated.operator import open_operator
from tests.kit.environment import options
from tests.kit.providers.conformance import handle_of_port, handle_of_server
from tests.kit.providers.simulated_cloud import PROMPT, USUAL, Scene, bench_of, on_file, with_capacity

SERVER = handle_of_server()
OURS = id_in(SERVER.name)


async def test_a_server_is_named_by_any_of_its_names(scene: Scene) -> None:
    server = await scene.bench.server(1)
    await scene.bench.server(2)
    operator = scene.cloud.operator
    for name in (OURS, server.id, SERVER.name, "web-1"):
        assert operator.find(name) == SERVER
    with pytest.raises(NotFound):
        operator.find("web-9")
    with pytest.raises(NotFound):
        operator.find(OURS[:-1])
    assert [each.handle for each in operator.servers()] == [SERVER, handle_of_server(2)]


@options(seeds=1)
async def test_a_name_that_several_have_is_refused_with_theirs(scene: Scene) -> None:
    first, second = await scene.bench.server(1), await scene.bench.server(2)
    scene.cloud._context.storage.run("UPDATE servers SET document = (SELECT document FROM servers WHERE number = 1)")
    with pytest.raises(Invalid, match="matches several servers") as rejection:
        scene.cloud.operator.find("web-1")
    ids = ", ".join(sorted(id_in(each.handle.name) for each in (first, second)))
    assert str(rejection.value) == f"The name web-1 matches several servers: use one of {ids}."


async def test_the_power_of_a_running_server_is_cut(scene: Scene) -> None:
    before = await scene.bench.server()
    scene.cloud.operator.stop(OURS)
    after = await scene.servers.find_server(SERVER)
    assert after is not None
    assert (after.state, after.launched) == ("stopped", before.launched)
    assert after.version != before.version
    with pytest.raises(WrongState):
        scene.cloud.operator.stop(OURS)
    await scene.servers.start_server(SERVER)


async def test_a_server_fails_with_a_reason_even_while_it_boots(scene: Scene) -> None:
    await scene.bench.port()
    await scene.servers.create_server(scene.bench.server_spec())
    scene.cloud.operator.fail(OURS, "smoke")
    await scene.sleep(60)
    found = await scene.servers.find_server(SERVER)
    assert found is not None
    assert (found.state, found.fault, found.launched) == ("failed", "smoke", None)
    await scene.servers.remove_server(SERVER)
    with pytest.raises(WrongState):
        scene.cloud.operator.fail(OURS)


@options(catalogue=with_capacity(2, 1))
async def test_a_server_moves_to_another_host(scene: Scene) -> None:
    before = await scene.bench.server()
    host = scene.cloud.operator.migrate(OURS)
    after = await scene.servers.find_server(SERVER)
    assert after is not None
    assert after.host == host != before.host
    assert after.state == "running"
    assert after.version != before.version


@options(catalogue=with_capacity(1, 5))
async def test_a_server_stays_if_no_other_host_is_free(scene: Scene) -> None:
    before = await scene.bench.server()
    with pytest.raises(NoCapacity):
        scene.cloud.operator.migrate(OURS)
    assert await scene.servers.find_server(SERVER) == before


@options(catalogue=with_capacity(1, 1))
async def test_a_server_vanishes_and_leaves_its_port_and_its_place(scene: Scene) -> None:
    await scene.bench.server()
    scene.cloud.operator.vanish(OURS)
    assert await scene.state() == "gone"
    assert scene.provider.ports is not None
    port = await scene.provider.ports.find_port(handle_of_port())
    assert port is not None
    assert port.server == ""
    await scene.servers.create_server(scene.bench.server_spec())


async def test_a_storage_does_not_shrink_below_what_is_on_it(scene: Scene) -> None:
    storages = scene.provider.file_storages
    assert storages is not None
    handle = Handle("", storage_name("f1000000-0000-4000-8000-000000000001", "uid-6"))

    def of_size(size: int) -> CloudFileStorageSpec:
        return CloudFileStorageSpec(handle=handle, storage_class=USUAL.storage_classes[0].id, size_bytes=size)

    await storages.converge_storage(of_size(100))
    scene.cloud.operator.fill(handle.name, 60)
    with pytest.raises(Rejected, match="the data on the storage"):
        await storages.converge_storage(of_size(50))
    assert (await storages.converge_storage(of_size(70))).used_bytes == 60
    with pytest.raises(NotFound):
        scene.cloud.operator.fill("none", 1)


async def test_what_another_process_does_to_the_file_is_noticed_and_told(tmp_path: Path) -> None:
    clock = SystemClock()
    cloud = on_file(tmp_path / "cloud.db", clock, SystemRandomness(), without_delays(USUAL))
    await cloud.start()
    bench = bench_of(cloud, clock)
    assert bench.provider.servers is not None
    assert bench.provider.events is not None
    await bench.server()
    heard = bench.provider.events.events()
    with open_operator(tmp_path / "cloud.db", clock) as operator:
        operator.stop(OURS)
    assert await anext(heard) == CloudEvent("server", SERVER)
    found = await bench.provider.servers.find_server(SERVER)
    assert found is not None
    assert found.state == "stopped"
    with open_operator(tmp_path / "cloud.db", clock) as operator:
        operator.fail(OURS)
    await bench.provider.servers.remove_server(SERVER)
    assert await anext(heard) == CloudEvent("server", SERVER), "between two changes of its own, too"
    await cloud.stop()


async def test_an_operator_sees_what_became_of_servers_while_nobody_had_the_cloud_open(tmp_path: Path) -> None:
    clock = SystemClock()
    path = tmp_path / "cloud.db"
    cloud = on_file(path, clock, SystemRandomness(), replace(PROMPT, times=SimDurations(boot_s=0.05)))
    bench = bench_of(cloud, clock)
    assert bench.provider.servers is not None
    await bench.port()
    await bench.provider.servers.create_server(bench.server_spec())
    await cloud.stop()
    await clock.sleep(0.1)
    with open_operator(path, clock) as operator:
        (server,) = operator.servers()
        assert server.state == "running"
    with pytest.raises(NotFound), open_operator(tmp_path / "none.db", clock):
        pass


async def with_servers(directory: Path, *names: str) -> None:
    for name in names:
        cloud = on_file(directory / "clouds" / f"{name}.db", SystemClock(), SystemRandomness(), without_delays(USUAL))
        await bench_of(cloud, SystemClock()).server()
        await cloud.stop()


async def test_commands_work_on_the_files_of_the_clouds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await with_servers(tmp_path, "sim-north")
    sim.stop("web-1", options=CloudOptions(data=tmp_path))
    assert capsys.readouterr().out == "The server web-1 of sim-north was stopped.\n"
    sim.fail(OURS, reason="smoke", options=CloudOptions(data=tmp_path))
    sim.migrate(OURS, options=CloudOptions(data=tmp_path))
    capsys.readouterr()
    sim.list(options=CloudOptions(data=tmp_path))
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["CLOUD", "SERVER", "HOSTNAME", "STATE", "HOST", "FAULT"]
    assert row.split() == ["sim-north", OURS, "web-1", "failed", "sim-north-sim-standard-4-02", "smoke"]
    sim.vanish(OURS, options=CloudOptions(cloud="sim-north", data=tmp_path))
    capsys.readouterr()
    sim.list(options=CloudOptions(data=tmp_path))
    assert len(capsys.readouterr().out.splitlines()) == 1


async def test_a_command_that_could_mean_several_clouds_asks_which(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="has no simulated cloud: name the data directory"):
        sim.list(options=CloudOptions(data=tmp_path))
    await with_servers(tmp_path, "sim-north", "sim-south")
    with pytest.raises(Invalid, match=r"exists in several clouds: .* --cloud: sim-north, sim-south"):
        sim.stop("web-1", options=CloudOptions(data=tmp_path))
    sim.stop("web-1", options=CloudOptions(cloud="sim-south", data=tmp_path))
    with pytest.raises(Unusable, match=r"^The server web-9 does not exist in sim-north or sim-south: see remuda sim"):
        sim.stop("web-9", options=CloudOptions(data=tmp_path))
    with pytest.raises(Unusable, match=r"^The server web-9 does not exist in sim-north: "):
        sim.vanish("web-9", options=CloudOptions(cloud="sim-north", data=tmp_path))
    with pytest.raises(Invalid, match=r"--cloud sim-east does not exist: use one of sim-north, sim-south"):
        sim.list(options=CloudOptions(cloud="sim-east", data=tmp_path))


async def test_what_a_server_cannot_do_now_is_said_of_what_was_typed(tmp_path: Path) -> None:
    await with_servers(tmp_path, "sim-north")
    sim.stop("web-1", options=CloudOptions(data=tmp_path))
    named = "The server web-1 of sim-north"
    with pytest.raises(Unusable) as stopped:
        sim.stop("web-1", options=CloudOptions(data=tmp_path))
    assert str(stopped.value) == f"{named} is already stopped: start it first."
    sim.fail("web-1", options=CloudOptions(data=tmp_path))
    with pytest.raises(Unusable) as failed:
        sim.stop(OURS, options=CloudOptions(data=tmp_path))
    assert str(failed.value) == (f"The server {OURS} of sim-north has failed: rebuild or delete it.")
    with open_operator(tmp_path / "clouds" / "sim-north.db", SystemClock()) as operator:
        operator._storage.run("UPDATE hosts SET size = used")
    with pytest.raises(Unusable) as crowded:
        sim.migrate("web-1", options=CloudOptions(data=tmp_path))
    assert (
        str(crowded.value)
        == f"{named} cannot be moved, because no other host has capacity for it: delete another server first."
    )


async def test_a_server_that_boots_is_said_to_need_time(tmp_path: Path) -> None:
    path = tmp_path / "clouds" / "sim-north.db"
    cloud = on_file(path, SystemClock(), SystemRandomness(), replace(PROMPT, times=SimDurations(boot_s=60)))
    bench = bench_of(cloud, SystemClock())
    assert bench.provider.servers is not None
    await bench.port()
    await bench.provider.servers.create_server(bench.server_spec())
    await cloud.stop()
    with pytest.raises(
        Unusable, match=r"^The server web-1 of sim-north is building: wait until it is running, see remuda"
    ):
        sim.stop("web-1", options=CloudOptions(data=tmp_path))
