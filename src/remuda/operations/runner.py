"""The runner: does the steps of a run, and undoes them if it must.

A run is a task of its own, so that a caller who is cut off takes nothing down: the step under way is left, and what was
begun is undone. Whatever fails, undoing is tried until the record closes; a process that dies in between leaves an open
record to recovery. A caller whose run fails hears of it after the first try to undo, whatever that came to.

A run that was overtaken (its process slept through the deadline, and recovery undid it) finds its record closed by
somebody else. It undoes once more what it did meanwhile, and its caller is told 503, never success.

A run: one operation in the hands of this process.

How patient operations are.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog

from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock
from remuda.kernel.errors import RemudaError, TimedOut, Unavailable
from remuda.kernel.randomness import Randomness
from remuda.operations.journal import Journal, TakenError
from remuda.operations.kinds import Failure, Obstacle, Operation, failure_of
from remuda.operations.reporter import Reporter
from remuda.operations.saga import AnyBound, AnyStep, Work
from remuda.store.logs import Record


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


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationSettings:
    """What an operator may set. `grace_s` is longer than `undo_s`, or the living would be overtaken."""

    run_s: float = 30.0
    """All steps of a run together take no longer, or it is undone."""
    undo_s: float = 30.0
    """One try to undo takes no longer."""
    grace_s: float = 90.0
    """Where other processes may live, theirs are taken over so long after the deadline or the next try was due."""
    pause_s: float = 0.5
    """The longest pause after the first failed undo; each is up to twice as long as the one before."""
    longest_pause_s: float = 300.0
    """The longest pause between two tries: a stuck operation is still tried so often."""
    stuck_after: int = 8
    """Failed tries after which an operation is stuck, about a minute after the first."""
    look_s: float = 15.0
    """How often recovery looks for open operations that nobody works on."""
    together: int = 32
    """How many operations recovery takes over at once."""
    retention: timedelta = timedelta(days=30)
    """How long closed operations are kept: longer than idempotency keys, or a request sent again would run again."""

    def __post_init__(self) -> None:
        if self.grace_s <= self.undo_s:
            raise ValueError("grace_s must be longer than undo_s")


_LEFT = Failure(code="caller_left", sentence="The caller went away before it was done.")
_CRASHED = Failure(code="process_ended", sentence="The process that ran it ended before it was done.")


class Runner:
    """Brings runs to their end."""

    def __init__(
        self,
        journal: Journal,
        reporter: Reporter,
        *,
        clock: Clock,
        randomness: Randomness,
        settings: OperationSettings,
    ) -> None:
        self._journal, self._reporter = journal, reporter
        self._clock, self._randomness = clock, randomness
        self._settings = settings
        self._backoff = Backoff(settings.pause_s, settings.longest_pause_s)
        self._log = structlog.get_logger()

    async def run(self, run: Run, log: Sequence[Record]) -> None:
        """Do what was asked, or undo what was begun."""
        try:
            run.operation = await self._journal.begin(run.operation)
        except (RemudaError, TakenError) as error:
            run.fail(error)
            return
        run.error = await self._do(run) or await self._close(run, log)
        if run.error is None:
            run.succeed()
            return
        self._reporter.step_failed(run.operation, run.step, _told(run))
        await self.undo(run)

    async def undo(self, run: Run) -> None:
        """Undo a run until its record is closed, or the process stops."""
        while True:
            run.begin_try()
            is_over = await self._try_undo(run)
            run.end_try()
            self._answer(run)
            if is_over:
                return
            await self._pause(run)
            if run.is_ending:
                return

    async def _do(self, run: Run) -> BaseException | None:
        """Do the steps; return what went wrong."""
        try:
            async with _within(self._settings.run_s):
                for step in run.saga.steps:
                    self._check(run)
                    await run.do(step)
                    self._reporter.step_done(run.operation, step.name)
                self._check(run)
        except asyncio.CancelledError as error:
            return _cancelled(error)
        except (RemudaError, StoppedError) as error:
            return error
        except Exception as error:  # noqa: BLE001  whatever it was, it is undone and then told
            self._log.exception("a step failed unexpectedly", saga=run.saga.name, step=run.step)
            return error
        run.step = ""
        return None

    def _check(self, run: Run) -> None:
        """Raise if nobody waits any more, or if the machine slept: the loop's time may stand still meanwhile."""
        if run.is_stopped:
            raise StoppedError
        if self._clock.now() > run.operation.spec.deadline:
            raise TimedOut(self._settings.run_s)

    async def _close(self, run: Run, log: Sequence[Record]) -> BaseException | None:
        """Close the record as done; return why that was not possible."""
        try:
            about = run.work.about.uid
            run.operation = await self._journal.move(
                run.operation, "done", among=("running",), log=log, incarnation=about
            )
        except RemudaError as error:
            return error
        if run.operation.phase == "done":
            return None
        return Unavailable(f"The operation {run.work.id} was undone because it took too long: try again.")

    async def _try_undo(self, run: Run) -> bool:
        try:
            await self._undo_once(run)
        except asyncio.CancelledError as error:
            await self._note(run, _cancelled(error))
        except Exception as error:  # noqa: BLE001  whatever it was, it is tried again
            await self._note(run, error)
        else:
            return True
        return False

    async def _undo_once(self, run: Run) -> None:
        run.operation = await self._journal.read_again(run.operation)
        if run.operation.phase == "running":
            run.operation = await self._journal.move(
                run.operation,
                "undoing",
                among=("running",),
                incarnation=run.work.about.uid,
                failed_step=run.step,
                error=_told(run),
                turned=self._clock.now(),
            )
        if not run.owes_undo:
            return
        async with _within(self._settings.undo_s):
            for step in reversed(run.saga.steps[: run.started]):
                await run.undo(step)
                self._reporter.undone(run.operation, step.name)
        run.step = ""
        run.operation = await self._journal.move(run.operation, "undone", among=("undoing", "stuck"))

    async def _note(self, run: Run, error: BaseException) -> None:
        """Remember that undoing failed, and when it is tried again."""
        failure = failure_of(error)
        run.attempts += 1
        run.pause_s = self._backoff.pause_s(run.attempts, self._randomness)
        self._reporter.undo_failed(run.operation, run.step, failure)
        is_stuck = run.attempts >= self._settings.stuck_after
        tell = self._log.error if is_stuck else self._log.warning
        tell("undo failed", saga=run.saga.name, step=run.step, attempts=run.attempts, error=failure.sentence)
        with contextlib.suppress(RemudaError):  # the record says less than there is; the next try says more
            run.operation = await self._journal.move(
                run.operation,
                "stuck" if is_stuck else "undoing",
                among=("undoing", "stuck"),
                undo_attempts=run.attempts,
                undo_error=failure,
                next_try=self._clock.now() + timedelta(seconds=run.pause_s),
            )

    async def _pause(self, run: Run) -> None:
        run.is_pausing = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(run.pause_s):
                await run.wake.wait()
        run.wake.clear()
        run.is_pausing = False

    def _answer(self, run: Run) -> None:
        """Tell the caller, who after all may have been served: the close that failed may have happened."""
        if run.is_live and run.operation.phase == "done":
            self._reporter.closed(run.operation)
            run.succeed()
        elif run.error is not None:
            run.fail(run.error)


@contextlib.asynccontextmanager
async def _within(limit_s: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(limit_s) as limit:
            yield
    except TimeoutError:
        if limit.expired():
            raise TimedOut(limit_s) from None
        raise


def _cancelled(error: asyncio.CancelledError) -> Exception:
    """Tell apart who cancelled: something within a step, or the end of the process, which goes on."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise error
    return Unavailable("Something that a step waited for was cancelled: try again.")


def _told(run: Run) -> Failure:
    if run.error is None:
        return _CRASHED
    return _LEFT if isinstance(run.error, StoppedError) else failure_of(run.error)
