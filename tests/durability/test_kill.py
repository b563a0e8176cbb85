"""`kill -9` of a writing process, again and again: what it was told is there, and nothing is there in part.

REMUDA_KILLS says how often. A kill leaves the page cache alone, so this proves recovery, locks and the order of
answers; what a power cut leaves is proven in test_power_cut.py.
"""

import asyncio
import os
import random
import time
from pathlib import Path

import pytest

from remuda.kernel.errors import StoreLocked
from remuda.store.sqlite.store import open_store
from tests.kit.processes.killed import kill, victim
from tests.kit.processes.writer import WRITERS
from tests.kit.sample_kinds import REGISTRY
from tests.kit.simulation.store import SEALER
from tests.kit.store.checks import audit, check_stories, integrity_found, steps_logged
from tests.kit.store.write_load import Writer

KILLS = int(os.environ.get("REMUDA_KILLS", "3"))
KILLS_PER_FILE = 20
MAX_LIFE_S = 0.15


async def told_before(path: Path) -> dict[str, int]:
    """Return how far each story is in a closed store."""
    store = open_store(path, REGISTRY, SEALER)
    told = {name: await steps_logged(store, name) for name in WRITERS}
    await store.close()
    return told


async def check_after_kill(path: Path, told: dict[str, int]) -> None:
    """The lock is free, every story holds, the check that an unclean stop asks for finds the file sound."""
    store = open_store(path, REGISTRY, SEALER)
    assert store.integrity == "unchecked"
    writers = [Writer(name, told=number) for name, number in told.items()]
    for writer in writers:
        writer.asked += 1
    await check_stories(store, writers)
    assert await integrity_found(store) == "sound"
    await store.close()
    audit(path)


def test_a_killed_process_loses_nothing_it_was_told_and_leaves_nothing_in_part(tmp_path: Path) -> None:
    draws = random.Random()
    for number in range(KILLS):
        path = tmp_path / f"{number // KILLS_PER_FILE}" / "remuda.db"
        told = asyncio.run(told_before(path))
        with victim(path) as process:
            time.sleep(draws.uniform(0, MAX_LIFE_S))
            told |= kill(process)
        asyncio.run(check_after_kill(path, told))


def test_a_file_is_locked_while_its_process_lives_and_free_when_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "remuda.db"

    async def open_and_close() -> None:
        await open_store(path, REGISTRY, SEALER).close()

    with victim(path) as process:
        with pytest.raises(StoreLocked, match=r"^Another process has the store .*remuda\.db open: stop it.*\.$"):
            asyncio.run(open_and_close())
        kill(process)
        process.wait()
    asyncio.run(open_and_close())
