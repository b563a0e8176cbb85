"""Lifecycle: a reconciler for objects that have something at a provider, made of two functions.

One reconcile, in this order::

   not found                             nothing
   deleting, without our finalizer       nothing
   deleting, with deletion blockers      Blocked, with the blockers
   deleting                              deprovision; when that is Done, remove our finalizer
   paused                                nothing
   without our finalizer                 add it, before the first effect
   otherwise                             provision

Both functions are idempotent: the next reconcile finds, or repeats without harm, an effect whose result was not stored.
They do not wait until something at a provider is ready: they requeue. Their results become conditions (see `status`),
in at most one status write per reconcile, together with their own changes of the status and the timeline events they
return; nothing is written if nothing changed. An unexpected error is logged in full and reported to users only as such.
An error that a retry may cure says nothing about an object that is available, so its conditions stay as they are. Of an
object that users wait for, the second such error in a row is reported as the cause of the delay.
"""

from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Generic, Protocol

from msgspec.structs import replace

from remuda.kernel.errors import Conflict, NotFound, RemudaError, TimedOut
from remuda.kernel.time_limits import TimeLimits
from remuda.reconcile.controller import Controller
from remuda.reconcile.deletion_guard import DeletionGuard
from remuda.reconcile.event_recorder import EventRecorder
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.results import Blocked, Done, ReconcileContext, Result
from remuda.reconcile.sources import Source
from remuda.reconcile.status import (
    ERRORED,
    Conditions,
    changed_conditions,
    conditions_of,
    is_behind,
    report_due_in_s,
    retry_result,
    since,
    with_available,
    with_conditions,
    with_observed,
    with_stalled,
)
from remuda.store.contract import Store
from remuda.store.kinds import Kind
from remuda.store.logs import Record
from remuda.store.objects import FOREGROUND, HAS_CHILDREN, IN_USE, STORE_FINALIZERS, Resource, ResourceT

WaitsFor = Callable[[ResourceT], Awaitable[str]]
"""Describes, for humans, what an owner that is being deleted waits for."""

Describe = Callable[[Sequence[str]], str]
"""Describes, for humans, the referrers of an object, each given as `plural.group/name`."""

_NAMED = 5


def listed(blockers: Sequence[str]) -> str:
    """Return the referrers as they are given."""
    return ", ".join(blockers[:_NAMED]) + (" and more" if len(blockers) > _NAMED else "")


async def any_children(_: Resource) -> str:
    """Return a description that names no child."""
    return "waiting for its children to be deleted"


async def blocked_by_references(
    store: Store,
    resource: ResourceT,
    *,
    not_references: AbstractSet[str],
    waits_for: WaitsFor[ResourceT] = any_children,
    describe: Describe = listed,
) -> Blocked | None:
    """Return a result that names all finalizers except the given ones as deletion blockers, or None."""
    finalizers = resource.metadata.finalizers
    blockers = [each for each in finalizers if each not in not_references]
    if IN_USE in finalizers:
        found = await store.referrers(type(resource), resource.name, limit=_NAMED + 1)
        blockers += [f"{referrer.kind.qualified}/{referrer.name}" for referrer in found]
    if blockers or IN_USE in finalizers:
        return Blocked("InUse", f"in use by {describe(blockers) if blockers else 'others'}")
    if FOREGROUND in finalizers or HAS_CHILDREN in finalizers:
        return Blocked("HasChildren", await waits_for(resource))
    return None


FINALIZER_REMOVED = "FinalizerRemoved"
"""The last event of an incarnation, if there are no other finalizers. It contains the object's labels."""

PAUSED = "remuda/paused"
"""The annotation that, with the value `true`, pauses the provisioning of an object. It can still be deleted."""

_ROUNDING_S = 0.001


@dataclass(frozen=True, slots=True)
class Outcome(Generic[ResourceT]):
    """A result, the object with its new status, and events for its timeline."""

    result: Result
    resource: ResourceT
    effect_events: Sequence[Record] = ()
    """Events of effects: recorded with the write of the reconcile, or alone if there is none."""
    status_events: Sequence[Record] = ()
    """Events that the new status shows: recorded only with its write, or by the next reconcile."""


