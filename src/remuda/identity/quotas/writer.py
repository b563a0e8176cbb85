"""Batch writer of quota records: concurrent writes of one organization are validated together and committed at once.

A quota record is one object that all callers of an organization write. The writer validates waiting changes against the
same version, one after the other, and commits them with one compare-and-swap; each caller gets its own result.
Rejections also count only after that write, since it shows that they were based on the latest version.

A validation reads what else it needs (allocations, catalogue) after the record. Anything that changes only together
with the record is therefore unchanged when the record is written. A batch has at most one change per allocation, so
that what a validation has seen of its intent still holds when the change is applied.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from msgspec.structs import replace

from remuda.identity.kinds.quotas import LEDGER_FINALIZER, Allocation, Quota, QuotaSpec
from remuda.identity.kinds.tenancy import ORGANIZATION, Organization
from remuda.identity.quotas.quota_state import OrganizationDeleting, closed
from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Conflict, NotFound, OwnerRejected
from remuda.kernel.randomness import Randomness
from remuda.resources.conventions import ORGANIZATION as ORGANIZATION_LABEL
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.logs import Record
from remuda.store.objects import Metadata

FoundT = TypeVar("FoundT")

Apply = Callable[[QuotaSpec], QuotaSpec]
"""Changes a record as left by earlier changes of the batch, or raises."""

Validate = Callable[[Quota], Awaitable[tuple[Apply, FoundT]]]
"""Validates a change against a record, and returns the change and a result for the caller."""

_MAX_BATCH = 64
_MAX_ATTEMPTS = 30
_PAUSES = Backoff(first_s=0.005, longest_s=0.25)


def unchanged(spec: QuotaSpec) -> QuotaSpec:
    return spec


class _PendingWrite:
    """A caller that waits for its change."""

    __slots__ = ("future", "key", "log", "validate")

    def __init__(self, validate: Validate[Any], key: str, log: Sequence[Record], future: asyncio.Future[Any]) -> None:
        self.validate, self.key, self.log, self.future = validate, key, log, future

    def resolve(self, outcome: Any) -> None:
        """Give the caller its result, if it still waits."""
        if self.future.done():
            return
        if isinstance(outcome, asyncio.CancelledError):
            self.future.cancel()
        elif isinstance(outcome, BaseException):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


class QuotaWriter:
    """Batch writer of the quota records of all organizations. A process has one."""

    def __init__(self, store: Store, clock: Clock, randomness: Randomness) -> None:
        self._store, self._clock, self._randomness = store, clock, randomness
        self._queues: dict[str, deque[_PendingWrite]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def find(self, organization: str) -> Quota | None:
        return await find(self._store, Quota, organization)

    async def write(
        self, organization: str, validate: Validate[FoundT], *, key: str, log: Sequence[Record] = ()
    ) -> tuple[Quota, FoundT]:
        """Change a quota record, and return it as written with the result of the validation.

        `key` is the allocation of the change, or another key of which a batch has one change. A caller that is
        cancelled while it waits has no effect; later, it is as if its process had crashed.
        """
        future: asyncio.Future[tuple[Quota, FoundT]] = asyncio.get_running_loop().create_future()
        pending = _PendingWrite(validate, key, log, future)
        if organization in self._queues:
            self._queues[organization].append(pending)
        else:
            self._queues[organization] = deque([pending])
            task = asyncio.create_task(self._drain(organization), name=f"quota {organization}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    async def read_latest(self, organization: str, *, key: str) -> Quota:
        """Return a version of the record that was the latest at some time during this call."""

        async def validate(_: Quota) -> tuple[Apply, None]:
            return unchanged, None

        record, _ = await self.write(organization, validate, key=key)
        return record

    async def _drain(self, organization: str) -> None:
        """Write batches until the queue is empty."""
        queue = self._queues[organization]
        try:
            while queue:
                await self._write_batch(organization, _next_batch(queue))
        finally:
            del self._queues[organization]
            for pending in queue:
                pending.resolve(asyncio.CancelledError())

    async def _write_batch(self, organization: str, batch: list[_PendingWrite]) -> None:
        for attempt in range(1, _MAX_ATTEMPTS + 1):
            batch = [pending for pending in batch if not pending.future.done()]
            if not batch:
                return
            try:
                outcomes = await self._attempt(organization, batch)
            except Conflict as error:
                outcomes = [error] * len(batch)
                if attempt < _MAX_ATTEMPTS:
                    await self._clock.sleep(_PAUSES.pause_s(attempt, self._randomness))
                    continue
            except asyncio.CancelledError as error:
                _resolve_all(batch, [error] * len(batch))
                raise
            except BaseException as error:  # noqa: BLE001  callers get every error
                outcomes = [error] * len(batch)
            _resolve_all(batch, outcomes)
            return

    async def _attempt(self, organization: str, batch: list[_PendingWrite]) -> list[Any]:
        record = await self._get_or_create(organization)
        results: list[Any] = await asyncio.gather(
            *[pending.validate(record) for pending in batch], return_exceptions=True
        )
        spec = record.spec
        log: list[Record] = []
        for number, (pending, result) in enumerate(zip(batch, results, strict=True)):
            if isinstance(result, Exception):
                continue
            if isinstance(result, BaseException):
                raise result
            apply, results[number] = result
            try:
                spec = apply(spec)
                log += pending.log
            except Exception as error:  # noqa: BLE001  only its own caller gets it
                results[number] = error
        written = await self._store.update(replace(record, spec=spec), log=log)
        return [found if isinstance(found, Exception) else (written, found) for found in results]

    async def _get_or_create(self, organization: str) -> Quota:
        record = await self.find(organization)
        if record is not None:
            return record
        owner = await self._store.get(Organization, organization)
        metadata = Metadata(
            name=organization,
            labels={ORGANIZATION_LABEL: organization},
            owner_references=(ORGANIZATION.owner(owner),),
            finalizers=(LEDGER_FINALIZER,),
        )
        with suppress(AlreadyExists):
            try:
                return await self._store.create(Quota(metadata=metadata))
            except OwnerRejected:
                raise OrganizationDeleting(organization) from None
        return await self._store.get(Quota, organization)


def _resolve_all(batch: Sequence[_PendingWrite], outcomes: Sequence[Any]) -> None:
    for pending, outcome in zip(batch, outcomes, strict=True):
        pending.resolve(outcome)


def _next_batch(queue: deque[_PendingWrite]) -> list[_PendingWrite]:
    """Take the next batch from a queue: at most one change per key, the others stay in order."""
    batch: dict[str, _PendingWrite] = {}
    later: list[_PendingWrite] = []
    while queue and len(batch) < _MAX_BATCH:
        pending = queue.popleft()
        if pending.key in batch:
            later.append(pending)
        else:
            batch[pending.key] = pending
    queue.extendleft(reversed(later))
    return list(batch.values())


class ProjectCloser:
    """Closes deleted projects for new allocations.

    That no allocation names a project is not enough: one may be reserved between that check and the removal of the
    project. So the project is closed in the quota record. A reservation has to write the record, too: it comes first
    and protects the project, or second and fails with NotFound.
    """

    def __init__(self, store: Store, writer: QuotaWriter) -> None:
        self._store, self._writer = store, writer

    async def close(self, organization: str, project: str) -> bool:
        """Close a project if it has no active allocation; return whether it is closed. It can be repeated."""

        async def validate(_: Quota) -> tuple[Apply, None]:
            if (await self._store.list_names(Allocation, index=("active", project), limit=1)).items:
                raise Conflict("Project", project)
            return lambda spec: closed(spec, project), None

        try:
            await self._writer.write(organization, validate, key=project)
        except Conflict:
            return False
        except (NotFound, OwnerRejected):  # the organization is deleted, and no record can be created
            return True
        return True
