"""Writes of heads: callers of one organization queue up in the process and share one write.

A head is one object that everybody in an organization wants to write. If each did so alone, all but one would find
that it had changed, and try again. Here whoever waits is judged over the same state, one after the other, and a single
compare-and-swap settles for all of them; each is told its own outcome. Refusals count as judged only by that write,
too: it shows that the state they were judged by was the present one.

A judge looks at what else it needs (rows, the catalogue) after the head was read. What cannot change unless the head
does is therefore as it saw it when the head is written. No two wishes about the same row are in one batch, so that what
a judge has seen of its row's intent still holds when it is applied.

A project goes only when nothing is held in it and nothing can be any more.

To see that no row names it is not enough: one may be taken between that look and the end of the project. So the head
closes it. Whoever takes something in it has to write the head, too: either it comes first, and its intent or row keeps
the project, or it comes second and is told that there is no such project.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from msgspec.structs import replace

from remuda.identity.kinds.quotas import KEEPS_LEDGER, Allocation, Quota, QuotaSpec
from remuda.identity.kinds.tenancy import ORGANIZATION, Organization
from remuda.identity.quotas.quota_state import OrganizationGoes, closed
from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Conflict, NotFound, OwnerRejected
from remuda.kernel.randomness import Randomness
from remuda.resources import conventions as labels
from remuda.store.contract import Store
from remuda.store.logs import Record
from remuda.store.objects import Metadata

FoundT = TypeVar("FoundT")

Apply = Callable[[QuotaSpec], QuotaSpec]
"""Changes a head as those before it in the batch have left it, or raises why not."""

Judge = Callable[[Quota], Awaitable[tuple[Apply, FoundT]]]
"""Looks at what it has to, and returns the change and what it has found."""

_MOST = 64
_TRIES = 30
_PAUSES = Backoff(first_s=0.005, longest_s=0.25)


def unchanged(spec: QuotaSpec) -> QuotaSpec:
    """Leave a head as it is."""
    return spec


class _Wish:
    """Somebody who waits for a change."""

    __slots__ = ("about", "future", "judge", "log")

    def __init__(self, judge: Judge[Any], about: str, log: Sequence[Record], future: asyncio.Future[Any]) -> None:
        self.judge, self.about, self.log, self.future = judge, about, log, future

    def tell(self, outcome: Any) -> None:
        """Tell how it came out, if anybody still waits."""
        if self.future.done():
            return
        if isinstance(outcome, asyncio.CancelledError):
            self.future.cancel()
        elif isinstance(outcome, BaseException):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


class Combiner:
    """The heads of all organizations, as one process writes them: make one for each process."""

    def __init__(self, store: Store, clock: Clock, randomness: Randomness) -> None:
        self._store, self._clock, self._randomness = store, clock, randomness
        self._lines: dict[str, deque[_Wish]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def find(self, organization: str) -> Quota | None:
        """Return a head, if there is one."""
        try:
            return await self._store.get(Quota, organization)
        except NotFound:
            return None

    async def write(
        self, organization: str, judge: Judge[FoundT], *, about: str, log: Sequence[Record] = ()
    ) -> tuple[Quota, FoundT]:
        """Change a head; return it as it was written, and what the judge has found.

        `about` is the row that it is about, or something else of which one at a time is judged. If the caller goes
        away while it waits, nothing happens; if it goes away later, that is as if its process had died.
        """
        future: asyncio.Future[tuple[Quota, FoundT]] = asyncio.get_running_loop().create_future()
        wish = _Wish(judge, about, log, future)
        if organization in self._lines:
            self._lines[organization].append(wish)
        else:
            self._lines[organization] = deque([wish])
            task = asyncio.create_task(self._serve(organization), name=f"heads {organization}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    async def current(self, organization: str, *, about: str) -> Quota:
        """Return a head that was the present one at some time during this call, whatever a cache says."""

        async def judge(_: Quota) -> tuple[Apply, None]:
            return unchanged, None

        head, _ = await self.write(organization, judge, about=about)
        return head

    async def _serve(self, organization: str) -> None:
        """Serve a line until nobody stands in it."""
        line = self._lines[organization]
        try:
            while line:
                await self._share(organization, _drawn(line))
        finally:
            del self._lines[organization]
            for wish in line:
                wish.tell(asyncio.CancelledError())

    async def _share(self, organization: str, batch: list[_Wish]) -> None:
        """Write for all in a batch, however often others write in between."""
        for tries in range(1, _TRIES + 1):
            batch = [wish for wish in batch if not wish.future.done()]
            if not batch:
                return
            try:
                outcomes = await self._attempt(organization, batch)
            except Conflict as error:
                outcomes = [error] * len(batch)
                if tries < _TRIES:
                    await self._clock.sleep(_PAUSES.pause_s(tries, self._randomness))
                    continue
            except asyncio.CancelledError as error:
                _tell(batch, [error] * len(batch))
                raise
            except BaseException as error:  # noqa: BLE001  those who wait are told, whatever it was
                outcomes = [error] * len(batch)
            _tell(batch, outcomes)
            return

    async def _attempt(self, organization: str, batch: list[_Wish]) -> list[Any]:
        head = await self._head(organization)
        judged: list[Any] = await asyncio.gather(*[wish.judge(head) for wish in batch], return_exceptions=True)
        spec = head.spec
        log: list[Record] = []
        for place, (wish, judgement) in enumerate(zip(batch, judged, strict=True)):
            if isinstance(judgement, Exception):
                continue
            if isinstance(judgement, BaseException):
                raise judgement
            apply, judged[place] = judgement
            try:
                spec = apply(spec)
                log += wish.log
            except Exception as refusal:  # noqa: BLE001  only its own caller may suffer
                judged[place] = refusal
        written = await self._store.update(replace(head, spec=spec), log=log)
        return [found if isinstance(found, Exception) else (written, found) for found in judged]

    async def _head(self, organization: str) -> Quota:
        head = await self.find(organization)
        if head is not None:
            return head
        owner = await self._store.get(Organization, organization)
        metadata = Metadata(
            name=organization,
            labels={labels.ORGANIZATION: organization},
            owner_references=(ORGANIZATION.owner(owner),),
            finalizers=(KEEPS_LEDGER,),
        )
        with suppress(AlreadyExists):
            try:
                return await self._store.create(Quota(metadata=metadata))
            except OwnerRejected:
                raise OrganizationGoes(organization) from None
        return await self._store.get(Quota, organization)


def _tell(batch: Sequence[_Wish], outcomes: Sequence[Any]) -> None:
    for wish, outcome in zip(batch, outcomes, strict=True):
        wish.tell(outcome)


def _drawn(line: deque[_Wish]) -> list[_Wish]:
    """Take the next batch from a line: the first who stand there, and of several about the same row the first."""
    drawn: dict[str, _Wish] = {}
    left: list[_Wish] = []
    while line and len(drawn) < _MOST:
        wish = line.popleft()
        if wish.about in drawn:
            left.append(wish)
        else:
            drawn[wish.about] = wish
    line.extendleft(reversed(left))
    return list(drawn.values())


class Closing:
    """Closes projects."""

    def __init__(self, store: Store, heads: Combiner) -> None:
        self._store, self._heads = store, heads

    async def close(self, organization: str, project: str) -> bool:
        """Let nothing be held in a project any more; tell whether that is so, because nothing is. Repeat it at will."""

        async def judge(_: Quota) -> tuple[Apply, None]:
            if (await self._store.list_names(Allocation, index=("living", project), limit=1)).items:
                raise Conflict("Project", project)
            return lambda spec: closed(spec, project), None

        try:
            await self._heads.write(organization, judge, about=project)
        except Conflict:
            return False
        except (NotFound, OwnerRejected):  # there is no head, and none can come: the organization goes
            return True
        return True