LifecycleResult = Result | Outcome[ResourceT]
"""The result of a reconcile, alone or with the object's new status and its events."""

ReconcileFunction = Callable[[ResourceT, ReconcileContext], Awaitable[LifecycleResult[ResourceT]]]
"""Provisions or deprovisions an object, and returns the result. It requeues what takes time at a provider."""


class LifecycleHooks(Protocol[ResourceT]):
    """Functions that run before an object is provisioned or deprovisioned, and after it was deprovisioned.

    Like the functions of a lifecycle, they are idempotent.
    """

    async def before_provision(
        self, resource: ResourceT, context: ReconcileContext
    ) -> LifecycleResult[ResourceT] | None:
        """Return the result of the reconcile if the object must not be provisioned yet."""

    async def before_deprovision(self, resource: ResourceT, context: ReconcileContext) -> Result | None:
        """Return the result of the reconcile if the object must not be deprovisioned yet."""

    async def after_deprovision(self, resource: ResourceT) -> None:
        """Release what the object holds elsewhere, before its finalizer is removed."""


def _provision_with(
    hooks: LifecycleHooks[ResourceT], provision: ReconcileFunction[ResourceT]
) -> ReconcileFunction[ResourceT]:
    async def reconcile(resource: ResourceT, context: ReconcileContext) -> LifecycleResult[ResourceT]:
        return await hooks.before_provision(resource, context) or await provision(resource, context)

    return reconcile


def _deprovision_with(
    hooks: LifecycleHooks[ResourceT], deprovision: ReconcileFunction[ResourceT]
) -> ReconcileFunction[ResourceT]:
    async def reconcile(resource: ResourceT, context: ReconcileContext) -> LifecycleResult[ResourceT]:
        waiting = await hooks.before_deprovision(resource, context)
        if waiting is not None:
            return waiting
        result = await deprovision(resource, context)
        if isinstance(result.result if isinstance(result, Outcome) else result, Done):
            await hooks.after_deprovision(resource)
        return result

    return reconcile


@dataclass(frozen=True, kw_only=True)
class LifecycleSettings:
    """Deadlines of a lifecycle."""

    deadline_s: float = 1800.0
    """Time after which an object that is not available, or not removed, is Stalled."""
    step_s: float = 45.0
    """Maximum duration of a step; less than that of a reconcile, which has to report the deadline."""


def is_paused(resource: Resource) -> bool:
    """Return whether provisioning is paused, by `spec.pause` or by the annotation."""
    spec = getattr(resource, "spec", None)
    return bool(getattr(spec, "pause", False)) or resource.metadata.annotations.get(PAUSED) == "true"


