"""What customers asked for and what they were told: the facts that the store has to live up to."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Book:
    """A mount is known by the operation that made it: another of the same name is another one."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.yards: set[str] = set()
        """Promised, and not asked to go."""
        self.mounts: dict[str, tuple[str, str]] = {}
        """Promised, and not asked to go: by operation, the mount and its yard."""
        self.must_go: set[str] = set()
        """Operations whose mounts, and yards, that were promised to go."""
        self._now = 0
        self._asked: dict[str, int] = {}
        """When somebody last asked for a yard or a mount to go."""
        self._asking: Counter[str] = Counter()

    def begin(self) -> int:
        """Return the present moment, for a customer who begins to ask for something."""
        self._now += 1
        return self._now

    def promised_yard(self, yard: str) -> None:
        """A customer was told that a yard is there."""
        if yard not in self._asked:
            self.yards.add(yard)

    def promised_mount(self, operation: str, mount: str, yard: str, *, since: int) -> None:
        """A customer who asked then was told that a mount is there; others may have asked meanwhile for it to go."""
        if not any(self._asking[name] or self._asked.get(name, 0) >= since for name in (mount, yard)):
            self.mounts[operation] = mount, yard

    @contextmanager
    def going(self, name: str) -> Iterator[None]:
        """While a customer asks for a yard or a mount to go, and ever after, nobody can rely on it."""
        self._asking[name] += 1
        self.yards.discard(name)
        self.mounts = {operation: places for operation, places in self.mounts.items() if name not in places}
        yield
        self._asking[name] -= 1
        self._asked[name] = self.begin()
