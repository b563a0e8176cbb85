"""Writer of renderings: at low priority, a few at a time, and never more than a limit at once."""

import asyncio
from collections.abc import Sequence

from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unavailable
from remuda.store.contract import Rendering
from remuda.store.sqlite.batch import Batch
from remuda.store.sqlite.writer import Writer

_SLICE = 50
_MAX_WAITING = 4_000
"""Renderings that wait to be stored. More than these are not stored."""
_MAX_BYTES = 16 << 10
"""Size of a rendering that is stored."""
_DELAY_S = 1.0
"""Time to wait for another state of the same object, which is then the only one that is stored."""
_PAUSE_S = 0.05
"""Time for other writes after each slice."""

_Waiting = tuple[int, str, Rendering]
"""A rendering with the number of its kind and its form."""


class RenderingWriter:
    """The renderings that wait to be stored."""

    def __init__(self, writer: Writer, clock: Clock) -> None:
        self._writer, self._clock = writer, clock
        self._waiting: dict[tuple[int, str], _Waiting] = {}
        self._has_some = asyncio.Event()

    def add(self, kind: int, form: str, renderings: Sequence[Rendering]) -> None:
        """Have renderings stored later."""
        for each in renderings:
            key = kind, each.name
            if len(each.body) <= _MAX_BYTES and (key in self._waiting or len(self._waiting) < _MAX_WAITING):
                self._waiting[key] = kind, form, each
        if self._waiting:
            self._has_some.set()

    async def run(self) -> None:
        """Store what waits, for ever."""
        while True:
            await self._has_some.wait()
            await self._clock.sleep(_DELAY_S)
            await self.flush(_PAUSE_S)

    async def flush(self, pause_s: float = 0.0) -> None:
        """Store all that waits, with a pause after each slice. A failing disk drops it."""
        while self._waiting:
            taken = [self._waiting.pop(key) for key in list(self._waiting)[:_SLICE]]
            try:
                await self._writer.submit(lambda batch, taken=taken: _put(batch, taken))  # type: ignore[misc]  # mypy cannot infer a default
            except Unavailable:
                self._waiting.clear()
            await self._clock.sleep(pause_s)
        self._has_some.clear()


def _put(batch: Batch, taken: Sequence[_Waiting]) -> None:
    for kind, form, each in taken:
        batch.put_rendering(kind, form, each)
