"""Identity as region sees it, in memory: projects with their references, and a ledger with limits.

It is outside our store, so it outlives a crash of ours. Whatever it is asked may be repeated, as with the real one, and
may be made to fail: before the effect, or after it, as when an answer is lost::

    identity = MemoryIdentity({Place(ORG, PROJECT)}, limits={"networks": 2})
    identity.fail("allocate")                    # the next call raises Unavailable, and does nothing
    identity.fail("add_reference", times=2, after=True)  # the next two do what they should, and raise all the same
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, replace

from remuda.access.principal import Principal
from remuda.kernel.errors import AlreadyExists, Forbidden, Malformed, NotFound, RemudaError, Unavailable
from remuda.quota.lock import FENCING_TOKEN, LOCK
from remuda.quota.ports import Charge, ProjectRef, ProjectState, StaleTokenError
from remuda.store.objects import Resource

__all__ = ["MemoryIdentity", "said_of"]


@dataclass
class _Trouble:
    times: int
    after: bool
    error: RemudaError


class MemoryIdentity:
    """An `IdentityPort`, and what a test may look at or change behind its back."""

    def __init__(self, places: Iterable[ProjectRef] = (), *, limits: Mapping[str, int] | None = None) -> None:
        self.places = set(places)
        self.marked: set[ProjectRef] = set()
        """The projects that are being deleted."""
        self.references: dict[ProjectRef, set[str]] = defaultdict(set)
        self.held: dict[tuple[ProjectRef, str], Charge] = {}
        """What is held, by who pays and the operation that took it."""
        self.confirmed: set[tuple[ProjectRef, str]] = set()
        self.ended: dict[tuple[ProjectRef, str], int] = {}
        """The last turn of what is gone for good."""
        self.payers: list[Principal | None] = []
        """Who asked for each allocation."""
        self.asked: list[str] = []
        """Every call there was, by its name."""
        self.limits = dict(limits or {})
        self._trouble: dict[str, _Trouble] = {}
        self._news: set[asyncio.Queue[ProjectState]] = set()

    # What tests say and see.

    def fail(self, verb: str, *, times: int = 1, after: bool = False, error: RemudaError | None = None) -> None:
        """Let the next calls fail."""
        self._trouble[verb] = _Trouble(times, after, error or Unavailable("Identity does not answer: try again."))

    def add(self, payer: ProjectRef) -> None:
        """Have a project."""
        self.places.add(payer)
        self._tell(payer)

    def mark(self, payer: ProjectRef) -> None:
        """Begin to delete a project; it goes when nothing refers to it."""
        self.marked.add(payer)
        self._tell(payer)
        self._release(payer)

    def lapse(self, operation: str) -> None:
        """Hold no longer what nobody has confirmed in time."""
        for key in [key for key in self.held if key[1] == operation and key not in self.confirmed]:
            del self.held[key]

    def total(self, kind: str, payer: ProjectRef) -> int:
        """Return how much of a kind somebody holds."""
        charges = [charge for (place, _), charge in self.held.items() if place == payer]
        return sum(amount.committed for charge in charges for amount in charge.amounts if amount.kind == kind)

    def everything(self) -> object:
        """Return all that region has left here, as a value; in which turn that was tells two equal runs apart."""
        references = {place: frozenset(each) for place, each in self.references.items() if each}
        held = {key: replace(charge, fencing_token=0) for key, charge in self.held.items()}
        return references, held, frozenset(self.confirmed)

    # What region asks.

    async def has_project(self, organization: str, project: str) -> bool:
        """Tell whether an organization has a project."""
        self._begin("has_project")
        return ProjectRef(organization, project) in self.places

    async def add_reference(self, payer: ProjectRef, reference: str) -> None:
        """Keep a project from going."""
        self._begin("add_reference")
        if payer not in self.places:
            raise NotFound("Project", payer.project)
        if payer in self.marked:
            raise Malformed("unable to add reference, resource is being deleted")
        self.references[payer].add(reference)
        self._end("add_reference")

    async def remove_reference(self, payer: ProjectRef, reference: str) -> None:
        """Keep a project no longer."""
        self._begin("remove_reference")
        self.references[payer].discard(reference)
        self._release(payer)
        self._end("remove_reference")

    async def allocate(self, charge: Charge, payer: Principal | None = None) -> None:
        """Hold what something costs, unless another operation holds something for it."""
        self._begin("allocate")
        self.payers.append(payer)
        for (place, operation), held in self.held.items():
            is_same = (held.kind, held.id, place.organization) == (charge.kind, charge.id, charge.payer.organization)
            if is_same and operation != charge.operation:
                raise AlreadyExists("Allocation", charge.id)
        if charge.fencing_token <= self.ended.get(_key(charge), -1):
            raise StaleTokenError("Allocation", charge.operation)
        self._check(charge)
        self.held.setdefault(_key(charge), charge)
        self._end("allocate")

    async def confirm(self, charge: Charge) -> bool:
        """Say that it is there; tell whether what it costs is held."""
        self._begin("confirm")
        if _key(charge) not in self.held:
            return False
        self.confirmed.add(_key(charge))
        self._end("confirm")
        return True

    async def update(self, charge: Charge) -> None:
        """Hold what it costs now, or raise NotFound if nothing is held."""
        self._begin("update")
        if _key(charge) not in self.held:
            raise NotFound("Allocation", charge.operation)
        if charge.fencing_token < self.held[_key(charge)].fencing_token:
            raise StaleTokenError("Allocation", charge.operation)
        self._check(charge)
        self.held[_key(charge)] = charge
        self._end("update")

    async def release(self, charge: Charge) -> None:
        """Hold nothing any more."""
        self._begin("release")
        self._forget(charge)
        self._end("release")

    async def release_and_fence(self, charge: Charge) -> None:
        """Hold nothing any more, and nothing again with this token or an older one."""
        self._begin("release_and_fence")
        self.ended[_key(charge)] = charge.fencing_token
        self._forget(charge)
        self._end("release_and_fence")

    async def projects(self) -> AsyncGenerator[ProjectState]:
        """Yield every project there is, then each that changes."""
        news: asyncio.Queue[ProjectState] = asyncio.Queue()
        self._news.add(news)
        try:
            for place in sorted(self.places):
                yield self._seen(place)
            while True:
                yield await news.get()
        finally:
            self._news.discard(news)

    def _forget(self, charge: Charge) -> None:
        self.held.pop(_key(charge), None)
        self.confirmed.discard(_key(charge))

    def _check(self, charge: Charge) -> None:
        held = self.held.get(_key(charge))
        before = {amount.kind: amount.committed for amount in held.amounts} if held is not None else {}
        for amount in charge.amounts:
            total = self.total(amount.kind, charge.payer) - before.get(amount.kind, 0) + amount.committed
            limit = self.limits.get(amount.kind, total)
            if total > limit:
                raise Forbidden(f"total {amount.kind} allocation of {total} would exceed quota limit of {limit}")

    def _begin(self, verb: str) -> None:
        self.asked.append(verb)
        self._stumble(verb, after=False)

    def _end(self, verb: str) -> None:
        self._stumble(verb, after=True)

    def _stumble(self, verb: str, *, after: bool) -> None:
        trouble = self._trouble.get(verb)
        if trouble is not None and trouble.after is after and trouble.times > 0:
            trouble.times -= 1
            raise trouble.error

    def _release(self, payer: ProjectRef) -> None:
        if payer in self.marked and not self.references[payer]:
            self.places.discard(payer)
            self.marked.discard(payer)

    def _tell(self, payer: ProjectRef) -> None:
        for news in self._news:
            news.put_nowait(self._seen(payer))

    def _seen(self, payer: ProjectRef) -> ProjectState:
        return ProjectState(project=payer, is_deleting=payer in self.marked)


def _key(charge: Charge) -> tuple[ProjectRef, str]:
    return charge.payer, charge.operation


def said_of(resource: Resource) -> dict[str, str]:
    """Return an object's annotations, without those that tell two equal runs apart: in whose hand it was, how often."""
    return {key: said for key, said in resource.metadata.annotations.items() if key not in {LOCK, FENCING_TOKEN}}
