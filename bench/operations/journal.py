"""What an operation writes beyond its steps: counted as commits, each of which waits for the disk.

One operation runs at a time, so that no two writes share a commit.
"""

from collections.abc import Iterator

from bench.bed import Bed
from bench.kinds import name_of
from bench.loops import run
from bench.operations.saga import BUILD, BUILD_IN_VAIN, Order, Setup, operations_on, run_saga
from bench.report import Measure, at_most
from remuda.operations.saga import Saga
from remuda.store.sqlite.executor import BlockingCall, Done, ThreadExecutor
from remuda.store.sqlite.store import SqlitePorts

__all__ = ["measures"]

_RUNS = 10
"""So few that no commit is followed by a checkpoint, which waits for the disk as well."""


def measures(bed: Bed) -> Iterator[Measure]:
    """Count for a saga that succeeds, and for one that is undone."""
    for title, saga, limit in (("that succeeds", BUILD, 2), ("that is undone", BUILD_IN_VAIN, 3)):
        yield at_most(1, f"an operation {title}: beyond its steps", run(_beyond(bed, saga)), limit, "commits")


async def _beyond(bed: Bed, saga: Saga[Setup, Order]) -> float:
    """Return how many commits a run costs that its steps did not ask for."""
    lane = _CountingLane("bench-commit")
    store = bed.open(bed.fresh(), ports=SqlitePorts(commits=lambda: lane))
    setup = Setup(store)
    operations, before = operations_on(setup), lane.submitted
    for number in range(_RUNS):
        await run_saga(operations, saga, number, id=name_of(number))
    assert setup.writes == 2 * _RUNS, "each run makes two things, or one which it rolls back"
    beyond = lane.submitted - before - setup.writes
    await store.close()
    return beyond / _RUNS


class _CountingLane(ThreadExecutor):
    """The lane in which the store commits."""

    submitted = 0

    def submit(self, work: BlockingCall, done: Done) -> None:
        self.submitted += 1
        super().submit(work, done)
