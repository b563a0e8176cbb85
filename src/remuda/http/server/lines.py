"""Lines of log, written without ever holding the loop.

Lines are gathered and written once per turn of the loop, many in one call. Whoever reads them may be slow: a terminal
that was stopped, a pipe into a pager. So the descriptor is asked first, and is given no more than a pipe takes at once.
What it does not take waits, up to a bound; beyond it lines are dropped, and how many is said as soon as there is room.
A slow reader thus costs lines, never an answer.
"""

import asyncio
import os
import select
from typing import Protocol

import msgspec

_AT_ONCE = select.PIPE_BUF
_MOST_WAITING = 4 * 1024 * 1024
_RETRY_S = 0.05
_LAST_CHANCE_MS = 1000


class Sink(Protocol):
    """Where lines go."""

    def write(self, line: bytes) -> None:
        """Take one line, without its end; it is written soon."""
        ...


class _Dropped(msgspec.Struct, frozen=True):
    event: str
    lines: int


class LineWriter:
    """Writes lines to a file descriptor. Make it inside a running loop, and `close` it to lose nothing."""

    def __init__(self, descriptor: int, *, most_waiting: int = _MOST_WAITING) -> None:
        self._descriptor, self._most_waiting = descriptor, most_waiting
        self._loop = asyncio.get_running_loop()
        self._waiting = bytearray()
        self._dropped = 0
        self._is_scheduled = False
        self._room = select.poll()
        self._room.register(descriptor, select.POLLOUT)

    def write(self, line: bytes) -> None:
        """Take one line, to be written at the end of this turn of the loop."""
        if len(self._waiting) > self._most_waiting:
            self._dropped += 1
            return
        if self._dropped:
            self._tell_dropped()
        self._waiting += line
        self._waiting += b"\n"
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._flush)

    def close(self) -> None:
        """Write what is left, as long as somebody reads it."""
        if self._dropped:
            self._tell_dropped()
        while self._waiting and self._room.poll(_LAST_CHANCE_MS):
            self._write_some()
        self._waiting.clear()

    def _flush(self) -> None:
        while self._waiting and self._room.poll(0):
            self._write_some()
        self._is_scheduled = bool(self._waiting)
        if self._is_scheduled:
            self._loop.call_later(_RETRY_S, self._flush)

    def _write_some(self) -> None:
        try:
            written = os.write(self._descriptor, self._waiting[:_AT_ONCE])
        except OSError:  # nobody reads it any more, and there is no other place to say so
            written = len(self._waiting)
        del self._waiting[:written]

    def _tell_dropped(self) -> None:
        self._waiting += msgspec.json.encode(_Dropped("log lines dropped", self._dropped)) + b"\n"
        self._dropped = 0
