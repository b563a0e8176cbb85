"""Time limits of work that runs often: many of one duration share a timer.

`asyncio.timeout` sets a timer and cancels it again for each use, which takes longer than most of the work that it
limits. Of limits with one duration the first to begin is the first to expire, so one timer serves all of them. Expired
work is cancelled as `asyncio.timeout` does it.
"""

import asyncio
from types import TracebackType
from typing import Self

__all__ = ["TimeLimit", "TimeLimits"]


class TimeLimit:
    """The limit of one piece of work: `with` it, which raises TimeoutError when the limit has expired."""

    __slots__ = ("_cancelling", "_limits", "_task", "expires", "is_expired")

    def __init__(self, limits: "TimeLimits") -> None:
        self._limits = limits
        self.expires = 0.0
        """The time of the event loop when it expires."""
        self.is_expired = False

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None, "work with a time limit runs in a task"
        self._task, self._cancelling = task, task.cancelling()
        self._limits.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._limits.remove(self)
        # As asyncio.timeout does: a cancellation that another task has requested meanwhile stays one.
        if self.is_expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def expire(self) -> None:
        """Cancel the work."""
        self.is_expired = True
        self._task.cancel()


class TimeLimits:
    """Time limits of one duration, in one event loop."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._running: dict[TimeLimit, None] = {}
        """Those that have not expired, the first to expire first."""
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> TimeLimit:
        """Return a limit that begins with its block."""
        return TimeLimit(self)

    def add(self, limit: TimeLimit) -> None:
        """Let a limit begin."""
        loop = asyncio.get_running_loop()
        limit.expires = loop.time() + self.seconds
        self._running[limit] = None
        if self._timer is None:
            self._timer = loop.call_at(limit.expires, self._expire, loop)

    def remove(self, limit: TimeLimit) -> None:
        """End a limit. The timer stays: the work that follows soon needs it again."""
        self._running.pop(limit, None)

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        """Expire what is due, and set the timer for the next."""
        now, self._timer = loop.time(), None
        while self._running:
            first = next(iter(self._running))
            if first.expires > now:
                self._timer = loop.call_at(first.expires, self._expire, loop)
                return
            del self._running[first]
            first.expire()