class Lifecycle(Generic[ResourceT]):
    """A reconciler: call it with a key and a context. The kind's status must have `conditions`, keyed by type."""

    def __init__(
        self,
        kind: type[ResourceT],
        *,
        provision: ReconcileFunction[ResourceT],
        deprovision: ReconcileFunction[ResourceT],
        finalizer: str,
        ports: ReconcilePorts,
        hooks: LifecycleHooks[ResourceT] | None = None,
        settings: LifecycleSettings | None = None,
        paused: Callable[[ResourceT], bool] = is_paused,
        unordered: Sequence[str] = (),
        waits_for: WaitsFor[ResourceT] = any_children,
        describe: Describe = listed,
    ) -> None:
        """Protect objects by `finalizer`. The `unordered` finalizers of other controllers do not block deletion."""
        _check_has_conditions(ports.store.registry.of(kind))
        self._kind = kind
        self._provision = provision if hooks is None else _provision_with(hooks, provision)
        self._deprovision = deprovision if hooks is None else _deprovision_with(hooks, deprovision)
        self._finalizer = finalizer
        self._store = ports.store
        self._clock = ports.clock
        self._log = ports.log
        self._recorder = EventRecorder(ports.log)
        self._settings = settings or LifecycleSettings()
        self._limits = TimeLimits(self._settings.step_s)
        self._deadline = timedelta(seconds=self._settings.deadline_s)
        self._is_paused = paused
        not_references = STORE_FINALIZERS | {finalizer, *unordered}
        self._find_blockers = partial(
            blocked_by_references, ports.store, not_references=not_references, waits_for=waits_for, describe=describe
        )

    async def __call__(self, key: str, context: ReconcileContext) -> Result:
        """Reconcile one object."""
        try:
            return await self._reconcile(await self._store.get(self._kind, key), context)
        except NotFound as error:
            if error.name != key:
                raise
            return Done()  # also if it was removed meanwhile, by another process whose leadership has ended

    async def _reconcile(self, resource: ResourceT, context: ReconcileContext) -> Result:
        if resource.is_deleting:
            return await self._delete(resource, context)
        if self._is_paused(resource):
            return Done()
        protected = await self._with_finalizer(resource, context)
        outcome = await self._attempt(self._provision, protected, context)
        return await self._report(protected, outcome, context)

    async def _with_finalizer(self, resource: ResourceT, context: ReconcileContext) -> ResourceT:
        finalizers = resource.metadata.finalizers
        if self._finalizer in finalizers:
            return resource
        desired = _with_finalizers(resource, (*finalizers, self._finalizer))
        log = [context.event(resource, "FinalizerAdded", finalizer=self._finalizer)]
        return await _unless_gone(self._store.update(desired, log=log))

    async def _delete(self, resource: ResourceT, context: ReconcileContext) -> Result:
        if self._finalizer not in resource.metadata.finalizers:
            return Done()
        blocked = await self._find_blockers(resource)
        if blocked is not None:
            return await self._report(resource, Outcome(blocked, resource), context)
        outcome = await self._attempt(self._deprovision, resource, context)
        if not isinstance(outcome.result, Done):
            return await self._report(resource, outcome, context)
        remaining = tuple(each for each in outcome.resource.metadata.finalizers if each != self._finalizer)
        # With the labels: later they alone say who owned the object, and so who may read its timeline.
        gone = context.event(resource, FINALIZER_REMOVED, finalizer=self._finalizer, labels=resource.metadata.labels)
        effects = self._recorder.unrecorded(resource.uid, outcome.effect_events)
        write = self._store.update(_with_finalizers(outcome.resource, remaining), log=[*effects, gone])
        await self._recorder.write_with(resource.uid, _unless_gone(write), effects)
        return outcome.result

    async def _attempt(
        self, function: ReconcileFunction[ResourceT], resource: ResourceT, context: ReconcileContext
    ) -> Outcome[ResourceT]:
        limit = self._limits.begin()
        try:
            with limit:
                result = await function(resource, context)
        except Exception as error:
            cause = TimedOut(self._limits.seconds) if limit.is_expired else error
            if isinstance(cause, NotFound) and await self._has_changed(resource):
                cause = Conflict(self._kind.__name__, resource.name)
            if isinstance(cause, RemudaError) and cause.retry:
                await self._record_delay(resource, cause, context)
                raise cause from None
            context.log.exception("step failed")
            result = ERRORED
        outcome = result if isinstance(result, Outcome) else Outcome(result, resource)
        if (outcome.effect_events or outcome.status_events) and self._log is None:
            raise TypeError("a step returned timeline events: ReconcilePorts needs a log to record them")
        return outcome

    async def _has_changed(self, resource: ResourceT) -> bool:
        """Return whether an object has changed since it was read: its references may be outdated then."""
        try:
            return (await self._store.get(self._kind, resource.name)).version != resource.version
        except NotFound:
            return True

    async def _record_delay(self, resource: ResourceT, cause: RemudaError, context: ReconcileContext) -> None:
        """Report the cause of a delay, or only the deadline while there is no need: see `_is_reported`."""
        if not isinstance(cause, Conflict) and self._is_reported(resource, context):
            await self._report(resource, Outcome(retry_result(cause), resource), context)
        else:
            await self._write(resource, resource, conditions_of(resource), context)

    def _is_reported(self, resource: ResourceT, context: ReconcileContext) -> bool:
        """Return whether a delay is reported.

        For a new generation it is reported at once, since it starts the deadline. Otherwise it is reported from the
        second failed attempt in a row on, and at the deadline: most delays end with the first retry. Nothing is
        reported about an object that is as desired.
        """
        conditions = conditions_of(resource)
        if is_behind(resource, conditions):
            return True
        waited_since = since(resource, conditions)
        return waited_since is not None and (context.failures > 0 or self._clock.now() >= waited_since + self._deadline)

    async def _report(self, read: ResourceT, outcome: Outcome[ResourceT], context: ReconcileContext) -> Result:
        """Write the conditions of a result, if they have changed."""
        left_s = report_due_in_s(read, outcome.result, now=self._clock.now())
        if left_s > 0:
            context.requeue_after(left_s)
            await self._write(read, outcome.resource, conditions_of(outcome.resource), context, outcome)
            return outcome.result
        conditions = with_available(read, conditions_of(outcome.resource), outcome.result, now=self._clock.now())
        desired = with_observed(outcome.resource, read.metadata.generation)
        await self._write(read, desired, conditions, context, outcome)
        return outcome.result

    async def _write(
        self,
        read: ResourceT,
        desired: ResourceT,
        conditions: Conditions,
        context: ReconcileContext,
        outcome: Outcome[ResourceT] | None = None,
    ) -> None:
        """Write a status with these conditions, and the condition of the deadline."""
        now, waited_since = self._clock.now(), since(read, conditions)
        conditions = with_stalled(read, conditions, deadline=self._deadline, now=now)
        if waited_since is not None and now < waited_since + self._deadline:
            context.requeue_after((waited_since + self._deadline - now).total_seconds() + _ROUNDING_S)
        desired = with_conditions(desired, conditions)
        effects = self._recorder.unrecorded(read.uid, () if outcome is None else outcome.effect_events)
        if _status(desired) == _status(read):
            await self._recorder.append(read.uid, effects)
            return
        context.acted = True
        status_events = () if outcome is None else outcome.status_events
        changes = changed_conditions(conditions_of(read), conditions)
        facts = [{"type": c.type, "status": c.status, "reason": c.reason, "message": c.message} for c in changes]
        for fact in facts:
            context.log.info("condition", generation=read.metadata.generation, **fact)
        log = [*effects, *status_events, *(context.event(read, "ConditionChanged", **fact) for fact in facts)]
        write = self._store.update_status(desired, log=log)
        await self._recorder.write_with(read.uid, _unless_gone(write), effects)


