"""The life of an object that has something at a provider, made of two functions: provision and deprovision.

One pass, in this order::

    gone                        nothing
    marked, not held by us      nothing
    marked, others hold it      Blocked, with who holds it
    marked                      deprovision; when that is Done, let go of it
    paused                      nothing
    not held by us              hold it, before the first effect
    otherwise                   provision

Both functions are idempotent, do at most one effect, and wait for nothing. What they say becomes conditions (see
`status`), in at most one status write per pass, together with whatever they changed in the status themselves and the
timeline entries they return; nothing is written if nothing changed. An error nobody thought of is told in full in the
log and to the world only as such. An error that a retry may cure says nothing about the object, so the conditions stay
as they are, but for the deadline; only what was said of another generation is over, for from now on it may stall.

Who keeps a marked object from going: what refers to it from outside or inside the store, or what it owns.

Telling timelines of effects exactly once, also where the write that should have told of them fails.

What a pass did took place whether or not its write succeeds, so a failed write is followed by telling of it alone. The
next pass may come to the same effect once more, because what it read was old: that is known here, and not told again.
A write whose answer is lost may have been made; then what it told is in the timeline, and is looked for there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Generic

import msgspec
from msgspec.structs import replace

from remuda.kernel.errors import Conflict, NotFound, RemudaError, TimedOut
from remuda.reconcile.ports import ReconcilePorts
from remuda.reconcile.results import Again, Blocked, Done, Result, Run
from remuda.reconcile.status import (
    ERRORED,
    Conditions,
    changed_conditions,
    conditions_of,
    is_behind,
    patience_left_s,
    since,
    with_available,
    with_conditions,
    with_observed,
    with_stalled,
)
from remuda.store.contract import Store
from remuda.store.kinds import Kind
from remuda.store.logs import Log, Record
from remuda.store.objects import FOREGROUND, HAS_CHILDREN, IN_USE, OURS, Resource, ResourceT

WaitsFor = Callable[[ResourceT], Awaitable[str]]
"""Says, for people, what a marked owner waits for while something of its own is still there."""

InWords = Callable[[Sequence[str]], str]
"""Says, for people, what those are that refer to an object, each of them as `plural.group/name`."""

_NAMED = 5


def as_written(holders: Sequence[str]) -> str:
    """Name those who refer to an object as they are written there."""
    return ", ".join(holders[:_NAMED]) + (" and more" if len(holders) > _NAMED else "")


async def its_children(_: Resource) -> str:
    """Say no more than that something is there."""
    return "waiting for what it owns to go"


async def blocked_by_holders(
    store: Store,
    resource: ResourceT,
    *,
    no_references: AbstractSet[str],
    waits_for: WaitsFor[ResourceT] = its_children,
    in_words: InWords = as_written,
) -> Blocked | None:
    """Return what to say of an object that others keep; all its finalizers are references but for those named."""
    finalizers = resource.metadata.finalizers
    holders = [each for each in finalizers if each not in no_references]
    if IN_USE in finalizers:
        found = await store.referrers(type(resource), resource.name, limit=_NAMED + 1)
        holders += [f"{referrer.kind.qualified}/{referrer.name}" for referrer in found]
    if holders or IN_USE in finalizers:
        return Blocked("InUse", f"in use by {in_words(holders) if holders else 'others'}")
    if FOREGROUND in finalizers or HAS_CHILDREN in finalizers:
        return Blocked("HasChildren", await waits_for(resource))
    return None


_RECENT = 50
_OF_THE_PASS = ("reconcileId", "cause")


class Retelling:
    """Knows what was told without a write, by the uid of its object, until the next write of that one."""

    def __init__(self, log: Log | None) -> None:
        self._log = log
        self._told: dict[str, list[tuple[str, bytes]]] = {}

    def untold(self, uid: str, effects: Sequence[Record]) -> list[Record]:
        """Return the effects that were not told before."""
        told = self._told.get(uid)
        return [*effects] if told is None else [each for each in effects if _what(each) not in told]

    async def alone(self, uid: str, effects: Sequence[Record]) -> None:
        """Tell of effects where there is nothing to write."""
        if effects and self._log is not None:
            await self._log.append(effects)
        self._told.pop(uid, None)

    async def with_write(self, uid: str, write: Awaitable[object], effects: Sequence[Record]) -> None:
        """Write, which tells of these effects; if that fails they still took place, and are told all the same."""
        try:
            await write
        except RemudaError:
            await self._tell_of(uid, effects)
            raise
        self._told.pop(uid, None)

    async def _tell_of(self, uid: str, effects: Sequence[Record]) -> None:
        if not effects or self._log is None:
            return
        missing = [each for each in effects if not await _is_there(self._log, each)]
        if missing:
            await self._log.append(missing)
        self._told.setdefault(uid, []).extend(map(_what, effects))


async def _is_there(log: Log, record: Record) -> bool:
    """Tell whether a record was kept by the write whose answer was lost. A pass tells nothing twice by itself."""
    page = await log.read_back(record.stream, record.subject, limit=_RECENT)
    return any(bytes(entry.data) == bytes(record.data) for entry in page.entries)


def _what(record: Record) -> tuple[str, bytes]:
    """Return what an entry tells, whichever pass does."""
    said = msgspec.json.decode(record.data, type=dict[str, msgspec.Raw])
    kept = {name: value for name, value in said.items() if name not in _OF_THE_PASS}
    return record.subject, msgspec.json.encode(kept, order="deterministic")


LET_GO = "LetGo"
"""The event with which the life of an incarnation ends, if nobody else holds it: it tells what labels that one had."""

PAUSED = "remuda/paused"
"""The annotation that, as `true`, keeps controllers from provisioning an object. It can still be deleted."""

_TRIED_AGAIN = Again(0, message="it could not be done yet and is tried again")
_ROUNDING_S = 0.001


@dataclass(frozen=True, slots=True)
class Outcome(Generic[ResourceT]):
    """A result, the object with the status fields that the step wants written, and what to tell in its timeline."""

    result: Result
    resource: ResourceT
    entries: Sequence[Record] = ()
    """Effects, as `run.entry` made them: told with the write of the pass, or by themselves if it writes nothing."""
    news: Sequence[Record] = ()
    """What the new status shows: told with its write or not at all, since a pass whose write fails finds it again."""


Step = Callable[[ResourceT, Run], Awaitable[Result | Outcome[ResourceT]]]
"""Provisions or deprovisions: at most one effect, then what came of it."""


@dataclass(frozen=True, kw_only=True)
class LifecycleSettings:
    """What an operator may set."""

    deadline_s: float = 1800.0
    """By when an object should be available, or gone: after that it is Stalled."""
    step_s: float = 45.0
    """How long a step may take; less than a pass may, which has to say so if the deadline is over."""


def is_paused(resource: Resource) -> bool:
    """Tell whether provisioning is to leave an object alone: by `spec.pause`, or by the annotation."""
    spec = getattr(resource, "spec", None)
    return bool(getattr(spec, "pause", False)) or resource.metadata.annotations.get(PAUSED) == "true"


class Lifecycle(Generic[ResourceT]):
    """A reconciler: call it with a key and a run. The kind's status must have `conditions`, keyed by type."""

    def __init__(
        self,
        kind: type[ResourceT],
        *,
        provision: Step[ResourceT],
        deprovision: Step[ResourceT],
        finalizer: str,
        ports: ReconcilePorts,
        settings: LifecycleSettings | None = None,
        paused: Callable[[ResourceT], bool] = is_paused,
        unordered: Sequence[str] = (),
        waits_for: WaitsFor[ResourceT] = its_children,
        in_words: InWords = as_written,
    ) -> None:
        """Hold objects by `finalizer`. Those named `unordered` are other controllers' own, which wait for nobody."""
        _check_has_conditions(ports.store.registry.of(kind))
        self._kind = kind
        self._provision = provision
        self._deprovision = deprovision
        self._finalizer = finalizer
        self._store = ports.store
        self._clock = ports.clock
        self._log = ports.log
        self._retelling = Retelling(ports.log)
        self._settings = settings or LifecycleSettings()
        self._deadline = timedelta(seconds=self._settings.deadline_s)
        self._is_paused = paused
        no_references = OURS | {finalizer, *unordered}
        self._holders = partial(
            blocked_by_holders, ports.store, no_references=no_references, waits_for=waits_for, in_words=in_words
        )

    async def __call__(self, key: str, run: Run) -> Result:
        """Look after one object."""
        try:
            return await self._look_after(await self._store.get(self._kind, key), run)
        except NotFound as error:
            if error.name != key:
                raise
            return Done()  # or it went meanwhile: another process that believes to lead was faster

    async def _look_after(self, resource: ResourceT, run: Run) -> Result:
        if resource.is_marked:
            return await self._let_go(resource, run)
        if self._is_paused(resource):
            return Done()
        held = await self._held(resource, run)
        outcome = await self._attempt(self._provision, held, run)
        return await self._tell(held, outcome, run)

    async def _held(self, resource: ResourceT, run: Run) -> ResourceT:
        finalizers = resource.metadata.finalizers
        if self._finalizer in finalizers:
            return resource
        wanted = _held_by(resource, (*finalizers, self._finalizer))
        log = [run.entry(resource, "Held", finalizer=self._finalizer)]
        return await _unless_gone(self._store.update(wanted, log=log))

    async def _let_go(self, resource: ResourceT, run: Run) -> Result:
        if self._finalizer not in resource.metadata.finalizers:
            return Done()
        blocked = await self._holders(resource)
        if blocked is not None:
            return await self._tell(resource, Outcome(blocked, resource), run)
        outcome = await self._attempt(self._deprovision, resource, run)
        if not isinstance(outcome.result, Done):
            return await self._tell(resource, outcome, run)
        left = tuple(each for each in outcome.resource.metadata.finalizers if each != self._finalizer)
        # With the labels, since nothing else tells later to whom the object belonged, and so who may know what it was.
        gone = run.entry(resource, LET_GO, finalizer=self._finalizer, labels=resource.metadata.labels)
        effects = self._retelling.untold(resource.uid, outcome.entries)
        write = self._store.update(_held_by(outcome.resource, left), log=[*effects, gone])
        await self._retelling.with_write(resource.uid, _unless_gone(write), effects)
        return outcome.result

    async def _attempt(self, step: Step[ResourceT], resource: ResourceT, run: Run) -> Outcome[ResourceT]:
        timer = asyncio.timeout(self._settings.step_s)
        try:
            async with timer:
                said = await step(resource, run)
        except Exception as error:
            cause = TimedOut(self._settings.step_s) if timer.expired() else error
            if isinstance(cause, NotFound) and await self._has_changed(resource):
                cause = Conflict(self._kind.__name__, resource.name)
            if isinstance(cause, RemudaError) and cause.retry:
                await self._put_off(resource, cause, run)
                raise cause from None
            run.log.exception("step failed")
            said = ERRORED
        outcome = said if isinstance(said, Outcome) else Outcome(said, resource)
        if (outcome.entries or outcome.news) and self._log is None:
            raise TypeError("a step returned timeline entries: give ReconcilePorts a log to keep them in any case")
        return outcome

    async def _has_changed(self, resource: ResourceT) -> bool:
        """Tell whether an object is not what it was when it was read: what it named then may have gone with that."""
        try:
            return (await self._store.get(self._kind, resource.name)).version != resource.version
        except NotFound:
            return True

    async def _put_off(self, resource: ResourceT, cause: RemudaError, run: Run) -> None:
        """Let the clock of a new generation begin; a Conflict is no trouble, and comes again at once."""
        conditions = conditions_of(resource)
        if is_behind(resource, conditions) and not isinstance(cause, Conflict):
            await self._tell(resource, Outcome(_TRIED_AGAIN, resource), run)
        else:
            await self._write(resource, resource, conditions, run)

    async def _tell(self, read: ResourceT, outcome: Outcome[ResourceT], run: Run) -> Result:
        """Write what has changed, if anything."""
        left_s = patience_left_s(read, outcome.result, now=self._clock.now())
        if left_s > 0:
            run.wake_after(left_s)
            await self._write(read, outcome.resource, conditions_of(outcome.resource), run, outcome)
            return outcome.result
        conditions = with_available(
            conditions_of(outcome.resource),
            outcome.result,
            is_marked=read.is_marked,
            generation=read.metadata.generation,
            now=self._clock.now(),
        )
        wanted = with_observed(outcome.resource, read.metadata.generation)
        await self._write(read, wanted, conditions, run, outcome)
        return outcome.result

    async def _write(
        self,
        read: ResourceT,
        wanted: ResourceT,
        conditions: Conditions,
        run: Run,
        outcome: Outcome[ResourceT] | None = None,
    ) -> None:
        """Write a status with these conditions, and what the deadline adds to them, over that which was read."""
        now, waited_since = self._clock.now(), since(read, conditions)
        conditions = with_stalled(read, conditions, deadline=self._deadline, now=now)
        if waited_since is not None and now < waited_since + self._deadline:
            run.wake_after((waited_since + self._deadline - now).total_seconds() + _ROUNDING_S)
        wanted = with_conditions(wanted, conditions)
        effects = self._retelling.untold(read.uid, () if outcome is None else outcome.entries)
        if _status(wanted) == _status(read):
            await self._retelling.alone(read.uid, effects)
            return
        run.acted = True
        news = () if outcome is None else outcome.news
        changes = changed_conditions(conditions_of(read), conditions)
        facts = [{"type": c.type, "status": c.status, "reason": c.reason, "message": c.message} for c in changes]
        for fact in facts:
            run.log.info("condition", generation=read.metadata.generation, **fact)
        log = [*effects, *news, *(run.entry(read, "ConditionChanged", **fact) for fact in facts)]
        write = self._store.update_status(wanted, log=log)
        await self._retelling.with_write(read.uid, _unless_gone(write), effects)


async def _unless_gone(write: Awaitable[ResourceT]) -> ResourceT:
    """Write; if the object has gone meanwhile, that is a change like any other: read again, and be done."""
    try:
        return await write
    except NotFound as error:
        raise Conflict(error.kind, error.name) from None


def _check_has_conditions(kind: Kind[ResourceT]) -> None:
    if not hasattr(kind.blank_status, "conditions"):
        raise TypeError(f"the status of {kind.name} needs conditions, keyed by type: a lifecycle writes them")


def _held_by(resource: ResourceT, finalizers: tuple[str, ...]) -> ResourceT:
    return replace(resource, metadata=replace(resource.metadata, finalizers=finalizers))


def _status(resource: Resource) -> object:
    return getattr(resource, "status", None)
