"""The runner: does the steps of a run, and undoes them if it must.

A run is a task of its own, so that a caller who is cut off takes nothing down: the step under way is left, and what was
begun is undone. Whatever fails, undoing is tried until the record closes; a process that dies in between leaves an open
record to recovery. A caller whose run fails hears of it after the first try to undo, whatever that came to.

A run that was overtaken (its process slept through the deadline, and recovery undid it) finds its record closed by
somebody else. It undoes once more what it did meanwhile, and its caller is told 503, never success.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import structlog

from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock
from remuda.kernel.errors import RemudaError, TimedOut, Unavailable
from remuda.kernel.randomness import Randomness
from remuda.operations.journal import Journal, TakenError
from remuda.operations.kinds import Failure, failure_of
from remuda.operations.reporter import Reporter
from remuda.operations.runs import Run, StoppedError
from remuda.operations.settings import OperationSettings
from remuda.store.logs import Record

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
