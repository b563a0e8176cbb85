"""A load of random writes by several writers at once, and the record of what was acknowledged to them."""

import asyncio
import random
from collections.abc import Awaitable
from typing import Any, Literal

from tests.kit.proofs.store_contract.harness import Harness
from tests.kit.proofs.store_contract.steps import HOLD, gone, release, request_deletion, with_metadata, with_spec
from tests.kit.proofs.store_contract.validators import Write
from tests.kit.sample_kinds import Horse, horse

NORTH = {"herd": "north"}
SOUTH = {"herd": "south"}


class Load:
    """Several writers, and what was acknowledged to them."""

    def __init__(self, harness: Harness, *, writers: int) -> None:
        self.writes: list[Write] = []
        self._crew = [_Writer(harness, self.writes, number) for number in range(writers)]

    async def go_on(self, *, steps: int) -> None:
        """Let every writer take some steps. All that they delete is gone when this returns."""
        await asyncio.gather(*(writer.work(steps) for writer in self._crew))

    async def add(self, wanted: Horse) -> None:
        """Have a horse created that no writer touches again."""
        await self._crew[0].create(wanted)


class _Writer:
    """Writes its own few objects, one write after the other."""

    def __init__(self, harness: Harness, writes: list[Write], number: int) -> None:
        self._harness = harness
        self._writes = writes
        self._number = number
        self._dice = random.Random(f"{harness.seed}/{number}")
        self._horses: dict[str, Horse] = {}

    async def work(self, steps: int) -> None:
        for _ in range(steps):
            name = f"horse-{self._number}-{self._dice.randrange(2)}"
            found = self._horses.get(name)
            if found is None:
                await self.create(self._foal(name))
            else:
                await self._dice.choice([self._recolour, self._recolour, self._move, self._delete])(found)

    async def create(self, wanted: Horse) -> None:
        await self._written("added", self._harness.store.create(wanted))

    def _foal(self, name: str) -> Horse:
        finalizers = self._dice.choice([(), (HOLD,)])
        return horse(name, labels=self._dice.choice([NORTH, SOUTH]), finalizers=finalizers)

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
