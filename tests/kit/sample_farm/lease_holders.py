"""Processes that compete for a lease: each with its own clock, its own way to the store, and its own pauses."""

import asyncio
from datetime import datetime
from typing import Any

from remuda.kernel.clock import Clock
from remuda.kernel.errors import OutcomeUnknown, ServerUnreachable
from remuda.reconcile.leader import Lease
from remuda.store.contract import Store
from tests.kit.sample_farm.controller import Notes
from tests.kit.simulation.runner import World


class NodeClock:
    """A clock that runs faster or slower than the world's, in a process that may be frozen."""

    def __init__(self, clock: Clock, speed: float) -> None:
        self._clock = clock
        self._speed = speed
        self.awake = asyncio.Event()
        self.awake.set()

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return 1000 * self._speed + self._clock.monotonic() * self._speed

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds / self._speed)
        await self.awake.wait()


class NodeStore:
    """A way to the store that is slow, loses requests, and loses answers."""

    def __init__(self, world: World, store: Store, clock: NodeClock) -> None:
        self._world = world
        self._store = store
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def call(*args: Any, **options: Any) -> Any:
            await self._travel("request lost", ServerUnreachable("store", "lost"))
            answer = await method(*args, **options)
            await self._travel("answer lost", OutcomeUnknown("the request"))
            return answer

        return call

    async def _travel(self, fault: str, error: Exception) -> None:
        faults, chance = self._world.faults, self._world.randomness
        await self._world.clock.sleep(chance.uniform(5, 30) if faults.fires("slow way") else chance.uniform(0, 0.1))
        await self._clock.awake.wait()
        if faults.fires(fault):
            raise error


class Node:
    """One process."""

    def __init__(self, world: World, store: Store, *, speed: float = 1.0) -> None:
        self._world = world
        self.clock = NodeClock(world.clock, speed)
        self.notes = Notes()
        way: Any = NodeStore(world, store, self.clock)
        self.lease = Lease("region", way, self.clock, world.randomness, reporter=self.notes)

    async def freeze(self, seconds: float) -> None:
        """Stand still, as a process that the machine has suspended does."""
        self.clock.awake.clear()
        await self._world.clock.sleep(seconds)
        self.clock.awake.set()
