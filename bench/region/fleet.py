"""An environment with many servers that do nothing, on a hundred networks; its files are made once in a run."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.bed import Bed
from bench.heap import release
from bench.region.environment import Environment, housed
from bench.region.filling import Model, fill
from remuda.region.kinds.networks import Address, Identity, Network
from remuda.region.kinds.servers import Server
from remuda.region.networks.ipam import find_address
from remuda.region.servers.provider_spec import server_handle
from remuda.resources.conventions import identity_of

__all__ = ["NETWORKS", "fleet", "model_of", "prepared"]

NETWORKS = 100
"""So many networks have all the servers."""


@asynccontextmanager
async def fleet(bed: Bed, count: int) -> AsyncIterator[Environment]:
    """Run an environment with so many servers."""
    async with housed(bed, at=await prepared(bed, count), is_new=False) as environment:
        yield environment


async def prepared(bed: Bed, count: int) -> Path:
    """Return a directory with the files of such an environment."""
    directory = bed.directory(f"fleet-{count}")
    if not (directory / "remuda.db").exists():
        await _make(bed, directory, count)
    return directory


async def _make(bed: Bed, directory: Path, count: int) -> None:
    async with housed(bed, at=directory) as environment:
        networks = await environment.networks(NETWORKS)
        names = [await environment.server(network, "model") for network in networks]
        await environment.settled()
        models = [await model_of(environment, name, network) for name, network in zip(names, networks, strict=True)]
    fill(directory, models, count - NETWORKS)
    release()


async def model_of(environment: Environment, name: str, network: str) -> Model:
    """Return a server that runs as something to copy."""
    server = await environment.store.get(Server, name)
    address: Address | None = await find_address(environment.store, server)
    assert address is not None, "it runs"
    home = await environment.store.get(Identity, identity_of(server))
    return Model(
        server=server,
        address=address,
        network=await environment.store.get(Network, network),
        at_cloud=server_handle(server, home, 0),
    )
