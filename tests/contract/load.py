"""A load of random writes by several writers at once, and the record of what was acknowledged to them."""

import asyncio
import random
from collections.abc import Awaitable
from typing import Any, Literal

from tests.contract.harness import Harness
from tests.contract.kinds import Horse, horse
from tests.contract.steps import HOLD, gone, release, request_deletion, with_metadata, with_spec
from tests.contract.validators import Write

NORTH = {"herd": "north"}
SOUTH = {"herd": "south"}


async def run(harness: Harness, *, writers: int, steps: int) -> list[Write]:
    """Let the writers take their steps, and return what was acknowledged when all that was deleted is gone."""
    writes: list[Write] = []
    crew = [_Writer(harness, writes, number, steps) for number in range(writers)]
    await asyncio.gather(*(writer.work() for writer in crew))
    return writes


class _Writer:
    """Writes its own few objects, one write after the other."""

    def __init__(self, harness: Harness, writes: list[Write], number: int, steps: int) -> None:
        self._harness = harness
        self._writes = writes
        self._number = number
        self._steps = steps
        self._dice = random.Random(f"{harness.seed}/{number}")
        self._horses: dict[str, Horse] = {}

    async def work(self) -> None:
        for _ in range(self._steps):
            name = f"horse-{self._number}-{self._dice.randrange(2)}"
            found = self._horses.get(name)
            if found is None:
                await self._create(name)
            else:
                await self._dice.choice([self._recolour, self._recolour, self._move, self._delete])(found)

    async def _create(self, name: str) -> None:
        finalizers = self._dice.choice([(), (HOLD,)])
        wanted = horse(name, labels=self._dice.choice([NORTH, SOUTH]), finalizers=finalizers)
        await self._written("added", self._harness.store.create(wanted))

    async def _recolour(self, found: Horse) -> None:
        colour = f"colour-{self._dice.randrange(1_000_000)}"
        await self._written("modified", self._harness.store.update(with_spec(found, colour=colour)))

    async def _move(self, found: Horse) -> None:
        labels = SOUTH if found.metadata.labels == NORTH else NORTH
        await self._written("modified", self._harness.store.update(with_metadata(found, labels=labels)))

    async def _delete(self, found: Horse) -> None:
        began = len(self._writes)
        del self._horses[found.name]
        await request_deletion(self._harness, found)
        self._record("deleted", found, began, version="")
        if HOLD in found.metadata.finalizers:
            await release(self._harness, found)
        await gone(self._harness, found)

    async def _written(self, change: Literal["added", "modified"], write: Awaitable[Horse]) -> None:
        began = len(self._writes)
        written = await write
        self._horses[written.name] = written
        self._record(change, written, began, version=written.version)

    def _record(self, change: Literal["added", "modified", "deleted"], of: Horse, began: int, **known: Any) -> None:
        """Time is counted in acknowledged writes: this one ended as the next in the list."""
        ended = len(self._writes)
        self._writes.append(Write(type=change, name=of.name, uid=of.uid, began=began, ended=ended, **known))
