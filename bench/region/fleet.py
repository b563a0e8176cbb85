"""A house with many servers that do nothing, on a hundred networks; its files are made once in a run."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.bed import Bed
from bench.heap import give_back
from bench.region.filling import Model, fill
from bench.region.house import House, housed
from remuda.region.kinds.networks import Address, Identity, Network
from remuda.region.kinds.servers import Server
from remuda.region.networks.ipam import find_address
from remuda.region.servers.provider_spec import server_handle
from remuda.resources.conventions import identity_of

__all__ = ["NETWORKS", "fleet", "model_of", "prepared"]

NETWORKS = 100
"""So many networks have all the servers."""


@asynccontextmanager
async def fleet(bed: Bed, count: int) -> AsyncIterator[House]:
    """Run a house with so many servers."""
    async with housed(bed, at=await prepared(bed, count), is_new=False) as house:
        yield house


async def prepared(bed: Bed, count: int) -> Path:
    """Return a directory with the files of such a house."""
    directory = bed.directory(f"fleet-{count}")
    if not (directory / "remuda.db").exists():
        await _make(bed, directory, count)
    return directory


async def _make(bed: Bed, directory: Path, count: int) -> None:
    async with housed(bed, at=directory) as house:
        networks = await house.networks(NETWORKS)
        names = [await house.server(network, "model") for network in networks]
        await house.settled()
        models = [await model_of(house, name, network) for name, network in zip(names, networks, strict=True)]
    fill(directory, models, count - NETWORKS)
    give_back()


async def model_of(house: House, name: str, network: str) -> Model:
    """Return a server that runs as something to copy."""
    server = await house.store.get(Server, name)
    address: Address | None = await find_address(house.store, server)
    assert address is not None, "it runs"
    home = await house.store.get(Identity, identity_of(server))
    return Model(
        server=server,
        address=address,
        network=await house.store.get(Network, network),
        at_cloud=server_handle(server, home, 0),
    )
