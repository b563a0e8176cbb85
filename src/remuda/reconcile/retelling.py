"""Telling timelines of effects exactly once, also where the write that should have told of them fails.

What a pass did took place whether or not its write succeeds, so a failed write is followed by telling of it alone. The
next pass may come to the same effect once more, because what it read was old: that is known here, and not told again.
A write whose answer is lost may have been made; then what it told is in the timeline, and is looked for there.
"""

from collections.abc import Awaitable, Sequence

import msgspec

from remuda.kernel.errors import RemudaError
from remuda.store.logs import Log, Record

_RECENT = 50
_OF_THE_PASS = ("reconcileId", "cause")


class Retelling:
    """Knows what was told without a write, by the uid of its object, until the next write of that one."""

    def __init__(self, log: Log | None) -> None:
        self._log = log
        self._told: dict[str, list[tuple[str, bytes]]] = {}

    def untold(self, uid: str, effects: Sequence[Record]) -> list[Record]:
        """Return the effects that were not told before."""
        told = self._told.get(uid)
        return [*effects] if told is None else [each for each in effects if _what(each) not in told]

    async def alone(self, uid: str, effects: Sequence[Record]) -> None:
        """Tell of effects where there is nothing to write."""
        if effects and self._log is not None:
            await self._log.append(effects)
        self._told.pop(uid, None)

    async def with_write(self, uid: str, write: Awaitable[object], effects: Sequence[Record]) -> None:
        """Write, which tells of these effects; if that fails they still took place, and are told all the same."""
        try:
            await write
        except RemudaError:
            await self._tell_of(uid, effects)
            raise
        self._told.pop(uid, None)

    async def _tell_of(self, uid: str, effects: Sequence[Record]) -> None:
        if not effects or self._log is None:
            return
        missing = [each for each in effects if not await _is_there(self._log, each)]
        if missing:
            await self._log.append(missing)
        self._told.setdefault(uid, []).extend(map(_what, effects))


async def _is_there(log: Log, record: Record) -> bool:
    """Tell whether a record was kept by the write whose answer was lost. A pass tells nothing twice by itself."""
    page = await log.read_back(record.stream, record.subject, limit=_RECENT)
    return any(bytes(entry.data) == bytes(record.data) for entry in page.entries)


def _what(record: Record) -> tuple[str, bytes]:
    """Return what an entry tells, whichever pass does."""
    said = msgspec.json.decode(record.data, type=dict[str, msgspec.Raw])
    kept = {name: value for name, value in said.items() if name not in _OF_THE_PASS}
    return record.subject, msgspec.json.encode(kept, order="deterministic")
