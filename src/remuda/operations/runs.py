"""A run: one operation in the hands of this process."""

import asyncio
from typing import Any

from remuda.operations.kinds import Operation
from remuda.operations.registry import AnyBound
from remuda.operations.steps import AnyStep, Work

__all__ = ["Run", "StoppedError"]


class StoppedError(Exception):
    """The caller went away: what was begun is undone."""


class Run:
    """What this process knows of an operation beyond its record.

    A live run was begun here, and somebody waits for its `answer`. One that was taken over is only undone, and since
    nobody knows how far it came, all its steps may have started.
    """

    def __init__(self, bound: AnyBound, work: Work[Any], operation: Operation, *, is_live: bool) -> None:
        self.saga, self.ports = bound.saga, bound.ports
        self.work = work
        self.operation = operation
        self.is_live = is_live
        self.started = 0 if is_live else len(self.saga.steps)
        """How many steps may have had their effect."""
        self.step = ""
        """The step that is being done or undone."""
        self.error: BaseException | None = None
        """Why it is undone."""
        self.attempts = operation.status.undo_attempts
        self.answer: asyncio.Future[Operation] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] | None = None
        self.tried = asyncio.Event()
        """Set whenever a try to undo has ended."""
        self.wake = asyncio.Event()
        """Set to end the pause before the next try."""
        self.pause_s = 0.0
        """How long to wait before the next try."""
        self.is_pausing = False
        self.is_stopped = False
        self._is_stepping = False
        self._is_interrupted = False

    @property
    def owes_undo(self) -> bool:
        """It is open, or it was overtaken: what this process did after others had undone it is still to be undone."""
        return self.operation.is_open or (self.is_live and self.operation.phase == "undone")

    async def do(self, step: AnyStep) -> None:
        """Do a step. Only in here does `stop` interrupt."""
        self.step = step.name
        self.started += 1
        self._is_stepping = True
        try:
            await step.do(self.ports, self.work)
        finally:
            self._is_stepping = False

    async def undo(self, step: AnyStep) -> None:
        """Undo a step."""
        self.step = step.name
        await step.undo(self.ports, self.work)

    def stop(self) -> None:
        """Nobody waits any more: leave the step that is under way, and begin no other."""
        self.is_stopped = True
        if self._is_stepping and self.task is not None:
            self._is_interrupted = True
            self.task.cancel()

    def was_interrupted(self) -> bool:
        """Tell whether it was `stop` that cancelled the task, and if so take that back."""
        if not self._is_interrupted or self.task is None:
            return False
        self._is_interrupted = False
        return self.task.uncancel() == 0

    def succeed(self) -> None:
        """Tell the caller that it is done."""
        if not self.answer.done():
            self.answer.set_result(self.operation)

    def fail(self, error: BaseException) -> None:
        """Tell the caller, if there is one, why it is not done."""
        if self.is_live and not self.answer.done():
            self.answer.set_exception(error)
