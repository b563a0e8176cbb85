"""What a server waits for on its way to running: our commits one after the other, each of which waits for the disk.

One server is made at a time, so that no two writes share a commit. The cloud's own commits are its own.
"""

from collections.abc import Iterator

from bench.bed import Bed
from bench.loops import run
from bench.region.environment import Environment, housed
from bench.report import Measure, at_most, figure
from remuda.reconcile.status import is_provisioned
from remuda.region.kinds.networks import Network
from remuda.region.kinds.servers import Server
from remuda.store.sqlite.executor import BlockingCall, Done, ThreadExecutor
from remuda.store.sqlite.store import SqlitePorts

__all__ = ["CountingLane", "measures"]

_MOST = 8
_RUNS = 10
"""So few that no commit is followed by a checkpoint, which waits for the disk as well."""


def measures(bed: Bed) -> Iterator[Measure]:
    """Count for a server, from the request until it runs, and for the network before it."""
    server, network = run(_counted(bed))
    yield at_most(1, "a server, from the request until it runs", server, _MOST, "commits")
    yield figure("a network, from the request until it is provisioned", network, "commits")


async def _counted(bed: Bed) -> tuple[float, float]:
    lane = CountingLane("bench-commit")
    async with housed(bed, ports=SqlitePorts(commits=lambda: lane)) as environment:
        before = lane.submitted
        (network,) = await environment.networks(1)
        assert is_provisioned(await environment.store.get(Network, network))
        of_network, before = lane.submitted - before, lane.submitted
        await _make(environment, network)
        return (lane.submitted - before) / _RUNS, of_network


async def _make(environment: Environment, network: str) -> None:
    for number in range(_RUNS):
        server = await environment.server(network, f"server-{number}")
        await environment.settled()
        assert (await environment.store.get(Server, server)).status.phase == "Running"


class CountingLane(ThreadExecutor):
    """The lane in which the store commits."""

    submitted = 0

    def submit(self, work: BlockingCall, done: Done) -> None:
        """Count it."""
        self.submitted += 1
        super().submit(work, done)