def lifecycle_controller(
    name: str,
    kind: type[ResourceT],
    *,
    provision: ReconcileFunction[ResourceT],
    deprovision: ReconcileFunction[ResourceT],
    finalizer: str,
    ports: ReconcilePorts,
    sources: Sequence[Source[Any]] = (),
    hooks: LifecycleHooks[ResourceT] | None = None,
    guards: Sequence[DeletionGuard] = (),
    settings: ControllerSettings | None = None,
    lifecycle_settings: LifecycleSettings | None = None,
    waits_for: WaitsFor[ResourceT] = any_children,
    describe: Describe = listed,
    created_delay_s: Callable[[ResourceT], float] = lambda _: 0.0,
) -> Controller:
    """Return a controller with a lifecycle. It watches objects of its kind, and `sources` beside them."""
    lifecycle = Lifecycle(
        kind,
        provision=provision,
        deprovision=deprovision,
        finalizer=finalizer,
        ports=ports,
        hooks=hooks,
        settings=lifecycle_settings,
        waits_for=waits_for,
        describe=describe,
    )
    own = Source(kind, created_delay_s=created_delay_s)
    return Controller(
        name, lifecycle, kind=kind, ports=ports, sources=(own, *sources), guards=guards, settings=settings
    )


async def _unless_gone(write: Awaitable[ResourceT]) -> ResourceT:
    """Write, and turn NotFound into Conflict: the object was removed, so the next reconcile reads it again."""
    try:
        return await write
    except NotFound as error:
        raise Conflict(error.kind, error.name) from None


def _check_has_conditions(kind: Kind[ResourceT]) -> None:
    if not hasattr(kind.blank_status, "conditions"):
        raise TypeError(f"the status of {kind.name} needs conditions, keyed by type, because a lifecycle writes them")


def _with_finalizers(resource: ResourceT, finalizers: tuple[str, ...]) -> ResourceT:
    return replace(resource, metadata=replace(resource.metadata, finalizers=finalizers))


def _status(resource: Resource) -> object:
    return getattr(resource, "status", None)
