"""A line in which very many names wait for very long.

The garbage collector looks at everything in a deque each time it looks at all there is, which holds the loop: 100,000
names are some milliseconds. It does not look into text. So all but the last names, and those whose turn is next, are
packed together.
"""

from collections import deque

_PACK = 500
_BETWEEN = "\n"


class Line:
    """Names, first come, first served."""

    def __init__(self) -> None:
        self._next: deque[str] = deque()
        self._packs: deque[str] = deque()
        self._last: list[str] = []

    def __len__(self) -> int:
        return len(self._next) + _PACK * len(self._packs) + len(self._last)

    def put(self, name: str) -> None:
        self._last.append(name)
        if len(self._last) == _PACK:
            self._packs.append(_BETWEEN.join(self._last))
            self._last.clear()

    def take(self) -> str:
        """Return the name that has waited longest; there is one."""
        if not self._next:
            self._next.extend(self._pack())
        return self._next.popleft()

    def _pack(self) -> list[str]:
        if self._packs:
            return self._packs.popleft().split(_BETWEEN)
        last, self._last = self._last, []
        return last
