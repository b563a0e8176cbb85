"""Size of the history: the bytes of the changes from which a watch may resume, and where to cut them.

The changes are counted in runs, each with the version of its last one, so that millions of small changes take as little
memory as a few large ones.
"""

from collections import deque
from collections.abc import Iterable

DEFAULT_HISTORY_BYTES = 256 << 20

_RUNS = 1024
_CHANGE_BYTES = 128
"""Size of a change besides its documents: its row, its index entry and the free space of pages."""


def change_bytes(document: bytes | int, before: bytes | int | None) -> int:
    """Return the size of a change in the history, given its documents or their lengths."""
    return _CHANGE_BYTES + _length(document) + _length(before or 0)


def _length(part: bytes | int) -> int:
    return part if isinstance(part, int) else len(part)


class HistorySize:
    """The bytes of the changes above the floor."""

    def __init__(self, limit: int) -> None:
        self.limit, self.bytes = limit, 0
        self._run_bytes = max(1, limit // _RUNS)
        self._runs: deque[tuple[int, int]] = deque()
        """The last version and the bytes of each run of changes, in the order of versions."""

    def add(self, version: int, size: int) -> None:
        """Count a change. One that comes late counts with the latest version."""
        self.bytes += size
        if self._runs:
            last, run = self._runs[-1]
            version = max(version, last)
            if run + size <= self._run_bytes:
                self._runs[-1] = version, run + size
                return
        self._runs.append((version, size))

    def add_earlier(self, changes: Iterable[tuple[int, int]], *, floor: int) -> None:
        """Count changes before all others, such as those of an earlier process, as far as they are above the floor."""
        earlier = HistorySize(self.limit)
        for version, size in changes:
            if version > floor:
                earlier.add(version, size)
        self._runs.extendleft(reversed(earlier._runs))
        self.bytes += earlier.bytes

    def drop(self, floor: int) -> None:
        """Count no change up to a version any more."""
        while self._runs and self._runs[0][0] <= floor:
            self.bytes -= self._runs.popleft()[1]

    def floor(self, more: int = 0) -> int:
        """Return the version up to which history must go, so that the rest and `more` bytes are within the limit."""
        excess, floor = self.bytes + more - self.limit, 0
        for version, size in self._runs:
            if excess <= 0:
                break
            floor, excess = version, excess - size
        return floor
