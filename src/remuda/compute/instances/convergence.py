"""Convergence of a server with its instance: create it, change it, replace it, and project its state.

The specification that was last requested is compared with the desired one, never with the observed state; plans use the
same comparison. One request is sent per reconcile, and every request can be repeated: an update has the whole desired
specification, and a replacement has an id derived from its cause. Each request names the revision of the server that it
is based on, so a controller that acts on an outdated instance is rejected.

A server is created after the quota is confirmed and servers of a previous incarnation are removed. A server that has
disappeared is created again after its absence is confirmed, while its network exists.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from remuda.access.principal import Context
from remuda.compute.instances.rules import (
    charge_of,
    desired_server,
    incarnation_of,
    is_requested,
    last_requested,
    message_of,
    needs_rebuild,
    reason_of,
)
from remuda.compute.instances.server_lookup import list_tagged
from remuda.compute.instances.status import (
    REBUILD_MESSAGES,
    REPORT_AFTER,
    RebuildKind,
    can_rebuild,
    changed_addresses,
    current_rebuild,
    is_being_changed,
    is_in_progress,
    is_rebuilding,
    is_unreported,
    projected,
    rebuild_kind,
    with_rebuild_ended,
    with_rebuilding,
)
from remuda.compute.kinds import AppliedSpec, ComputeInstance
from remuda.compute.plans.diff import changed_fields, required_steps, with_fields
from remuda.compute.plans.fields import Field, StepKind
from remuda.compute.ports import RegionClient, is_deleting
from remuda.kernel.clock import Clock
from remuda.kernel.errors import (
    AlreadyExists,
    Conflict,
    InsufficientCapacity,
    Invalid,
    NotFound,
    OwnerRejected,
    PreconditionFailed,
    ReferenceRejected,
    RemudaError,
    ResponseNotStored,
    Unavailable,
)
from remuda.kernel.fields import common_fields, conversion
from remuda.kernel.ids import derived_id
from remuda.providers.absence import AbsenceTracker
from remuda.quota.lifecycle import confirm_quota, is_quota_confirmed, payer_of, with_quota_confirmed
from remuda.quota.ports import QuotaLedger
from remuda.reconcile.deletion_guard import DeletionGuard
from remuda.reconcile.lifecycle import LifecycleResult, Outcome
from remuda.reconcile.ports import ReconcilePorts
from remuda.reconcile.results import Blocked, Done, ReconcileContext, Requeue, Result
from remuda.region.servers.schema import (
    ReplaceWrite,
    ServerCreate,
    ServerCreateSpec,
    ServerRead,
    ServerSpecWire,
    ServerUpdate,
)
from remuda.resources.conventions import PAYING_CREATOR, network_of
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.logs import Record

_updated = conversion(ServerCreateSpec, ServerSpecWire)
_replaced = conversion(ServerCreateSpec, ReplaceWrite)
_replaced_from = common_fields(ServerCreateSpec, AppliedSpec)

REJECTION_REASONS = frozenset({"NoCapacity", "DependencyNotFound", "Errored"})
"""The reasons with which region rejects a request, as `rejection_of` returns them."""

_NO_CAPACITY = (
    "the region has no capacity for the new flavor now: the server keeps running, and is replaced when there is "
    "capacity; to cancel, set the old flavor again"
)


@dataclass(frozen=True, slots=True)
class RequestedChange:
    """A change that was requested, and the server since then."""

    server: ServerRead
    fields: tuple[Field, ...]
    """The changed fields; none if a rejected change is reverted."""
    rebuild: RebuildKind | None = None


@dataclass(frozen=True, slots=True)
class ServerChanges:
    """Changes and replacements of servers."""

    region: RegionClient
    _rejections: dict[str, int] = field(default_factory=dict)
    """The number of rejected replacements, by the uid of the instance. A request after a rejection has another id."""

    async def converge(self, instance: ComputeInstance, server: ServerRead) -> RequestedChange | None:
        """Request the next step towards the desired server; return None if it was requested before."""
        desired, requested = desired_server(instance), last_requested(server)
        if not changed_fields(requested, desired):
            return None
        steps = dict(required_steps(requested, desired, can_rebuild=can_rebuild(server)))
        if "replace" not in steps:
            return await self._change(instance, server, desired, steps)
        if "in-place" in steps:
            in_place = with_fields(desired, requested, steps["replace"])
            return await self._change(instance, server, in_place, {"in-place": steps["in-place"]})
        return await self._replace(instance, server, steps["replace"])

    def forget(self, instance: ComputeInstance) -> None:
        self._rejections.pop(instance.uid, None)

    async def _change(
        self,
        instance: ComputeInstance,
        server: ServerRead,
        desired: ServerCreate,
        steps: dict[StepKind, tuple[Field, ...]],
    ) -> RequestedChange:
        context, body = await self._context(instance), server_update(desired)
        try:
            changed = await self.region.api.update_server(
                context, server.metadata.id, body, revision=server.status.revision
            )
        except PreconditionFailed:
            raise Conflict("Server", server.metadata.id) from None  # another controller sent a request, maybe later
        fields = tuple(each for step in steps.values() for each in step)
        if changed_fields(last_requested(changed), desired):  # otherwise it would be requested again and again
            problem = "was sent to region, which stores another value. This is a defect of the platform"
            raise Invalid(", ".join(fields), problem, remedy="contact the operator")
        return RequestedChange(changed, fields, "Rebuilding" if "rebuild" in steps else None)

    async def _replace(
        self, instance: ComputeInstance, server: ServerRead, fields: tuple[Field, ...]
    ) -> RequestedChange:
        rejections, spec = self._rejections.get(instance.uid, 0), desired_server(instance).spec
        context = await self._context(instance, replacement_id(instance, server, rejections))
        try:
            replaced = await self.region.api.replace_server(
                context, server.metadata.id, _replaced(spec), revision=server.status.revision
            )
        except PreconditionFailed:
            raise Conflict("Server", server.metadata.id) from None  # another controller sent a request
        except ResponseNotStored:
            raise Unavailable("The replacement was requested before and is not visible yet. Try again.") from None
        except RemudaError as error:
            if not error.retry:
                self._rejections[instance.uid] = rejections + 1
            raise
        self._rejections.pop(instance.uid, None)
        if replaced.status.replacements < server.status.replacements:
            return RequestedChange(replaced, ())
        return RequestedChange(replaced, fields, "Replacing")

    async def _context(self, instance: ComputeInstance, operation: str | None = None) -> Context:
        return await writing_for(self.region, instance, operation)


async def writing_for(region: RegionClient, instance: ComputeInstance, operation: str | None = None) -> Context:
    """Return the context of a write to the server of an instance, which is carried out once for an operation."""
    payer, actor = payer_of(instance), instance.metadata.annotations.get(PAYING_CREATOR, "")
    return await region.caller.as_service(payer.organization, payer.project, actor=actor, operation=operation)


def replacement_id(instance: ComputeInstance, server: ServerRead, rejections: int) -> str:
    """Return the operation of a replacement: the same for the same change, and another one after each rejection."""
    before = "/".join(str(value or "") for value in _replaced_from(last_requested(server).spec).values())
    return derived_id(instance.uid, f"replace/{instance.metadata.generation}/{before}/{rejections}")


def server_update(desired: ServerCreate) -> ServerUpdate:
    """Return the update of an existing server, which leaves out what can only be set by a create or replacement."""
    return ServerUpdate(metadata=desired.metadata, spec=_updated(desired.spec))


def rejection_of(error: RemudaError) -> Blocked:
    """Return the result for a request that region rejects."""
    if isinstance(error, InsufficientCapacity):
        return Blocked("NoCapacity", _NO_CAPACITY)
    is_missing = isinstance(error, NotFound | ReferenceRejected | OwnerRejected)
    return Blocked("DependencyNotFound" if is_missing else "Errored", error.message.rstrip("."))


POLL_S = 10.0
"""The delay before region is polled, in case the watch of servers has missed a change."""

InstanceResult = LifecycleResult[ComputeInstance]

_CREATING = Requeue(POLL_S, message="the server is being created", report_after_s=REPORT_AFTER.total_seconds())


def cleanup_guard(ports: ReconcilePorts) -> DeletionGuard:
    return DeletionGuard("previous-servers", ComputeInstance, ports=ports)


def recreated_event(instance: ComputeInstance, context: ReconcileContext, reason: str) -> Record:
    """Return the event of a server that is created again, from its image and running."""
    return context.event(instance, "ServerRecreated", reason=reason, lost="disk", was=instance.status.power_state)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCreation:
    """Creates servers."""

    store: Store
    ledger: QuotaLedger
    region: RegionClient
    absence: AbsenceTracker
    guard: DeletionGuard
    _pending: set[str] = field(default_factory=set)
    """The uids of instances whose create request has no response: the server may yet appear."""
    _requested: set[str] = field(default_factory=set)
    """The uids of new instances whose server was requested: now it has to be looked for."""

    async def remove_previous(
        self, instance: ComputeInstance, servers: Sequence[ServerRead], context: ReconcileContext
    ) -> InstanceResult:
        """Delete servers of a previous incarnation, which have the id of the server to create."""
        waiting = Requeue(POLL_S, "ServerDeleting", "the server of an earlier instance of this name is being deleted")
        active = [each for each in servers if not is_deleting(each)]
        if not active:
            return waiting
        stopped = await self.guard.admit_deletion(instance, context)
        if stopped is not None:
            return stopped
        for server in active:
            await self.region.delete_server(server.metadata.id, payer_of(instance))
        entries = [
            context.event(instance, "PreviousServerDeleted", server=each.metadata.id, of=incarnation_of(each))
            for each in active
        ]
        return Outcome(waiting, instance, entries)

    async def create(self, instance: ComputeInstance, context: ReconcileContext) -> InstanceResult:
        """Create the server of an instance for which none was found."""
        waiting = await self._blocker(instance) or await confirm_quota(self.ledger, charge_of(instance))
        if waiting is not None:
            return waiting
        await self._check_exists(instance)
        context.acted = True
        try:
            await self._request(instance, context)
        except AlreadyExists:
            return await self._name_conflict(instance)
        except RemudaError as error:
            if error.retry:
                raise
            self._pending.discard(instance.uid)
            return rejection_of(error)
        self.clear_pending(instance)
        if not instance.status.has_server:
            return _CREATING
        reason = "the server disappeared without a request"
        return Outcome(_CREATING, instance, [recreated_event(instance, context, reason)])

    async def create_new(self, instance: ComputeInstance, context: ReconcileContext) -> InstanceResult | None:
        """Create the server of a new instance, before anything is read.

        Region itself checks network and name. Return None if it rejects the server: then what exists has to be read.
        """
        waiting = await confirm_quota(self.ledger, charge_of(instance))
        if waiting is not None:
            return waiting
        await self._check_exists(instance)
        context.acted = True
        self._requested.add(instance.uid)
        try:
            await self._request(instance, context)
        except RemudaError as error:
            if error.retry:
                raise
            self._pending.discard(instance.uid)
            return None
        self.clear_pending(instance)
        return _CREATING

    def clear_pending(self, instance: ComputeInstance) -> None:
        """Record that the response to the create request is known."""
        self._pending.discard(instance.uid)
        self.absence.clear(instance.uid)

    def was_requested(self, instance: ComputeInstance) -> bool:
        """Return whether this process has requested the server of a new instance."""
        return instance.uid in self._requested

    def forget_request(self, instance: ComputeInstance) -> None:
        """Record that an instance is not new any more."""
        self._requested.discard(instance.uid)

    def is_pending(self, instance: ComputeInstance) -> bool:
        """Return whether a create request has no response, so that the server may yet appear."""
        return instance.uid in self._pending

    async def _blocker(self, instance: ComputeInstance) -> Result | None:
        """Return the reason why no server is created, or not yet."""
        network = await self.region.find_network(network_of(instance))
        if network is None:
            return Blocked("NetworkNotFound", "the network was deleted")
        if is_deleting(network):
            return Blocked("NetworkDeleting", "the network is being deleted, and the instance with it")
        if instance.status.has_server and not self.absence.record_missing(instance.uid):
            return Requeue(self.absence.delay_s, "ServerMissing", "the server was not found; confirming that")
        return None

    async def _check_exists(self, instance: ComputeInstance) -> None:
        """Raise Conflict if an instance is being deleted: a suspended process would create an orphan."""
        found = await find(self.store, ComputeInstance, instance.name, include_deleting=False)
        if found is None or found.uid != instance.uid:
            raise Conflict("ComputeInstance", instance.name)

    async def _request(self, instance: ComputeInstance, context: ReconcileContext) -> None:
        """Request the server. Its id is derived, so a repeated request creates no second one."""
        self._pending.add(instance.uid)
        await self.region.api.create_server(
            await writing_for(self.region, instance, context.id), desired_server(instance)
        )

    async def _name_conflict(self, instance: ComputeInstance) -> Result:
        """Return the result if a server with the id exists: its own after a lost response, or another."""
        if await list_tagged(self.region, instance):
            return Requeue(0, message=_CREATING.message, report_after_s=_CREATING.report_after_s)
        self._pending.discard(instance.uid)
        return Blocked("NameTaken", "a server of another owner has this name on the network")


_USUAL = {"", "Changed", "Pending", "Provisioning", "Provisioned"}
_CHANGING = "the server is being updated"
_SUCCESSES: Mapping[RebuildKind, str] = {"Rebuilding": "Rebuilt", "Replacing": "Replaced"}
_SUCCESS_MESSAGES: Mapping[RebuildKind, str] = {
    "Rebuilding": "the server was rebuilt",
    "Replacing": "the server was replaced",
}
_FAILURES: Mapping[RebuildKind, str] = {"Rebuilding": "RebuildFailed", "Replacing": "ReplacementFailed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Convergence:
    """Converges existing servers."""

    clock: Clock
    changes: ServerChanges

    async def converge(
        self, instance: ComputeInstance, server: ServerRead, context: ReconcileContext
    ) -> InstanceResult:
        """Converge a server that exists. Its quota was confirmed before it was requested."""
        if is_unreported(instance, self.clock.now()) and is_in_progress(server) and is_requested(instance, server):
            return replace(_progress(instance, server), report_after_s=REPORT_AFTER.total_seconds())
        outcome = await self._outcome(instance, server, context)
        return replace(
            outcome,
            status_events=[
                *_server_events(instance, server, context),
                *outcome.status_events,
                *_address_events(instance, outcome, context),
            ],
        )

    async def _outcome(
        self, instance: ComputeInstance, server: ServerRead, context: ReconcileContext
    ) -> Outcome[ComputeInstance]:
        known = instance if is_quota_confirmed(instance) else with_quota_confirmed(instance, self.clock)
        try:
            change = await self.changes.converge(instance, server)
        except RemudaError as error:
            if error.retry:
                raise
            return Outcome(rejection_of(error), projected(known, server, self.clock.now()))
        if change is not None:
            context.acted = True
            return self._requested(known, server, change, context)
        return self._in_progress(known, server) if is_in_progress(server) else self._finished(known, server, context)

    def _requested(
        self, instance: ComputeInstance, before: ServerRead, change: RequestedChange, context: ReconcileContext
    ) -> Outcome[ComputeInstance]:
        now, server = self.clock.now(), change.server
        facts = {"fields": list(change.fields), "server": server.metadata.id}
        if change.rebuild is None:
            entry = context.event(instance, "ServerChanged" if change.fields else "ReplacementCancelled", **facts)
            is_all = bool(change.fields) and is_requested(instance, server)
            if is_all and not is_in_progress(server):  # the change does not concern the provider
                return replace(self._finished(instance, server, context), effect_events=[entry])
            return Outcome(Requeue(POLL_S, message=_CHANGING), projected(instance, server, now), [entry])
        entry = context.event(
            instance,
            change.rebuild,
            **facts,
            flavor=server.spec.flavor_id,
            image=server.spec.image_id,
            was={"flavor": before.spec.flavor_id, "image": before.spec.image_id},
        )
        rebuilding = with_rebuilding(instance, change.rebuild, server, now)
        waiting = Requeue(POLL_S, "Rebuilding", REBUILD_MESSAGES[change.rebuild])
        return Outcome(waiting, projected(rebuilding, server, now), [entry])

    def _in_progress(self, instance: ComputeInstance, server: ServerRead) -> Outcome[ComputeInstance]:
        now = self.clock.now()
        if not is_rebuilding(instance, server):
            return Outcome(_progress(instance, server), projected(instance, server, now))
        rebuilding = with_rebuilding(instance, rebuild_kind(instance), server, now)
        return Outcome(Requeue(POLL_S, "Rebuilding", _message(server)), projected(rebuilding, server, now))

    def _finished(
        self, instance: ComputeInstance, server: ServerRead, context: ReconcileContext
    ) -> Outcome[ComputeInstance]:
        now = self.clock.now()
        has_failed = server.metadata.provisioning_status == "error"
        events = []
        if current_rebuild(instance) is not None or needs_rebuild(instance):
            kind = rebuild_kind(instance)
            event = _FAILURES[kind] if has_failed else _SUCCESSES[kind]
            message = _message(server) if has_failed else _SUCCESS_MESSAGES[kind]
            events.append(context.event(instance, event, server=server.metadata.id, message=message))
            instance = with_rebuild_ended(instance, "Failed" if has_failed else event, message, now)
        return Outcome(
            _failure(server) if has_failed else Done(), projected(instance, server, now), status_events=events
        )


def _server_events(instance: ComputeInstance, server: ServerRead, context: ReconcileContext) -> list[Record]:
    """Return the events of a server that is observed for the first time, or was created again."""
    if not instance.status.has_server:
        return [context.event(instance, "ServerCreated", server=server.metadata.id)]
    if server.status.recreations <= instance.status.recreations:
        return []
    reason = "the server disappeared from the provider without a request"
    return [recreated_event(instance, context, reason)]


def _address_events(
    before: ComputeInstance, outcome: Outcome[ComputeInstance], context: ReconcileContext
) -> list[Record]:
    changes = changed_addresses(before.status, outcome.resource.status)
    return [context.event(before, "AddressesChanged", changes=changes)] if changes else []


def _progress(instance: ComputeInstance, server: ServerRead) -> Requeue:
    if reason_of(server) not in _USUAL:
        return Requeue(POLL_S, reason_of(server), _message(server))
    if not is_being_changed(instance, server):
        return Requeue(POLL_S, message="the server is being created")
    how_far = message_of(server) if reason_of(server) == "Provisioning" else ""
    return Requeue(POLL_S, message=how_far or _CHANGING)


def _failure(server: ServerRead) -> Blocked:
    """Return the failure of a server, with the reason that region reports."""
    return Blocked("Errored" if reason_of(server) in _USUAL else reason_of(server), _message(server))


def _message(server: ServerRead) -> str:
    return message_of(server) or "no progress is reported"
