from dataclasses import replace
from datetime import UTC

import pytest

from remuda.kernel.errors import AlreadyExists, NotFound
from remuda.providers.contract.common import InUse, WrongState
from remuda.providers.contract.servers import CloudServerVersion
from tests.kit.providers.candidates import on_every_provider
from tests.kit.providers.conformance import Bench, everything, handle_of_port, handle_of_server

SERVER = handle_of_server()


@on_every_provider("servers", "ports")
async def test_a_server_comes_to_run_and_says_when(bench: Bench) -> None:
    server = await bench.server()
    assert server.handle == SERVER
    assert server.flavor == bench.flavor
    assert server.image == bench.image
    assert server.port == handle_of_port().name
    assert server.id
    assert server.fault == ""
    assert server.created.tzinfo is UTC
    assert server.launched is not None
    assert server.launched >= server.created


@on_every_provider("servers", "ports")
async def test_a_name_is_given_once(bench: Bench) -> None:
    servers = bench.provider.servers
    assert servers is not None
    server = await bench.server()
    with pytest.raises(AlreadyExists):
        await servers.create_server(bench.server_spec())
    with pytest.raises(AlreadyExists):  # whatever else would speak against it
        await servers.create_server(replace(bench.server_spec(), flavor="gone", image="gone"))
    assert (await bench.in_state(SERVER, "running")).id == server.id


@on_every_provider("servers", "ports")
async def test_one_server_stands_behind_a_port(bench: Bench) -> None:
    servers = bench.provider.servers
    assert servers is not None
    await bench.server()
    with pytest.raises(InUse):
        await servers.create_server(bench.server_spec(replacement=1))
    assert await servers.find_server(handle_of_server(1, 1)) is None


@on_every_provider("servers", "ports")
async def test_what_a_server_is_made_of_has_to_be_there(bench: Bench) -> None:
    servers = bench.provider.servers
    assert servers is not None
    await bench.network()
    with pytest.raises(NotFound):
        await servers.create_server(bench.server_spec())
    await bench.port()
    for wanted in (replace(bench.server_spec(), flavor="none"), replace(bench.server_spec(), image="none")):
        with pytest.raises(NotFound):
            await servers.create_server(wanted)
    assert await everything(servers.server_versions()) == []


@on_every_provider("servers", "ports")
async def test_a_replaced_server_hands_on_its_port(bench: Bench) -> None:
    servers, ports = bench.provider.servers, bench.provider.ports
    assert servers is not None
    assert ports is not None
    first = await bench.server()
    before = await ports.find_port(handle_of_port())
    assert before is not None
    await servers.remove_server(SERVER)
    await bench.gone(SERVER)
    await servers.create_server(bench.server_spec(replacement=1))
    second = await bench.in_state(handle_of_server(1, 1), "running")
    assert second.id != first.id
    after = await ports.find_port(handle_of_port())
    assert after == replace(before, server=second.handle.name)


@on_every_provider("servers", "ports")
async def test_removing_is_fine_with_what_is_not_there(bench: Bench) -> None:
    servers = bench.provider.servers
    assert servers is not None
    await servers.remove_server(SERVER)
    await bench.server()
    await servers.remove_server(SERVER)
    await servers.remove_server(SERVER)
    await bench.gone(SERVER)
    await servers.remove_server(SERVER)


@on_every_provider("servers", "ports")
async def test_a_server_stops_and_starts(bench: Bench) -> None:
    servers = bench.provider.servers
    assert servers is not None
    server = await bench.server()
    with pytest.raises(WrongState):
        await servers.start_server(SERVER)
    await servers.stop_server(SERVER)
    stopped = await bench.in_state(SERVER, "stopped")
    assert stopped.version != server.version
    for verb in (servers.stop_server(SERVER), servers.reboot_server(SERVER, hard=True)):
        with pytest.raises(WrongState):
            await verb
    await servers.start_server(SERVER)
    running = await bench.in_state(SERVER, "running")
    assert running.id == server.id
    assert running.launched == server.launched, "it ran first then"


@on_every_provider("servers", "ports")
async def test_a_server_reboots_and_runs_again(bench: Bench) -> None:
    servers = bench.provider.servers
    assert servers is not None
    server = await bench.server()
    for hard in (False, True):
        await servers.reboot_server(SERVER, hard=hard)
        assert (await bench.in_state(SERVER, "running")).id == server.id


@on_every_provider("servers")
async def test_a_verb_needs_a_server_that_is_there(bench: Bench) -> None:
    servers = bench.provider.servers
    assert servers is not None
    await bench.tenancy()
    for verb in (
        servers.start_server(SERVER),
        servers.stop_server(SERVER),
        servers.reboot_server(SERVER, hard=False),
        servers.rebuild_server(SERVER, bench.image),
    ):
        with pytest.raises(NotFound):
            await verb


@on_every_provider("servers", "ports")
async def test_a_rebuild_changes_the_image_and_nothing_else(bench: Bench) -> None:
    servers = bench.provider.servers
    assert servers is not None
    server = await bench.server()
    await servers.rebuild_server(SERVER, bench.other_image)
    seen = await servers.find_server(SERVER)
    assert seen is not None
    assert seen.image == bench.other_image, "from the moment that it is accepted"
    rebuilt = await bench.in_state(SERVER, "running")
    assert (rebuilt.id, rebuilt.port, rebuilt.flavor) == (server.id, server.port, server.flavor)
    assert rebuilt.launched == server.launched
    assert rebuilt.image == bench.other_image


@on_every_provider("servers", "ports")
async def test_a_stopped_server_is_stopped_after_a_rebuild_too(bench: Bench) -> None:
    servers = bench.provider.servers
    assert servers is not None
    await bench.server()
    await servers.stop_server(SERVER)
    await bench.in_state(SERVER, "stopped")
    await servers.rebuild_server(SERVER, bench.other_image)
    assert (await bench.in_state(SERVER, "stopped")).image == bench.other_image
    with pytest.raises(NotFound):
        await servers.rebuild_server(SERVER, "none")


@on_every_provider("servers", "ports")
async def test_all_servers_are_observed_with_a_version_that_changes_when_they_do(bench: Bench) -> None:
    servers = bench.provider.servers
    assert servers is not None
    made = [await bench.server(number) for number in (1, 2, 3)]
    seen = await everything(servers.server_versions())
    assert sorted(each.handle for each in seen) == sorted(each.handle for each in made)
    assert {each.handle: each.version for each in seen} == {each.handle: each.version for each in made}
    assert await everything(servers.server_versions()) == seen, "nothing changed"
    await servers.stop_server(made[1].handle)
    stopped = await bench.in_state(made[1].handle, "stopped")
    again = {each.handle: each for each in await everything(servers.server_versions())}
    assert again[made[1].handle] == CloudServerVersion(made[1].handle, stopped.version)
    assert again[made[1].handle] not in seen
    assert again[made[0].handle] in seen
