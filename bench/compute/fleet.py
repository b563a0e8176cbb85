"""An environment with many instances that do nothing, on a hundred networks of one project.

Its files are made once in a run. They are those of a data directory, so that `remuda up` can be run on them as well.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from bench.bed import Bed
from bench.compute.environment import ComputeEnvironment, housed
from bench.compute.filling import Model, fill
from bench.cpu import busy_share
from bench.heap import release
from bench.kinds import KEYRING
from bench.region.environment import TENANT
from bench.region.fleet import NETWORKS, model_of
from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.datadir import DataDirectory
from remuda.identity.kinds.quotas import Allocation, Quota, owner_value
from remuda.kernel.files import write_private
from remuda.store.readside.reader import ReaderSettings

__all__ = ["at_rest", "fleet", "prepared"]

_QUIET_PERCENT = 5.0
_LOOK_S = 2.0
_MAX_LOOKS = 300


@asynccontextmanager
async def fleet(
    bed: Bed, count: int, *, cache_bytes: int = ReaderSettings.cache_bytes
) -> AsyncIterator[ComputeEnvironment]:
    """Run an environment with so many instances."""
    async with housed(bed, at=await prepared(bed, count), is_new=False, cache_bytes=cache_bytes) as environment:
        yield environment


async def prepared(bed: Bed, count: int) -> Path:
    """Return a directory with the files of such an environment."""
    directory = bed.directory(f"instances-{count}")
    data = DataDirectory(directory)
    if not data.store.exists():
        write_private(data.keys, msgspec.json.encode({"format": 1, "keys": KEYRING.keys}))
        await _make(bed, directory, count)
    return directory


async def _make(bed: Bed, directory: Path, count: int) -> None:
    async with housed(bed, at=directory) as environment:
        networks = await environment.region.networks(NETWORKS)
        names = [await environment.instance(network, "model") for network in networks]
        await environment.settled()
        models = [await _model(environment, name, network) for name, network in zip(names, networks, strict=True)]
        head = await environment.store.get(Quota, TENANT.id)
    fill(directory, models, head, count - NETWORKS)
    release()


async def _model(environment: ComputeEnvironment, name: str, network: str) -> Model:
    held = await environment.store.list(Allocation, index=("owner", owner_value(INSTANCE.qualified, name)))
    (row,) = held.items
    return Model(
        instance=await environment.store.get(ComputeInstance, name),
        allocation=row,
        server=await model_of(environment.region, name, network),
    )


async def at_rest(pid: int | None = None) -> None:
    """Return when a process has done what a start takes: this one, unless another is named."""
    for _ in range(_MAX_LOOKS):
        if await busy_share(_LOOK_S, pid) < _QUIET_PERCENT:
            return
    raise AssertionError("it does not come to rest")
