"""Keys: what has an effect under way, and of what nobody knows what became.

A key is busy from the moment its effect is asked for until that has really ended. It is unknown if meanwhile nobody
waits for the effect any more.
"""

from collections.abc import Callable

import structlog


class Keys:
    """The keys of one provider."""

    def __init__(self, provider: str, *, show_unknown: Callable[[float], None]) -> None:
        self._provider, self._show_unknown = provider, show_unknown
        self._busy: set[str] = set()
        self._unknown: set[str] = set()
        self._listeners: list[Callable[[str], None]] = []

    def is_busy(self, key: str) -> bool:
        """Tell whether an effect on this key has not ended."""
        return key in self._busy

    def is_unknown(self, key: str) -> bool:
        """Tell whether nobody waits for the effect on this key, which has not ended."""
        return key in self._unknown

    def when_known(self, listener: Callable[[str], None]) -> None:
        """Have `listener` told of each key that was unknown and no longer is."""
        self._listeners.append(listener)

    def take(self, key: str) -> None:
        """An effect is asked for."""
        self._busy.add(key)

    def leave(self, key: str) -> None:
        """Nobody waits for the effect any more, and it goes on."""
        self._unknown.add(key)
        self._show_unknown(len(self._unknown))

    def free(self, key: str) -> None:
        """The effect has really ended, or was never sent."""
        self._busy.discard(key)
        if key in self._unknown:
            self._unknown.discard(key)
            self._show_unknown(len(self._unknown))
            for listener in self._listeners:
                self._tell(listener, key)

    def _tell(self, listener: Callable[[str], None], key: str) -> None:
        try:
            listener(key)
        except Exception:  # noqa: BLE001  the others want to hear it too
            structlog.get_logger().exception("listener failed", provider=self._provider, key=key)
