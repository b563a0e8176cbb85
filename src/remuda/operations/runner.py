"""Runner: does the steps of an operation, and undoes them if one fails.

A run is a task of its own, so that a cancelled caller does no harm: the current step is interrupted, and the steps
before are undone. After any failure, undoing is attempted until the record is closed; a process that ends before leaves
an open record to recovery. A caller whose run fails gets the error after the first attempt to undo, whatever its
outcome.

A run that was overtaken (its process was suspended past the deadline, and recovery undid it) finds its record closed by
another process. It undoes its later effects, and its caller gets 503, never success.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog

from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock
from remuda.kernel.errors import InFlight, RemudaError, TimedOut, Unavailable
from remuda.kernel.randomness import Randomness
from remuda.kernel.time_limits import TimeLimits
from remuda.operations.journal import NameTakenError, OperationJournal
from remuda.operations.kinds import Failure, Obstacle, Operation, failure_of
from remuda.operations.reporter import Reporter
from remuda.operations.saga import AnyBoundSaga, AnyStep, Work
from remuda.store.logs import Record


class StoppedError(Exception):
    """The caller was cancelled, so the steps are undone."""


class ObstructedError(Exception):
    """Raised for an operation that this process cannot undo."""

    def __init__(self, obstacle: Obstacle, problem: str, remedy: str) -> None:
        self.obstacle, self.problem, self.remedy = obstacle, problem, remedy
        self.failure = Failure(code=obstacle, message=f"The operation {problem}: {remedy}.")
        super().__init__(self.failure.message)


class Run:
    """The state of an operation in this process, beyond its record.

    A live run was started here, and a caller waits for its `result`. One that was taken over is only undone. It is
    unknown how far that one came, so all its steps may have started.
    """

    def __init__(self, bound: AnyBoundSaga, work: Work[Any], operation: Operation, *, is_live: bool) -> None:
        self.saga, self.ports = bound.saga, bound.ports
        self.work, self.operation, self.is_live = work, operation, is_live
        self.started = 0 if is_live else len(self.saga.steps)
        """The number of steps that may have had their effect."""
        self.step = ""
        """The step that is being done or undone."""
        self.error: BaseException | None = None
        """The reason why it is undone."""
        self.attempts = operation.status.undo_attempts
        self.result: asyncio.Future[Operation] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] | None = None
        self.attempted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Resolved at the end of the current attempt to undo, or of the first one."""
        self.retry = asyncio.Event()
        """Set to end the delay before the next attempt."""
        self.pause_s = 0.0
        """The delay before the next attempt."""
        self.is_pausing = False
        self.is_stopped = False
        """Whether the caller was cancelled."""
        self.is_ending = False
        """Whether the process stops: there is no attempt after the current one."""
        self._is_stepping = False
        self._is_interrupted = False

    @property
    def needs_undo(self) -> bool:
        """Whether it is open, or was overtaken: then later effects of this process are still to be undone."""
        return self.operation.is_open or (self.is_live and self.operation.phase == "undone")

    async def do(self, step: AnyStep) -> None:
        """Do a step. Only here does `stop` interrupt, and the cancellation does not leave this method."""
        self.step = step.name
        self.started += 1
        self._is_stepping = True
        try:
            await step.do(self.ports, self.work)
        except asyncio.CancelledError:
            if self._withdraw_cancellation():
                raise StoppedError from None
            raise
        finally:
            self._is_stepping = False
            self._withdraw_cancellation()

    async def undo(self, step: AnyStep) -> None:
        """Undo a step."""
        self.step = step.name
        await step.undo(self.ports, self.work)

    def stop(self) -> None:
        """Interrupt the current step and begin no other, because the caller was cancelled."""
        self.is_stopped = True
        if self._is_stepping and self.task is not None:
            self._is_interrupted = True
            self.task.cancel()

    def begin_try(self) -> None:
        """Record that an attempt to undo begins, or is about to."""
        if self.attempted.done():
            self.attempted = asyncio.get_running_loop().create_future()

    def end_try(self) -> None:
        """Record that an attempt to undo has ended, or that there will be none."""
        if not self.attempted.done():
            self.attempted.set_result(None)

    def retry_now(self) -> None:
        """Skip the delay before the next attempt."""
        if self.is_pausing:
            self.begin_try()
        self.retry.set()

    def end(self) -> None:
        """Make no further attempt, because the process stops."""
        self.is_ending = True
        self.retry.set()

    def succeed(self) -> None:
        """Return success to the caller."""
        if not self.result.done():
            self.result.set_result(self.operation)

    def fail(self, error: BaseException) -> None:
        """Raise an error at the caller, if there is one."""
        if self.is_live and not self.result.done():
            self.result.set_exception(error)

    def _withdraw_cancellation(self) -> bool:
        """Withdraw the cancellation by `stop`; return whether there was one, and no other."""
        if not self._is_interrupted or self.task is None:
            return False
        self._is_interrupted = False
        return self.task.uncancel() == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationSettings:
    """Deadlines of operations. `grace_s` is longer than `undo_s`, otherwise live runs would be taken over."""

    run_s: float = 30.0
    """Maximum duration of all steps of a run together; after that it is undone."""
    undo_s: float = 30.0
    """Maximum duration of one attempt to undo."""
    grace_s: float = 90.0
    """Time after the deadline or the next attempt after which a run of another process is taken over."""
    pause_s: float = 0.5
    """Maximum delay after the first failed undo; each is up to twice as long as the one before."""
    longest_pause_s: float = 300.0
    """Maximum delay between two attempts, also of a stuck operation."""
    stuck_attempts: int = 8
    """Failed attempts after which an operation is stuck, about a minute after the first."""
    recovery_interval_s: float = 15.0
    """The interval at which recovery scans for open operations that no process works on."""
    concurrency: int = 32
    """The number of operations that recovery takes over concurrently."""
    retention: timedelta = timedelta(days=30)
    """Retention of closed operations: longer than of idempotency keys, so that no repeat runs again."""

    def __post_init__(self) -> None:
        if self.grace_s <= self.undo_s:
            raise ValueError("grace_s must be longer than undo_s")


