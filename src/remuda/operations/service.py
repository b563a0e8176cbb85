"""Operations: runs sagas, and retries or abandons those that could not be undone.

The id of a run comes from the caller and is the same when a request is repeated:

- it is running, here or elsewhere: InFlight;
- it is done: the closed record, and nothing runs;
- it was undone or abandoned: a new attempt, with its own record and `work.id`, so that nothing it creates can be
 mistaken for what the last attempt left. Use the name in the record that `run` returns. Of many attempts the first
 and the last few are kept;
- it is stuck: Unavailable, until it is undone or an operator abandons it;
- it was another request, of another saga or with another input: KeyReused.

A stuck operation is still retried at an interval. `retry` does so at once; `abandon` ends it with a reason and leaves
what it created behind.

A process may have several instances, such as one for each service in it; then each saga belongs to one of them.
"""

import asyncio
import contextvars
from collections.abc import Collection, Coroutine, Iterable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import msgspec
import structlog

from remuda.kernel.clock import Clock, yield_to_loop
from remuda.kernel.errors import InFlight, Invalid, KeyReused, NotFound, Unavailable
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import Randomness
from remuda.operations.journal import NameTakenError, OperationJournal
from remuda.operations.kinds import Operation, OperationSpec
from remuda.operations.reporter import Reporter
from remuda.operations.runner import ObstructedError, OperationSettings, Run, Runner
from remuda.operations.saga import AnyBoundSaga, Saga, Sagas, Work, read_input, stored_input
from remuda.store.contract import Store
from remuda.store.logs import Record
from remuda.store.objects import Metadata

InputT = TypeVar("InputT", bound=msgspec.Struct)

_REQUEST_FIELDS = ("saga", "input", "sealed_input")
_RETRY_AFTER_S = 1
_CANCEL_TIMEOUT_S = 5.0


