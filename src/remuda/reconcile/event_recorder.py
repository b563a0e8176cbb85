"""Recorder of timeline events: each event of a reconcile is recorded exactly once.

An effect took place whether or not the status write succeeds, so after a failed write its events are recorded alone.
The next reconcile may repeat the effect, because it read an old state: the recorder knows that, and does not record it
again. If the response to a write was lost, the events may be in the timeline and are searched there.
"""

from collections.abc import Awaitable, Sequence

import msgspec

from remuda.kernel.errors import RemudaError
from remuda.store.logs import Log, Record

_RECENT = 50
_PER_RUN_KEYS = ("reconcileId", "cause")


class EventRecorder:
    """Records timeline events exactly once. It knows those recorded without a write, by uid, until the next write."""

    def __init__(self, log: Log | None) -> None:
        self._log = log
        self._recorded: dict[str, list[tuple[str, bytes]]] = {}

    def unrecorded(self, uid: str, effects: Sequence[Record]) -> list[Record]:
        """Return the events that were not recorded before."""
        recorded = self._recorded.get(uid)
        return [*effects] if recorded is None else [each for each in effects if _content(each) not in recorded]

    async def append(self, uid: str, effects: Sequence[Record]) -> None:
        """Record events when there is nothing to write."""
        if effects and self._log is not None:
            await self._log.append(effects)
        self._recorded.pop(uid, None)

    async def write_with(self, uid: str, write: Awaitable[object], effects: Sequence[Record]) -> None:
        """Write an object together with these events; if that fails, record the events alone."""
        try:
            await write
        except RemudaError:
            await self._record(uid, effects)
            raise
        self._recorded.pop(uid, None)

    async def _record(self, uid: str, effects: Sequence[Record]) -> None:
        if not effects or self._log is None:
            return
        missing = [each for each in effects if not await _is_recorded(self._log, each)]
        if missing:
            await self._log.append(missing)
        self._recorded.setdefault(uid, []).extend(map(_content, effects))


async def _is_recorded(log: Log, record: Record) -> bool:
    """Return whether a record was stored by a write whose response was lost. A reconcile records nothing twice."""
    page = await log.read_back(record.stream, record.subject, limit=_RECENT)
    return any(bytes(entry.data) == bytes(record.data) for entry in page.entries)


def _content(record: Record) -> tuple[str, bytes]:
    """Return the content of a record, independent of the reconcile."""
    result = msgspec.json.decode(record.data, type=dict[str, msgspec.Raw])
    kept = {name: value for name, value in result.items() if name not in _PER_RUN_KEYS}
    return record.subject, msgspec.json.encode(kept, order="deterministic")