_RETRY_AFTER_S = 1
_CALLER_LEFT = Failure(code="caller_left", message="The caller disconnected before the operation was done.")
_CRASHED = Failure(code="process_ended", message="The process ended before the operation was done.")


class Runner:
    """Brings runs to their end."""

    def __init__(
        self,
        journal: OperationJournal,
        reporter: Reporter,
        *,
        clock: Clock,
        randomness: Randomness,
        settings: OperationSettings,
    ) -> None:
        self._journal, self._reporter = journal, reporter
        self._clock, self._randomness = clock, randomness
        self._settings = settings
        self._do_limits, self._undo_limits = TimeLimits(settings.run_s), TimeLimits(settings.undo_s)
        self._backoff = Backoff(settings.pause_s, settings.longest_pause_s)
        self._log = structlog.get_logger()

    async def run(self, run: Run, log: Sequence[Record]) -> None:
        """Do the steps of a run, or undo them if one fails."""
        try:
            run.operation = await self._journal.begin(run.operation)
        except (RemudaError, NameTakenError) as error:
            run.fail(error)
            return
        if not await self._journal.is_latest(run.operation):
            run.operation = await self._journal.move(run.operation, "undone", among=("running",))
            run.fail(InFlight(_RETRY_AFTER_S))
            return
        run.error = await self._do(run) or await self._close(run, log)
        if run.error is None:
            run.succeed()
            return
        self._reporter.step_failed(run.operation, run.step, _failure(run))
        await self.undo(run)

    async def undo(self, run: Run) -> None:
        """Undo a run until its record is closed, or the process stops."""
        while True:
            run.begin_try()
            is_over = await self._try_undo(run)
            run.end_try()
            self._resolve(run)
            if is_over:
                return
            await self._pause(run)
            if run.is_ending:
                return

    async def _do(self, run: Run) -> BaseException | None:
        """Do the steps; return the error, if any."""
        try:
            with _within(self._do_limits):
                for step in run.saga.steps:
                    self._check(run)
                    await run.do(step)
                    self._reporter.step_done(run.operation, step.name)
                self._check(run)
        except asyncio.CancelledError as error:
            return _cancelled(error)
        except (RemudaError, StoppedError) as error:
            return error
        except Exception as error:  # noqa: BLE001  the steps are undone, then the caller gets the error
            self._log.exception("step failed unexpectedly", saga=run.saga.name, step=run.step)
            return error
        run.step = ""
        return None

    def _check(self, run: Run) -> None:
        """Raise if the caller was cancelled, or if the machine was suspended, when the loop's time may stand still."""
        if run.is_stopped:
            raise StoppedError
        if self._clock.now() > run.operation.spec.deadline:
            raise TimedOut(self._settings.run_s)

    async def _close(self, run: Run, log: Sequence[Record]) -> BaseException | None:
        """Close the record as done; return the error that prevents it, if any."""
        try:
            uid = run.work.subject.uid
            run.operation = await self._journal.move(
                run.operation, "done", among=("running",), log=log, incarnation=uid
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
            await self._record_undo_failure(run, _cancelled(error))
        except Exception as error:  # noqa: BLE001  undoing is retried after every error
            await self._record_undo_failure(run, error)
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
                incarnation=run.work.subject.uid,
                failed_step=run.step,
                error=_failure(run),
                undo_started=self._clock.now(),
            )
        if not run.needs_undo:
            return
        with _within(self._undo_limits):
            for step in reversed(run.saga.steps[: run.started]):
                await run.undo(step)
                self._reporter.undone(run.operation, step.name)
        run.step = ""
        run.operation = await self._journal.move(run.operation, "undone", among=("undoing", "stuck"))

    async def _record_undo_failure(self, run: Run, error: BaseException) -> None:
        """Record that undoing failed, and the time of the next attempt."""
        failure = failure_of(error)
        run.attempts += 1
        run.pause_s = self._backoff.pause_s(run.attempts, self._randomness)
        self._reporter.undo_failed(run.operation, run.step, failure)
        is_stuck = run.attempts >= self._settings.stuck_attempts
        tell = self._log.error if is_stuck else self._log.warning
        tell("undo failed", saga=run.saga.name, step=run.step, attempts=run.attempts, error=failure.message)
        with contextlib.suppress(RemudaError):  # the record is outdated until the next attempt
            run.operation = await self._journal.move(
                run.operation,
                "stuck" if is_stuck else "undoing",
                among=("undoing", "stuck"),
                undo_attempts=run.attempts,
                undo_error=failure,
                next_attempt=self._clock.now() + timedelta(seconds=run.pause_s),
            )

    async def _pause(self, run: Run) -> None:
        run.is_pausing = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(run.pause_s):
                await run.retry.wait()
        run.retry.clear()
        run.is_pausing = False

    def _resolve(self, run: Run) -> None:
        """Return the outcome to the caller. The write that closes the record may have succeeded despite an error."""
        if run.is_live and run.operation.phase == "done":
            self._reporter.closed(run.operation)
            run.succeed()
        elif run.error is not None:
            run.fail(run.error)


@contextlib.contextmanager
def _within(limits: TimeLimits) -> Iterator[None]:
    limit = limits.begin()
    try:
        with limit:
            yield
    except TimeoutError:
        if limit.is_expired:
            raise TimedOut(limits.seconds) from None
        raise


def _cancelled(error: asyncio.CancelledError) -> Exception:
    """Return an error if something inside a step was cancelled; raise if this task was."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise error
    return Unavailable("Something that a step waited for was cancelled: try again.")


def _failure(run: Run) -> Failure:
    if run.error is None:
        return _CRASHED
    return _CALLER_LEFT if isinstance(run.error, StoppedError) else failure_of(run.error)
