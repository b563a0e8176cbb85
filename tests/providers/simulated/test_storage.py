"""The cloud's file: durable, private, and nobody else's."""

import asyncio
import stat
import threading
from pathlib import Path

import apsw
import pytest

from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import (
    AlreadyExists,
    RemudaError,
    StorageFailing,
    StoreForeign,
    StoreInaccessible,
    StoreTooNew,
    StoreTooOld,
)
from remuda.kernel.randomness import SystemRandomness
from remuda.providers.contract.common import Handle, InUse, NoCapacity
from remuda.providers.contract.filestorage import CloudAttachment, CloudFileStorageSpec
from remuda.providers.contract.networks import CloudAddressRange
from remuda.providers.contract.provider import CloudEvent
from remuda.providers.simulated.catalogue import without_delays
from remuda.providers.simulated.database import open_database
from remuda.providers.simulated.gateway import DiskSync
from remuda.providers.simulated.operator import open_operator
from remuda.providers.simulated.provider import open_cloud
from tests.kit.environment import options
from tests.kit.providers.conformance import NETWORK, everything, handle_of_port, handle_of_server, port_spec
from tests.kit.providers.simulated_cloud import USUAL, Scene, bench_of, on_file
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import SEALER

QUICK = without_delays(USUAL)


async def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    path, clock = tmp_path / "clouds" / "sim-north.db", SystemClock()
    first = open_cloud(path, QUICK, clock=clock, sealer=SEALER, randomness=SystemRandomness())
    bench = bench_of(first, clock)
    made = await bench.server(1)
    port = await bench.port(2, is_public=True)
    await first.stop()
    second = open_cloud(path, QUICK, clock=clock, sealer=SEALER, randomness=SystemRandomness())
    servers, ports = second.provider.servers, second.provider.ports
    assert servers is not None
    assert ports is not None
    assert await servers.find_server(made.handle) == made
    assert await ports.find_port(port.spec.handle) == port
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    await second.stop()


async def test_a_killed_process_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    path, clock = tmp_path / "cloud.db", SystemClock()
    killed = open_cloud(path, QUICK, clock=clock, sealer=SEALER, randomness=SystemRandomness())
    await bench_of(killed, clock).server()
    kept = tmp_path / "kept.db"
    for suffix in ("", "-wal"):
        kept.with_name(kept.name + suffix).write_bytes(path.with_name(path.name + suffix).read_bytes())
    found = open_cloud(kept, QUICK, clock=clock, sealer=SEALER, randomness=SystemRandomness())
    assert found.provider.servers is not None
    assert len(await everything(found.provider.servers.server_versions())) == 1
    await found.stop()
    await killed.stop()


class Syncs:
    """A disk whose syncs wait until they are let."""

    def __init__(self) -> None:
        self.may_go, self.has_begun = threading.Event(), threading.Event()
        self.begun = 0

    def sync(self, _file: int) -> None:
        self.begun += 1
        self.has_begun.set()
        assert self.may_go.wait(120)


async def test_an_answer_waits_until_it_is_on_the_disk_and_one_sync_serves_many(tmp_path: Path) -> None:
    path = tmp_path / "cloud.db"
    storage, syncs = open_database(path, clock=SystemClock(), syncs="elsewhere"), Syncs()
    disk = DiskSync(path, sync=syncs.sync)
    answers = [asyncio.create_task(disk.wait())]
    await asyncio.to_thread(syncs.has_begun.wait, 120)
    answers += [asyncio.create_task(disk.wait()) for _ in range(20)]
    await asyncio.sleep(0.01)
    assert not any(each.done() for each in answers)
    assert syncs.begun == 1, "the next one begins when this one has ended"
    syncs.may_go.set()
    await asyncio.gather(*answers)
    assert syncs.begun == 2
    storage.close()
    await disk.close()


async def test_a_cloud_that_takes_time_waits_for_its_disk_and_an_instant_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(DiskSync.__init__, "__kwdefaults__", {"sync": synced.append})
    for number, catalogue in enumerate((QUICK, USUAL)):
        cloud = open_cloud(
            tmp_path / f"{number}.db", catalogue, clock=SystemClock(), sealer=SEALER, randomness=SystemRandomness()
        )
        await bench_of(cloud, SystemClock()).tenancy()
        await cloud.stop()
        assert len(synced) == number


async def test_a_long_log_is_moved_into_the_file(tmp_path: Path) -> None:
    path = tmp_path / "cloud.db"
    storage = open_database(path, clock=SystemClock(), syncs="elsewhere")
    disk = DiskSync(path)
    before = path.stat().st_size
    for _ in range(1500):
        storage.write(lambda: storage.record_change("server", Handle("t", "x" * 3000)))
    await disk.wait()
    assert path.stat().st_size > before
    storage.close()
    await disk.close()


@options(catalogue=QUICK)
async def test_an_effect_that_is_refused_has_done_nothing(scene: Scene) -> None:
    ports, events = scene.provider.ports, scene.provider.events
    assert ports is not None
    assert events is not None
    storage = scene.cloud._context.storage
    storage.run("UPDATE public_addresses SET holder = 'somebody', tenancy = position")
    await scene.bench.network()
    before = storage.rows("SELECT * FROM changes"), storage.rows("SELECT * FROM addresses")
    heard = events.events()
    with pytest.raises(NoCapacity):
        await ports.converge_port(port_spec(is_public=True))
    assert (storage.rows("SELECT * FROM changes"), storage.rows("SELECT * FROM addresses")) == before
    await ports.converge_port(port_spec())
    await ports.remove_port(handle_of_port())
    assert await anext(heard) == CloudEvent("port", handle_of_port())


