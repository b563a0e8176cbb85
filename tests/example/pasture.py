"""A slow provider: where the mounts really graze.

It is a cloud of its own, with its own state, and is reached only through `Pasture`. What it is told to do it does even
if whoever told it is long gone, in its own time; our crashes do not touch it. A name is given once: the pasture refuses
a second mount under it, so a lost answer cannot double anything. Reads may be a little old, never older than it says.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Unavailable
from remuda.kernel.randomness import Randomness

T = TypeVar("T")


class PastureFailed(Unavailable):
    """The pasture said that something went wrong, which says nothing about what it did."""

    code = "pasture_failed"


@dataclass(frozen=True, slots=True)
class Grazing:
    """A mount as the pasture knows it."""

    id: str
    name: str
    breed: str
    paddock: str


class Pasture(Protocol):
    """What the livery may ask of it."""

    async def turn_out(self, name: str, breed: str, paddock: str) -> Grazing:
        """Put a new mount out, or raise AlreadyExists."""
        ...

    async def move(self, name: str, paddock: str) -> None:
        """Lead a mount to another paddock; one that is not there is left alone."""
        ...

    async def bring_in(self, name: str) -> None:
        """Take a mount away for ever; one that is not there is fine."""
        ...

    async def find(self, name: str) -> Grazing | None:
        """Look for one mount."""
        ...

    async def list(self) -> Sequence[Grazing]:
        """Look at all of them."""
        ...


class Fires(Protocol):
    """A menu of faults, such as the simulation has."""

    def fires(self, name: str) -> bool:
        """Tell whether this fault happens now."""
        ...


class Calm:
    """A menu without faults."""

    def fires(self, name: str) -> bool:
        """Nothing ever goes wrong."""
        return not name


FAULTS = ("timeout_after_write", "error_after_write", "error", "slow", "stale", "duplicate_rows")
"""What may happen to a call, each asked of the menu as `pasture.…`."""


class SimPasture:
    """The pasture itself."""

    def __init__(
        self,
        clock: Clock,
        randomness: Randomness,
        *,
        faults: Fires | None = None,
        latency_s: float = 0.2,
        stale_s: float = 2.0,
    ) -> None:
        self.mounts: dict[str, Grazing] = {}
        self.before_removal: Callable[[str], None] = lambda _name: None
        """Called with the name before a mount that is there is brought in; a proof hooks in here."""
        self.version = 0
        self.log: list[tuple[str, str]] = []
        self._clock, self._randomness, self._faults = clock, randomness, faults or Calm()
        self._latency_s, self._stale_s = latency_s, stale_s
        self._past: list[tuple[float, dict[str, Grazing]]] = [(clock.monotonic(), {})]
        self._number = 0
        self._under_way: set[asyncio.Task[Any]] = set()

    async def turn_out(self, name: str, breed: str, paddock: str) -> Grazing:
        return await self._change(lambda: self._turn_out(name, breed, paddock))

    async def move(self, name: str, paddock: str) -> None:
        await self._change(lambda: self._move(name, paddock))

    async def bring_in(self, name: str) -> None:
        await self._change(lambda: self._bring_in(name))

    async def find(self, name: str) -> Grazing | None:
        return (await self._look()).get(name)

    async def list(self) -> Sequence[Grazing]:
        rows = list((await self._look()).values())
        return rows + rows[:1] if self._faults.fires("pasture.duplicate_rows") else rows

    def lose(self, name: str) -> None:
        """Somebody left a gate open: a mount is gone, and nobody asked for it."""
        del self.mounts[name]
        self._changed("lost", name)

    @property
    def is_busy(self) -> bool:
        """Something that it was told to do is not done yet."""
        return bool(self._under_way)

    async def _change(self, effect: Callable[[], T]) -> T:
        # What was asked goes on when the one who asked gives up, is cancelled, or loses power.
        task = asyncio.create_task(self._work(effect), name="pasture")
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # told to whoever still waits; nobody else needs to hear of it

    async def _work(self, effect: Callable[[], T]) -> T:
        await self._wait(40 if self._faults.fires("pasture.slow") else 1)
        if self._faults.fires("pasture.error"):
            raise PastureFailed("the pasture is closed: try again later")
        answer = effect()
        if self._faults.fires("pasture.error_after_write"):
            raise PastureFailed("the pasture lost its notes: look before trying again")
        await self._wait(60 if self._faults.fires("pasture.timeout_after_write") else 1)
        return answer

    async def _look(self) -> dict[str, Grazing]:
        await self._wait(1)
        if self._faults.fires("pasture.stale"):
            return self._earlier(self._clock.monotonic() - self._stale_s)
        return dict(self.mounts)

    def _earlier(self, moment: float) -> dict[str, Grazing]:
        return next(state for when, state in reversed(self._past) if when <= moment or (when, state) == self._past[0])

    async def _wait(self, times: float) -> None:
        await self._clock.sleep(times * self._randomness.uniform(0, self._latency_s))

    def _turn_out(self, name: str, breed: str, paddock: str) -> Grazing:
        if name in self.mounts:
            raise AlreadyExists("grazing", name)
        self._number += 1
        self.mounts[name] = Grazing(f"grazing-{self._number}", name, breed, paddock)
        self._changed("turned out", name)
        return self.mounts[name]

    def _move(self, name: str, paddock: str) -> None:
        if name in self.mounts:
            self.mounts[name] = replace(self.mounts[name], paddock=paddock)
            self._changed("moved", name)

    def _bring_in(self, name: str) -> None:
        if name in self.mounts:
            self.before_removal(name)
            del self.mounts[name]
            self._changed("brought in", name)

    def _changed(self, what: str, name: str) -> None:
        self.version += 1
        self.log.append((what, name))
        now = self._clock.monotonic()
        # All that a stale read can show, and one state from before.
        recent = [entry for entry in self._past if entry[0] > now - 2 * self._stale_s]
        older = [entry for entry in self._past if entry[0] <= now - 2 * self._stale_s]
        self._past = [*older[-1:], *recent, (now, dict(self.mounts))]
