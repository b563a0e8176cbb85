"""A run: one operation in the hands of this process."""

import asyncio
from typing import Any

from remuda.operations.kinds import Failure, Obstacle, Operation
from remuda.operations.registry import AnyBound
from remuda.operations.saga import AnyStep, Work


class StoppedError(Exception):
    """The caller went away: what was begun is undone."""


class ObstructedError(Exception):
    """Raised for an operation that this process cannot undo."""

    def __init__(self, obstacle: Obstacle, problem: str, remedy: str) -> None:
        self.obstacle, self.problem, self.remedy = obstacle, problem, remedy
        self.failure = Failure(code=obstacle, sentence=f"It {problem}: {remedy}.")
        super().__init__(self.failure.sentence)


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
        self.tried: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the try to undo that is under way, or the first one, has ended."""
        self.wake = asyncio.Event()
        """Set to end the pause before the next try."""
        self.pause_s = 0.0
        """How long to wait before the next try."""
        self.is_pausing = False
        self.is_stopped = False
        """The caller went away."""
        self.is_ending = False
        """The process stops: nothing is tried after the present try."""
        self._is_stepping = False
        self._is_interrupted = False

    @property
    def owes_undo(self) -> bool:
        """It is open, or it was overtaken: what this process did after others had undone it is still to be undone."""
        return self.operation.is_open or (self.is_live and self.operation.phase == "undone")

    async def do(self, step: AnyStep) -> None:
        """Do a step. Only in here does `stop` interrupt, and whatever the step makes of that ends in here too."""
        self.step = step.name
        self.started += 1
        self._is_stepping = True
        try:
            await step.do(self.ports, self.work)
        except asyncio.CancelledError:
            if self._take_back():
                raise StoppedError from None
            raise
        finally:
            self._is_stepping = False
            self._take_back()

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

    def begin_try(self) -> None:
        """A try to undo begins, or is about to."""
        if self.tried.done():
            self.tried = asyncio.get_running_loop().create_future()

    def end_try(self) -> None:
        """A try to undo has ended, or there will be none."""
        if not self.tried.done():
            self.tried.set_result(None)

    def hurry(self) -> None:
        """Make no pause before the next try."""
        if self.is_pausing:
            self.begin_try()
        self.wake.set()

    def end(self) -> None:
        """The process stops: make no further try."""
        self.is_ending = True
        self.wake.set()

    def succeed(self) -> None:
        """Tell the caller that it is done."""
        if not self.answer.done():
            self.answer.set_result(self.operation)

    def fail(self, error: BaseException) -> None:
        """Tell the caller, if there is one, why it is not done."""
        if self.is_live and not self.answer.done():
            self.answer.set_exception(error)

    def _take_back(self) -> bool:
        """Take back that `stop` cancelled the task; tell whether it did, and nobody else."""
        if not self._is_interrupted or self.task is None:
            return False
        self._is_interrupted = False
        return self.task.uncancel() == 0
