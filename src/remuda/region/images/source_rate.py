"""Rate at which the server of an image sends.

A transfer whose source is slow ends when other organizations wait for its slot, so that sources which send next to
nothing do not occupy the slots for hours.
"""

from remuda.kernel.errors import Unavailable

MIN_BYTES_PER_S = 256 * 1024
"""Slowest rate of a source while other organizations wait."""
_WINDOW_S = 30.0


class SourceRate:
    """Rate at which a source sends. Only time that is spent waiting for it counts, not that of a slow provider."""

    def __init__(self) -> None:
        self._waited_s, self._received = 0.0, 0

    def record(self, waited_s: float, received: int, *, is_contended: bool) -> None:
        """Add what was received; raise Unavailable if it is too little while others wait for the slot."""
        self._waited_s += waited_s
        self._received += received
        if self._waited_s < _WINDOW_S:
            return
        is_slow = self._received < MIN_BYTES_PER_S * self._waited_s
        self._waited_s, self._received = 0.0, 0
        if is_slow and is_contended:
            raise Unavailable(
                f"The server of the image sends less than {MIN_BYTES_PER_S // 1024} KiB per second while other "
                "organizations wait to import. Use a faster server, or import later."
            )
