"""A provider that tells of changes tells of those that happen by time, too."""

from remuda.providers.contract.common import Handle
from remuda.providers.contract.provider import CloudEvent
from tests.kit.providers.candidates import on_every_provider
from tests.kit.providers.conformance import NETWORK, TENANCY, Bench, handle_of_port, handle_of_server, new_image

SERVER = handle_of_server()


@on_every_provider("events", "servers", "ports")
async def test_whoever_listens_hears_of_what_goes(bench: Bench) -> None:
    provider = bench.provider
    assert provider.events is not None
    assert provider.networks is not None
    assert provider.ports is not None
    assert provider.tenancies is not None
    await bench.port()
    events = provider.events.events()
    await provider.ports.remove_port(handle_of_port())
    await provider.networks.remove_network(NETWORK)
    await provider.tenancies.remove_tenancy(TENANCY)
    wanted = {
        CloudEvent("tenancy", Handle("", TENANCY)),
        CloudEvent("network", NETWORK),
        CloudEvent("port", handle_of_port()),
    }
    while wanted:
        wanted.discard(await anext(events))


@on_every_provider("events", "servers", "ports")
async def test_nobody_has_to_ask_whether_a_server_runs_yet(bench: Bench) -> None:
    events, servers = bench.provider.events, bench.provider.servers
    assert events is not None
    assert servers is not None
    heard = events.events()
    await bench.port()
    seen = [(await servers.create_server(bench.server_spec())).state]
    while "running" not in seen:
        if await anext(heard) == CloudEvent("server", SERVER):
            found = await servers.find_server(SERVER)
            assert found is not None
            seen.append(found.state)
    await servers.remove_server(SERVER)
    while await servers.find_server(SERVER) is not None:
        await anext(heard)


@on_every_provider("events", "snapshots", "images", "servers", "ports")
async def test_nobody_has_to_ask_whether_a_snapshot_is_ready(bench: Bench) -> None:
    events, snapshots, images = bench.provider.events, bench.provider.snapshots, bench.provider.images
    assert events is not None
    assert snapshots is not None
    assert images is not None
    server = await bench.server()
    heard = events.events()
    states = [(await snapshots.snapshot_server(server.handle, new_image())).state]
    while "ready" not in states:
        if await anext(heard) == CloudEvent("image", Handle("", new_image().id)):
            found = await images.find_image(new_image().id)
            assert found is not None
            states.append(found.state)
