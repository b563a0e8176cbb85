from uuid import UUID

from tests.kit.providers.candidates import on_every_provider
from tests.kit.providers.conformance import Bench


@on_every_provider("catalogue")
async def test_flavors_have_ids_names_and_sizes(bench: Bench) -> None:
    flavors = await bench.provider.catalogue.flavors()
    assert len({each.id for each in flavors}) == len(flavors) > 0
    for flavor in flavors:
        assert flavor.name
        assert flavor.cpus > 0
        assert flavor.memory_bytes > 0
        assert flavor.disk_bytes >= 0
        assert flavor.free is None or flavor.free >= 0
    assert bench.flavor in {each.id for each in flavors}


@on_every_provider("external_networks")
async def test_external_networks_have_ids_and_names(bench: Bench) -> None:
    assert bench.provider.external_networks is not None
    networks = await bench.provider.external_networks.external_networks()
    assert networks
    assert all(each.id and each.name for each in networks)


@on_every_provider("servers", "ports")
async def test_a_server_takes_capacity_and_releases_it(bench: Bench) -> None:
    async def free() -> int | None:
        return next(each.free for each in await bench.provider.catalogue.flavors() if each.id == bench.flavor)

    before = await free()
    server = await bench.server()
    assert UUID(server.id), "a provider's own id, which may begin with a digit"
    during = await free()
    assert before is None or during == before - 1
    assert bench.provider.servers is not None
    await bench.provider.servers.remove_server(server.handle)
    await bench.gone(server.handle)
    assert await free() == before
