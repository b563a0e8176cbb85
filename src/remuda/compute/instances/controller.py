"""Controller of instances: it keeps one server in region for each, and projects the server's state to the status.

    create operation done -> quota confirmed -> server requested -> server as requested

The server is found by the instance's scope and tag in every reconcile, and there must be exactly one; if there are
several, nothing is done. Region does the work: one request is sent per reconcile, and each change of the server
enqueues the instance again. Deletion goes in the opposite order: servers, quota, instance. An instance with damaged
labels is left alone, because its server may exist elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from prometheus_client import CollectorRegistry, Counter

from remuda.compute.instances.convergence import (
    POLL_S,
    Convergence,
    InstanceResult,
    ServerChanges,
    ServerCreation,
    cleanup_guard,
)
from remuda.compute.instances.rules import charge_of, has_surplus_quota, message_of, reason_of, with_surplus
from remuda.compute.instances.server_lookup import LinkedServers, broken_spec, find_linked, is_ambiguous, is_new
from remuda.compute.instances.status import REPORT_AFTER
from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.compute.ports import ComputePorts, RegionClient, is_deleting
from remuda.kernel.conditions import find_condition
from remuda.kernel.errors import Conflict, NotFound
from remuda.providers.absence import AbsenceTracker
from remuda.quota.lifecycle import QuotaHooks, confirm_quota, created_delay_s, payer_of, with_quota_confirmed
from remuda.quota.ports import QuotaLedger, StaleTokenError
from remuda.quota.sagas import operation_source
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import FINALIZER_REMOVED, Outcome, lifecycle_controller
from remuda.reconcile.results import Blocked, Done, ReconcileContext, Requeue, Result
from remuda.reconcile.status import AVAILABLE
from remuda.region.servers.schema import ServerRead
from remuda.resources.conventions import CONTROLLER_FINALIZER
from remuda.store.logs import Record


def tombstone(instance: ComputeInstance, context: ReconcileContext) -> Record:
    """Return the tombstone of an instance, which is stored in the commit that removes it.

    Timeline permissions need the labels after the object is gone. A separate subject keeps them, because later events
    under the same id must not push them out of the retained window.
    """
    entry = context.event(instance, FINALIZER_REMOVED, labels=instance.metadata.labels)
    return msgspec.structs.replace(entry, subject=tombstone_subject(entry.subject))


def tombstone_subject(subject: str) -> str:
    return f"{subject}/gone"


AMBIGUOUS = "AmbiguousServer"
DAMAGED = "LabelsDamaged"
"""The reason for an instance with labels that another program has changed."""


def ambiguity_counter(registry: CollectorRegistry) -> Counter:
    text = "Instances that turned out to have several servers, or one that they are not linked to."
    return Counter("remuda_compute_ambiguous_servers", text, registry=registry)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceController:
    """Reconciles instances that `QuotaHooks` admits."""

    ledger: QuotaLedger
    region: RegionClient
    creation: ServerCreation
    convergence: Convergence
    ambiguous: Counter

    async def provision(self, instance: ComputeInstance, context: ReconcileContext) -> InstanceResult:
        """Bring an instance one step nearer to its desired state.

        The server of a new instance is created before one is looked for. Its id follows from the instance, so region
        rejects it if there is one, for example after a request without a response.
        """
        if not is_new(instance):
            self.creation.forget_request(instance)
        elif not self.creation.was_requested(instance):
            created = await self.creation.create_new(instance, context)
            if created is not None:
                return created
        linked = await find_linked(self.region, instance)
        if linked.damage:
            return Blocked(DAMAGED, linked.damage)
        if damage := broken_spec(instance):
            return Blocked("Errored", damage)
        return await self._converge(instance, linked, context)

    async def deprovision(self, instance: ComputeInstance, context: ReconcileContext) -> InstanceResult:
        """Bring an instance one step nearer to its removal."""
        linked = await find_linked(self.region, instance)
        if linked.damage:
            return Blocked(DAMAGED, linked.damage)
        if linked.own:
            return await self._remove(instance, linked.own, context)
        if self.creation.is_pending(instance) and not self.creation.absence.record_missing(instance.uid):
            after_s = self.creation.absence.delay_s
            return Requeue(after_s, "Deprovisioning", "confirming that the server was deleted")
        self.creation.clear_pending(instance)
        self.creation.forget_request(instance)
        self.convergence.changes.forget(instance)
        # `QuotaHooks.after_deprovision` releases the quota next. Nothing uses it any more: region removes a Server
        # after its absence at the provider is confirmed. Only a server that an operator abandoned may run on.
        return Outcome(Done(), instance, [tombstone(instance, context)])

    async def _converge(
        self, instance: ComputeInstance, linked: LinkedServers, context: ReconcileContext
    ) -> InstanceResult:
        if is_ambiguous(instance, linked.candidates):
            return self._ambiguous(instance, linked.candidates, context)
        if linked.candidates:
            self.creation.clear_pending(instance)
            return await self._update(instance, linked.candidates[0], context)
        if linked.deleting:
            return Requeue(POLL_S, "ServerDeleting", "the server is being deleted and will be created again")
        if linked.previous:
            return await self.creation.remove_previous(instance, linked.previous, context)
        return await self.creation.create(instance, context)

    async def _update(self, instance: ComputeInstance, server: ServerRead, context: ReconcileContext) -> InstanceResult:
        """Converge the server, and release surplus quota."""
        clock = self.convergence.clock
        if has_surplus_quota(instance):
            context.acted = True
            waiting = await _shrink_allocation(self.ledger, instance)
            if waiting is not None:
                return waiting
            instance = with_quota_confirmed(instance, clock)
        step = await self.convergence.converge(instance, server, context)
        return with_surplus(instance, step, clock) if isinstance(step, Outcome) else step

    def _ambiguous(
        self, instance: ComputeInstance, servers: Sequence[ServerRead], context: ReconcileContext
    ) -> InstanceResult:
        """Report once that the server is ambiguous, and do nothing."""
        ids = [server.metadata.id for server in servers]
        result = Blocked(AMBIGUOUS, f"it is not clear which server belongs to the instance: {', '.join(ids)}")
        available = find_condition(instance.status.conditions, AVAILABLE)
        if available is not None and (available.reason, available.message) == (result.reason, result.message):
            return result
        self.ambiguous.inc()
        context.log.warning("ambiguous server", instance=instance.name, servers=ids)
        return Outcome(result, instance, status_events=[context.event(instance, AMBIGUOUS, servers=ids)])

    async def _remove(self, instance: ComputeInstance, own: Sequence[ServerRead], context: ReconcileContext) -> Result:
        self.creation.clear_pending(instance)
        for server in own:
            if not is_deleting(server):
                context.acted = True
                await self.region.delete_server(server.metadata.id, payer_of(instance))
        message = f"the server is being deleted{_deletion_detail(own[0])}"
        return Requeue(POLL_S, "Deprovisioning", message, report_after_s=REPORT_AFTER.total_seconds())


def _deletion_detail(server: ServerRead) -> str:
    message = message_of(server)
    is_usual = not is_deleting(server) or reason_of(server) in {"", "Deprovisioning", "Provisioning", "Provisioned"}
    return "" if is_usual or not message else f": {message}"


async def _shrink_allocation(ledger: QuotaLedger, instance: ComputeInstance) -> Result | None:
    """Update the allocation to what an instance uses; return the result that blocks it, or None."""
    try:
        await ledger.update(charge_of(instance))
    except NotFound:  # it was released meanwhile: reserve the present cost
        return await confirm_quota(ledger, charge_of(instance))
    except StaleTokenError:
        raise Conflict("ComputeInstance", instance.name) from None
    return None


def controllers(ports: ComputePorts) -> Sequence[Controller]:
    """Return the controllers of instances. `ServerWatch` has to run beside it, to enqueue on changes of servers."""
    reconciling = ports.reconcile_ports
    guard = cleanup_guard(reconciling)
    instances = InstanceController(
        ledger=ports.identity,
        region=ports.region,
        creation=ServerCreation(
            store=reconciling.store,
            ledger=ports.identity,
            region=ports.region,
            absence=AbsenceTracker(ports.clock, delay_s=ports.settings.absence_delay.total_seconds()),
            guard=guard,
        ),
        convergence=Convergence(clock=ports.clock, changes=ServerChanges(ports.region)),
        ambiguous=ambiguity_counter(ports.metrics),
    )
    return (
        lifecycle_controller(
            "instances",
            ComputeInstance,
            provision=instances.provision,
            deprovision=instances.deprovision,
            finalizer=CONTROLLER_FINALIZER,
            ports=reconciling,
            hooks=QuotaHooks(
                store=reconciling.store,
                clock=ports.clock,
                ledger=ports.identity,
                charge=charge_of,
                confirms_quota=False,  # only when a server is created
            ),
            sources=(operation_source(INSTANCE),),
            guards=(guard,),
            settings=ports.controllers.for_many(),
            created_delay_s=created_delay_s,
        ),
    )