class Operations:
    """The sagas of a service, and the runs in progress."""

    def __init__(
        self,
        store: Store,
        bound: Iterable[AnyBoundSaga],
        *,
        clock: Clock,
        randomness: Randomness,
        reporter: Reporter | None = None,
        settings: OperationSettings | None = None,
    ) -> None:
        bound = tuple(bound)
        self.sagas = Sagas(each.saga for each in bound)
        self.settings = settings or OperationSettings()
        self.process = random_id(randomness)
        """The id of this instance in its records; no other instance has it, in this process or another."""
        self.store, self.clock, self.reporter = store, clock, reporter or Reporter()
        self.journal = OperationJournal(store, self.reporter, clock)
        self.is_stopping = False
        self._bound = {each.saga.name: each for each in bound}
        self._runner = Runner(self.journal, self.reporter, clock=clock, randomness=randomness, settings=self.settings)
        self._runs: dict[str, Run] = {}

    async def run(
        self,
        saga: Saga[Any, InputT],
        *,
        id: str,  # noqa: A002  the usual name
        actor: str,
        input: InputT,  # noqa: A002  the usual name
        actor_name: str = "",
        trace_id: str = "",
        log: Sequence[Record] = (),
    ) -> Operation:
        """Run a saga, all or nothing; return the record, closed as done, or raise what a step raised."""
        bound = self._bound.get(saga.name)
        if bound is None or bound.saga is not saga:
            raise ValueError(f"the saga {saga.name} is not registered: it would not be recovered after a crash")
        spec = self._spec(saga, request=id, actor=actor, actor_name=actor_name, input=input, trace_id=trace_id)
        name = id
        while True:
            try:
                return await self._attempt(bound, Work(name, input, actor, actor_name), spec, log)
            except NameTakenError:
                done = await self._found(name, spec)
            if done is not None:
                return done
            name = await self.journal.next_attempt(id, after=name)

    async def retry(self, id: str) -> Operation:  # noqa: A002  as in `run`
        """Try now to undo an operation that is stuck or waits for its next attempt; return the record after it."""
        operation = await self.journal.read(id)
        if operation.phase not in {"undoing", "stuck"}:
            raise Invalid(f"the operation {id}", f"is {operation.phase}", remedy="retry one that is stuck or undoing")
        try:
            run = self.take_over(operation)
        except ObstructedError as error:
            raise Invalid(f"the operation {id}", error.problem, remedy=error.remedy) from None
        if run.is_pausing:
            run.retry_now()
        await asyncio.wait([run.attempted])
        return await self.journal.read(id)

    async def abandon(self, id: str, *, reason: str, actor: str) -> Operation:  # noqa: A002  as in `run`
        """Stop undoing an operation: what it created stays until an operator removes it."""
        if not reason.strip():
            raise Invalid("reason", "is empty", remedy="say why it is abandoned and what was left behind")
        found = await self.journal.read(id)
        abandoned = await self.journal.move(
            found, "abandoned", among=("undoing", "stuck"), abandoned_by=actor, abandoned_because=reason
        )
        if abandoned.phase != "abandoned" or found.phase == "abandoned":
            remedy = "abandon one that is stuck or undoing"
            raise Invalid(f"the operation {id}", f"is {abandoned.phase}", remedy=remedy)
        if id in self._runs:
            self._runs[id].retry_now()
        return abandoned

    @property
    def running(self) -> Collection[str]:
        """The operations that this process is running."""
        return self._runs.keys()

    def take_over(self, operation: Operation) -> Run:
        """Begin to undo an operation whose process is gone; raise ObstructedError if that is impossible."""
        if operation.name in self._runs:
            return self._runs[operation.name]
        self._check_going()
        bound = self._bound.get(operation.spec.saga)
        if bound is None:
            remedy = "use its service or a release that knows it, or abandon it"
            raise ObstructedError("unknown_saga", f"has the saga {operation.spec.saga}, which is unknown here", remedy)
        try:
            decoded = read_input(bound.saga, operation.spec)
        except msgspec.MsgspecError as error:
            problem, remedy = f"has an input that cannot be read ({error})", "correct the record, or abandon it"
            raise ObstructedError("unreadable_input", problem, remedy) from None
        spec = operation.spec
        run = Run(bound, Work(operation.name, decoded, spec.actor, spec.actor_name), operation, is_live=False)
        self._start(run, self._runner.undo(run))
        return run

    async def stop(self, grace_s: float = 10.0) -> None:
        """Begin nothing new, let runs end within the grace period, and leave the rest to the next start."""
        self.is_stopping = True
        for run in self._runs.values():
            run.end()
        await self._wait(grace_s)
        for run in self._runs.values():
            if run.task is not None:
                run.task.cancel()
        await self._wait(_CANCEL_TIMEOUT_S)
        if self._runs:
            structlog.get_logger().error("operations did not end in time", operations=sorted(self._runs))

    def _spec(
        self,
        saga: Saga[Any, InputT],
        *,
        request: str,
        actor: str,
        actor_name: str,
        input: InputT,  # noqa: A002  as in `run`
        trace_id: str,
    ) -> OperationSpec:
        subject_kind, subject = saga.subject(input)
        readable, sealed = stored_input(saga, input)
        return OperationSpec(
            saga=saga.name,
            subject_kind=subject_kind,
            subject=subject,
            actor=actor,
            actor_name=actor_name,
            input=readable,
            sealed_input=sealed,
            deadline=self.clock.now() + timedelta(seconds=self.settings.run_s),
            process=self.process,
            request=request,
            trace_id=trace_id,
        )

    async def _attempt(
        self, bound: AnyBoundSaga, work: Work[Any], spec: OperationSpec, log: Sequence[Record]
    ) -> Operation:
        self._check_going()
        if work.id in self._runs:
            raise NameTakenError
        run = Run(bound, work, Operation(metadata=Metadata(name=work.id), spec=spec), is_live=True)
        self._start(run, self._runner.run(run, log))
        try:
            return await run.result
        except asyncio.CancelledError:
            run.stop()
            raise

    async def _found(self, name: str, requested: OperationSpec) -> Operation | None:
        """Return the result of a repeated request, or None if it is to be attempted again."""
        try:
            found = await self.journal.read(name)
        except NotFound:
            raise InFlight(_RETRY_AFTER_S) from None
        if any(getattr(found.spec, name) != getattr(requested, name) for name in _REQUEST_FIELDS):
            raise KeyReused
        if found.phase == "done":
            return found
        if found.phase in {"running", "undoing"}:
            raise InFlight(_RETRY_AFTER_S)
        if found.phase == "stuck":
            raise Unavailable(
                f"The operation {name} could not be undone yet: try again later, or ask an operator to check it."
            )
        return None

    def _start(self, run: Run, work: Coroutine[Any, Any, None]) -> None:
        self._runs[run.work.id] = run
        context = contextvars.copy_context()
        context.run(structlog.contextvars.bind_contextvars, operation=run.work.id)
        run.task = asyncio.create_task(work, name=f"operation {run.work.id}", context=context)
        run.task.add_done_callback(lambda task: self._ended(run, task))

    def _ended(self, run: Run, task: asyncio.Task[None]) -> None:
        del self._runs[run.work.id]
        run.end_try()
        error = None if task.cancelled() else task.exception()
        if error is not None:
            structlog.get_logger().error("operation failed unexpectedly", operation=run.work.id, exc_info=error)
        run.fail(error or Unavailable("This process is stopping: read the resource before trying again."))

    async def _wait(self, seconds: float) -> None:
        """Wait for the runs, up to this time."""
        tasks = [run.task for run in self._runs.values() if run.task is not None]
        if tasks:
            done, _ = await asyncio.wait(tasks, timeout=seconds)
            while any(
                run.task in done for run in self._runs.values()
            ):  # `_ended` is called in a later iteration of the loop
                await yield_to_loop()

    def _check_going(self) -> None:
        if self.is_stopping:
            raise Unavailable("This process is stopping: try again.")
