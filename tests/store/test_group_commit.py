"""Group commit: who shares a commit with whom, and that a lone writer waits for nobody."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from remuda.store.sqlite.executor import BlockingCall, Done, Executor
from remuda.store.sqlite.store import SqlitePorts, SqliteStore, open_store
from tests.kit.sample_kinds import REGISTRY, Horse, horse
from tests.kit.simulation.store import SEALER

WRITERS = 10
STEPS = 5
"""Turns of the loop between two writes of one caller."""


class AtOnce(Executor):
    """Commits at the next turn of the loop, and counts."""

    def __init__(self) -> None:
        self.commits = 0

    def submit(self, work: BlockingCall, done: Done) -> None:
        self.commits += 1
        work()
        asyncio.get_running_loop().call_soon(done, None)

    def close(self) -> None:
        """Nothing is left to do."""


@asynccontextmanager
async def counting_commits(directory: Path) -> AsyncIterator[tuple[SqliteStore, AtOnce]]:
    """Yield a store, and what commits its batches."""
    executor = AtOnce()
    store = open_store(directory / "remuda.db", REGISTRY, SEALER, ports=SqlitePorts(commits=lambda: executor))
    yield store, executor
    await store.close()


async def write_twice(store: SqliteStore, writer: int) -> None:
    """Write, do something that takes a different number of turns for each caller, and write again."""
    await store.create(horse(f"h-{writer}-first"))
    for _ in range(writer % STEPS):
        await asyncio.sleep(0)
    await store.create(horse(f"h-{writer}-second"))


async def test_those_whom_a_batch_answered_are_together_in_the_next(tmp_path: Path) -> None:
    async with counting_commits(tmp_path) as (store, executor):
        await asyncio.gather(*[write_twice(store, writer) for writer in range(WRITERS)])
        assert len((await store.list(Horse)).items) == 2 * WRITERS
        assert executor.commits == 2


async def test_who_writes_alone_waits_for_nobody(tmp_path: Path) -> None:
    async with counting_commits(tmp_path) as (store, executor):
        turns = 0
        await store.create(horse("first"))
        second = asyncio.ensure_future(store.create(horse("second")))
        while not second.done():
            await asyncio.sleep(0)
            turns += 1
        assert executor.commits == 2
        assert turns <= 5, "to write, to build the batch, to commit it, to be told"


async def test_who_comes_after_a_crowd_and_writes_alone_does_not_wait_for_ever(tmp_path: Path) -> None:
    async with counting_commits(tmp_path) as (store, executor):
        await asyncio.gather(*[store.create(horse(f"h-{number}")) for number in range(1_000)])
        await store.create(horse("after"))
        assert executor.commits == 3, "at most 512 are in one batch"
