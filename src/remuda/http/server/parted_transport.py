"""Transport of a connection with TLS, which knows how much of a large response the client has not taken.

A TLS transport does not count what it has handed to the transport of the socket, and it hands over all that it has: a
large response in one piece would look sent, although the client reads nothing. So it is written in parts, each when the
one before has been handed over, and the rest counts as unsent. Up to 64 KiB and one part may still look sent: a client
that reads nothing of so little is closed as an idle one.
"""

import asyncio
from collections import deque
from typing import Any

PART = 64 * 1024


class PartedTransport(asyncio.Transport):
    """Transport that writes in parts, to a transport that pauses the protocol when it has `high` bytes."""

    def __init__(self, transport: asyncio.Transport, *, high: int) -> None:
        super().__init__()
        self._transport, self._high = transport, high
        self._parts: deque[memoryview] = deque()
        self._unwritten = 0
        self._closes = False  # when all parts are written

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write at once what is small, and otherwise as much as the transport takes."""
        if not self._parts and len(data) <= PART:
            self._transport.write(data)
            return
        view = memoryview(data)
        self._parts.extend(view[start : start + PART] for start in range(0, len(view), PART))
        self._unwritten += len(view)
        self.resume()

    def resume(self) -> bool:
        """Write further parts after the transport has resumed the protocol; return whether it takes more than these."""
        while self._parts and self._transport.get_write_buffer_size() < self._high:
            part = self._parts.popleft()
            self._unwritten -= len(part)
            self._transport.write(part)
        if self._closes and not self._parts:
            self._transport.close()
        return not self._parts and self._transport.get_write_buffer_size() < self._high

    def get_write_buffer_size(self) -> int:
        return self._unwritten + self._transport.get_write_buffer_size()

    def close(self) -> None:
        """Close the connection when all parts are written."""
        if self._parts:
            self._closes = True
        else:
            self._transport.close()

    def abort(self) -> None:
        self._parts.clear()
        self._unwritten = 0
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._closes or self._transport.is_closing()

    def can_write_eof(self) -> bool:
        return self._transport.can_write_eof()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)
