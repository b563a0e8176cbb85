"""Journal: reads and compare-and-swap writes of Operation records."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Conflict, NotFound, RemudaError
from remuda.operations.kinds import CLOSED_PHASES, Operation, Phase, attempt_id
from remuda.operations.reporter import Reporter
from remuda.store.contract import Store
from remuda.store.logs import Record

_KEPT_ATTEMPTS = 2


class NameTakenError(Exception):
    """There is already a record with this name. Unlike AlreadyExists, no step can raise it."""


class OperationJournal:
    """The operation records of a store, with a reporter for each change."""

    def __init__(self, store: Store, reporter: Reporter, clock: Clock) -> None:
        self._store, self._reporter, self._clock = store, reporter, clock

    async def begin(self, operation: Operation) -> Operation:
        """Write the record of a run before its first step."""
        try:
            written = await self._store.create(operation, log=self._reporter.records(operation))
        except AlreadyExists:
            raise NameTakenError from None
        self._reporter.started(written)
        return written

    async def read(self, name: str) -> Operation:
        """Return the current record."""
        return await self._store.get(Operation, name)

    async def read_again(self, operation: Operation) -> Operation:
        """Return the record as another process may have left it; a deleted one counts as undone."""
        try:
            found = await self.read(operation.name)
        except NotFound:
            found = None
        if found is None or found.uid != operation.uid:
            return operation.moved("undone")  # it was deleted, so it must not count as done
        return found

    async def next_attempt(self, request: str, *, after: str) -> str:
        """Return the name of the latest attempt of a request, or of the next one if the latest is `after`.

        The first attempt's record has the number of the latest, so that this costs the same however many there were. Of
        the others the last two are kept, and those that were abandoned.
        """
        while True:
            try:
                first = await self.read(request)
            except NotFound:  # it was deleted meanwhile, and so is free again
                return request
            latest = first.status.attempts
            if after != attempt_id(request, latest):
                return attempt_id(request, latest)
            advanced = first.moved(first.phase, attempts=latest + 1, closed=self._clock.now())
            try:
                await self._store.update_status(advanced)
            except Conflict:
                continue
            if latest > _KEPT_ATTEMPTS:
                await self._remove_undone(attempt_id(request, latest - 1))
            return attempt_id(request, latest + 1)

    async def is_latest(self, operation: Operation) -> bool:
        """Return whether no later attempt of the request has begun: if one has, the name may be that of an old one."""
        request = operation.spec.request
        if operation.name == request:
            return True
        try:
            first = await self.read(request)
        except NotFound:
            return True
        return operation.name == attempt_id(request, first.status.attempts)

    async def _remove_undone(self, name: str) -> None:
        with suppress(NotFound, Conflict):
            found = await self.read(name)
            if found.phase == "undone":
                await self._store.delete(Operation, name, uid=found.uid, version=found.version)

    async def move(
        self, operation: Operation, phase: Phase, *, among: Sequence[Phase], log: Sequence[Record] = (), **changes: Any
    ) -> Operation:
        """Change the phase of a record from one of those `among`; return the current record.

        If another process has changed the phase, that counts, and its record is returned: check the phase. A write that
        raised an error may have succeeded, and then it counts.
        """
        while operation.phase in among:
            moved = operation.moved(phase, **changes)
            if phase in CLOSED_PHASES:
                moved = moved.moved(phase, closed=self._clock.now(), next_attempt=None)
            records = [*self._reporter.records(moved), *log] if phase != operation.phase else log
            try:
                written = await self._store.update_status(moved, log=records)
            except (Conflict, NotFound):
                operation = await self.read_again(operation)
                continue
            except RemudaError:
                written = await self.read_again(operation)
                if written.status != moved.status:
                    raise
            self._report(operation, written)
            return written
        return operation

    def _report(self, before: Operation, after: Operation) -> None:
        if after.phase in CLOSED_PHASES:
            self._reporter.closed(after)
        elif after.phase == "stuck" != before.phase:
            self._reporter.stuck(after)