@options(catalogue=QUICK)
async def test_what_did_not_happen_is_not_told(scene: Scene) -> None:
    ports, events = scene.provider.ports, scene.provider.events
    assert ports is not None
    assert events is not None
    await scene.bench.port(1)
    heard = events.events()
    with pytest.raises(AlreadyExists):
        await ports.converge_port(port_spec(2, address=port_spec(1).address))
    await ports.remove_port(handle_of_port(1))
    assert await anext(heard) == CloudEvent("port", handle_of_port(1))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(heard), 120)


@options(seeds=3)
async def test_two_processes_on_one_file_hear_of_what_the_other_does_and_of_what_becomes_of_it(world: World) -> None:
    path = world.disk.directory.parent / "cloud.db"
    first, second = (on_file(path, world.clock, world.randomness) for _ in range(2))
    await first.start()
    assert first.provider.events is not None
    assert first.provider.servers is not None
    assert second.provider.servers is not None
    bench = bench_of(second, world.clock)
    await bench.port()
    heard = first.provider.events.events()
    await second.provider.servers.create_server(bench.server_spec())
    states = []
    while "running" not in states:
        if (await anext(heard)).subject == "server":
            found = await first.provider.servers.find_server(handle_of_server())
            states.append(found.state if found else "gone")
    assert states == ["building", "running"]
    for cloud in (first, second):
        await cloud.stop()


async def test_what_another_process_did_is_told_with_the_next_change_of_ones_own(tmp_path: Path) -> None:
    path, clock = tmp_path / "cloud.db", SystemClock()
    cloud = open_cloud(path, QUICK, clock=clock, sealer=SEALER, randomness=SystemRandomness())
    bench = bench_of(cloud, clock)
    await bench.server()
    assert cloud.provider.events is not None
    heard = cloud.provider.events.events()
    with open_operator(path, clock) as operator:
        operator.stop("web-1")
    await bench.tenancy("another")
    assert await anext(heard) == CloudEvent("server", handle_of_server())
    assert await anext(heard) == CloudEvent("tenancy", Handle("", "another"))
    await cloud.stop()


@options(catalogue=QUICK)
async def test_a_network_stays_while_a_storage_is_attached_to_it(scene: Scene) -> None:
    networks, storages = scene.provider.networks, scene.provider.file_storages
    assert networks is not None
    assert storages is not None
    await scene.bench.network()
    spec = CloudFileStorageSpec(
        handle=Handle("", "filestorage-f.uid"),
        storage_class=QUICK.storage_classes[0].id,
        size_bytes=1,
        attachments=(CloudAttachment(network=NETWORK, addresses=CloudAddressRange("10.1.0.2", "10.1.0.5")),),
    )
    await storages.converge_storage(spec)
    with pytest.raises(InUse):
        await networks.remove_network(NETWORK)
    await storages.remove_storage(spec.handle)
    await networks.remove_network(NETWORK)


@options(catalogue=QUICK)
async def test_a_listener_that_is_slow_hears_of_each_thing_once(scene: Scene) -> None:
    assert scene.provider.events is not None
    await scene.bench.server()
    heard = scene.provider.events.events()
    for _ in range(50):
        await scene.servers.reboot_server(handle_of_server(), hard=True)
    assert await anext(heard) == CloudEvent("server", handle_of_server())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(heard), 120)


def test_the_log_of_changes_has_an_end(tmp_path: Path) -> None:
    storage = open_database(tmp_path / "cloud.db", clock=SystemClock())
    for _ in range(12):
        storage.write(lambda: [storage.record_change("server", Handle("t", "n")) for _ in range(1000)])
    ((count, last),) = storage.rows("SELECT count(*), max(sequence) FROM changes")
    assert (count, last) == (10_000, 12_000)
    storage.close()


def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("not a database, but long enough to be taken for one by its size" * 20)
    other = tmp_path / "other.db"
    with apsw.Connection(str(other)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    for path in (text, other):
        before = path.read_bytes()
        with pytest.raises(StoreForeign):
            open_database(path, clock=SystemClock())
        assert path.read_bytes() == before


@pytest.mark.parametrize(("found", "error"), [(1, StoreTooOld), (99, StoreTooNew)])
def test_a_file_of_another_format_is_left_alone(tmp_path: Path, found: int, error: type[Exception]) -> None:
    path = tmp_path / "cloud.db"
    open_database(path, clock=SystemClock()).close()
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", found)
    connection.close()
    before = path.stat().st_mtime_ns, path.read_bytes()
    with pytest.raises(error):
        open_database(path, clock=SystemClock())
    assert (path.stat().st_mtime_ns, path.read_bytes()) == before


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreInaccessible):
        open_database(tmp_path / "file" / "cloud.db", clock=SystemClock())


def test_a_file_that_fails_is_told_in_our_words(tmp_path: Path) -> None:
    storage = open_database(tmp_path / "cloud.db", clock=SystemClock())
    storage.run("PRAGMA query_only = 1")
    with pytest.raises(StorageFailing):
        storage.write(lambda: storage.record_change("server", Handle("t", "n")))
    storage.run("PRAGMA query_only = 0")
    assert storage.write(lambda: storage.record_change("server", Handle("t", "n"))) == 1
    storage.close()
    with pytest.raises(RemudaError, match="is closed"):
        storage.rows("SELECT 1")
