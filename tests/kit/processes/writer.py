"""A process that writes until it is killed: `python -m tests.kit.processes.writer PATH`.

It says of every acknowledged write, before it makes the next one, whose it was and which: one line each on stdout.
"""

import asyncio
import os
import sys
from pathlib import Path

from remuda.store.readside.reads import MaintenanceSettings
from remuda.store.sqlite.store import SqliteSettings, SqliteStore, open_store
from tests.kit.sample_kinds import REGISTRY
from tests.kit.simulation.store import SEALER
from tests.kit.store.checks import steps_logged
from tests.kit.store.write_load import Writer

WRITERS = [f"writer-{number}" for number in range(16)]
SETTINGS = SqliteSettings(maintenance=MaintenanceSettings(history_changes=100, interval_s=0.02))


async def tell_for_ever(store: SqliteStore, name: str) -> None:
    writer = Writer(name, told=await steps_logged(store, name))
    while True:
        await writer.tell(store)
        os.write(sys.stdout.fileno(), f"{name} {writer.told}\n".encode())


async def main(path: Path) -> None:
    store = open_store(path, REGISTRY, SEALER, settings=SETTINGS)
    await asyncio.gather(*[tell_for_ever(store, name) for name in WRITERS])


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
