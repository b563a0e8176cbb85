"""Images and snapshots."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from remuda.kernel.errors import AlreadyExists, NotFound, OutcomeUnknown
from remuda.providers.contract.catalogue import CloudImageSpec
from remuda.providers.contract.common import InUse, Rejected
from tests.kit.providers.candidates import on_every_provider
from tests.kit.providers.conformance import (
    DISK,
    NETWORK,
    TENANCY,
    Bench,
    content,
    everything,
    handle_of_port,
    handle_of_server,
    new_image,
)


@on_every_provider("images")
async def test_the_images_that_are_offered_are_ready_and_owned_by_nobody(bench: Bench) -> None:
    images = bench.provider.images
    assert images is not None
    found = {each.id: each for each in await images.images()}
    assert found[bench.image].state == "ready"
    assert found[bench.image].organization == ""
    assert await images.find_image(bench.image) == found[bench.image]
    assert await images.find_image("none") is None


@on_every_provider("images")
async def test_an_image_is_made_of_bytes_once(bench: Bench) -> None:
    images = bench.provider.images
    assert images is not None
    wanted = new_image()
    await images.create_image(wanted, content(DISK[:500], DISK[500:]))
    made = await bench.image_in_state(wanted.id, "ready")
    assert {name: getattr(made, name) for name in CloudImageSpec.__dataclass_fields__} == {
        name: getattr(wanted, name) for name in CloudImageSpec.__dataclass_fields__
    }
    assert made.size_gib == 1
    assert made in await images.images()
    with pytest.raises(AlreadyExists):
        await images.create_image(wanted, content(b"other"))
    assert await images.find_image(wanted.id) == made


@on_every_provider("images")
async def test_of_content_that_breaks_off_nothing_is_left(bench: Bench) -> None:
    images = bench.provider.images
    assert images is not None

    async def broken() -> AsyncIterator[bytes]:
        yield b"some"
        raise ConnectionError("cable")

    with pytest.raises((ConnectionError, OutcomeUnknown)):
        await images.create_image(new_image(), broken())
    with pytest.raises(Rejected):
        await images.create_image(new_image(), content())
    assert await images.find_image(new_image().id) is None
    await images.create_image(new_image(), content(b"all of it"))
    assert await images.find_image(new_image().id) is not None


@on_every_provider("images", "servers", "ports")
async def test_an_image_stays_while_a_server_uses_it(bench: Bench) -> None:
    images, servers = bench.provider.images, bench.provider.servers
    assert images is not None
    assert servers is not None
    image = new_image().id
    await images.create_image(new_image(), content(b"disk"))
    await bench.image_in_state(image, "ready")
    await bench.port()
    await servers.create_server(replace(bench.server_spec(), image=image))
    await bench.in_state(handle_of_server(), "running")
    with pytest.raises(InUse):
        await images.remove_image(image)
    await servers.remove_server(handle_of_server())
    await bench.gone(handle_of_server())
    await images.remove_image(image)
    assert await images.find_image(image) is None
    await images.remove_image(image)


@on_every_provider("images")
async def test_an_image_that_is_offered_is_not_ours_to_remove(bench: Bench) -> None:
    images = bench.provider.images
    assert images is not None
    with pytest.raises(NotFound):
        await images.remove_image(bench.image)
    assert await images.find_image(bench.image) is not None


@on_every_provider("snapshots", "images", "servers", "ports")
async def test_a_snapshot_becomes_an_image_that_a_server_can_be_made_of(bench: Bench) -> None:
    snapshots, servers = bench.provider.snapshots, bench.provider.servers
    assert snapshots is not None
    assert servers is not None
    server = await bench.server(1)
    begun = await snapshots.snapshot_server(server.handle, new_image())
    assert begun.id == new_image().id
    assert begun.state in {"pending", "creating", "ready"}
    ready = await bench.image_in_state(new_image().id, "ready")
    assert ready.organization == "the-organization"
    assert ready.size_gib > 0
    with pytest.raises(AlreadyExists):
        await snapshots.snapshot_server(server.handle, new_image())
    await servers.remove_server(server.handle)
    await bench.gone(server.handle)
    await bench.port(2)
    await servers.create_server(replace(bench.server_spec(2), image=new_image().id))
    await bench.in_state(handle_of_server(2), "running")


@on_every_provider("snapshots", "images", "servers", "ports", "networks", "tenancies")
async def test_a_snapshot_stays_after_its_tenancy_and_can_be_removed_then(bench: Bench) -> None:
    provider = bench.provider
    assert provider.images is not None
    server = await bench.server()
    assert provider.snapshots is not None
    await provider.snapshots.snapshot_server(server.handle, new_image())
    await bench.image_in_state(new_image().id, "ready")
    assert provider.servers is not None
    await provider.servers.remove_server(server.handle)
    await bench.gone(server.handle)
    assert provider.ports is not None
    await provider.ports.remove_port(handle_of_port())
    assert provider.networks is not None
    await provider.networks.remove_network(NETWORK)
    assert provider.tenancies is not None
    await provider.tenancies.remove_tenancy(TENANCY)
    assert await provider.tenancies.find_tenancy(TENANCY) is None
    assert await everything(provider.tenancies.tenancies()) == []
    left = await provider.images.find_image(new_image().id)
    assert left is not None
    assert left.state == "ready"
    await provider.images.remove_image(new_image().id)
    assert await provider.images.find_image(new_image().id) is None


@on_every_provider("snapshots")
async def test_a_snapshot_needs_a_server(bench: Bench) -> None:
    assert bench.provider.snapshots is not None
    await bench.tenancy()
    with pytest.raises(NotFound):
        await bench.provider.snapshots.snapshot_server(handle_of_server(), new_image())
