"""What an instance waits for until it is provisioned: commits one after the other, each of which waits for the disk.

One instance is made at a time, so that no two writes share a commit. The cloud's own commits are its own.
"""

from collections.abc import Iterator

from bench.bed import Bed
from bench.compute.environment import ComputeEnvironment, housed
from bench.loops import run
from bench.region.commits import CountingLane
from bench.report import Measure, at_most, figure
from remuda.compute.kinds import ComputeInstance
from remuda.kernel.errors import NotFound
from remuda.reconcile.status import is_provisioned
from remuda.store.sqlite.store import SqlitePorts

__all__ = ["measures"]

_MOST = 13
_RUNS = 10
"""So few that no commit is followed by a checkpoint, which waits for the disk as well."""


def measures(bed: Bed) -> Iterator[Measure]:
    """Count for an instance, from the request until it is provisioned, and until it is gone."""
    made, gone = run(_counted(bed))
    yield at_most(1, "an instance, from the request until it is provisioned", made, _MOST, "commits")
    yield figure("deleting an instance, until it is gone", gone, "commits")


async def _counted(bed: Bed) -> tuple[float, float]:
    lane = CountingLane("bench-commit")
    async with housed(bed, ports=SqlitePorts(commits=lambda: lane)) as environment:
        (network,) = await environment.region.networks(1)
        before = lane.submitted
        names = await _make(environment, network)
        made, before = lane.submitted - before, lane.submitted
        await _delete(environment, names)
        return made / _RUNS, (lane.submitted - before) / _RUNS


async def _make(environment: ComputeEnvironment, network: str) -> list[str]:
    names = []
    for number in range(_RUNS):
        names.append(await environment.instance(network, f"instance-{number}"))
        await environment.settled()
        found = await environment.store.get(ComputeInstance, names[-1])
        assert is_provisioned(found), "it is provisioned when nothing is left to do"
        assert found.status.power_state == "Running"
    return names


async def _delete(environment: ComputeEnvironment, names: list[str]) -> None:
    for name in names:
        await environment.root.delete(f"/api/v2/instances/{name}")
        while True:
            await environment.settled()
            try:
                await environment.store.get(ComputeInstance, name)
            except NotFound:
                break
