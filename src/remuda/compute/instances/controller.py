"""What makes instances true: one server for each, as it is wanted, and what that server tells as the instance's status.

::

    its operation is done  →  what it costs is held for good  →  its server is asked for  →  the server is as wanted

The server is found by where the instance is and by its tag, every time, and there must be exactly one; where there are
several, nothing is done to any. Region does the work: it is asked for one thing in each pass and waited for, and each
change of the server wakes the pass that goes on. What comes to be is written down when it is final, so a new instance
takes one write of its own; only if that takes longer than a moment, its way there is shown as well.

It goes in the other order: all its servers, then what it cost, then the instance. One whose labels are damaged stays
as it is, and says so: what is not found where they point may be somewhere else.

What is kept of an instance that goes, where nothing else is: whose it was is found, however much is told later.

Who asks for its name once more and is refused leaves entries under the id of an instance that is gone, and there is no
end to those.

The controller of instances, and what wakes it: instances, their operations, and (`following`) their servers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
from prometheus_client import CollectorRegistry, Counter

from remuda.compute.instances.convergence import NET_S, Asking, Keeping, Making, Step, leftover_breaker
from remuda.compute.instances.rules import charge_for, give_back, is_to_give_back, message_of, reason_of, with_less
from remuda.compute.instances.server_lookup import Linked, broken_spec, is_ambiguous, linked_to
from remuda.compute.instances.status import UNTOLD
from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.compute.ports import ComputePorts, IdentityPort, RegionClient, is_deleting
from remuda.kernel.conditions import find_condition
from remuda.operations.kinds import Operation
from remuda.providers.absence import AbsenceTracker
from remuda.quota.lock import is_locked, is_operation_open
from remuda.quota.reservation import OPERATION_OPEN, payer_of, wait_for_create, with_charged
from remuda.quota.sagas import subject_of_kind
from remuda.reconcile.controller import Controller
from remuda.reconcile.lifecycle import RELEASED, Lifecycle, Outcome
from remuda.reconcile.results import Blocked, Done, ReconcileContext, Requeue, Result
from remuda.reconcile.sources import Source
from remuda.reconcile.status import AVAILABLE
from remuda.region.servers.schema import ServerRead
from remuda.resources.conventions import CONTROLLER_FINALIZER
from remuda.store.contract import Store
from remuda.store.logs import Record


def departure(instance: ComputeInstance, run: ReconcileContext) -> Record:
    """Return what to keep of an instance in the commit by which it goes."""
    entry = run.event(instance, RELEASED, labels=instance.metadata.labels)
    return msgspec.structs.replace(entry, subject=departures_under(entry.subject))


def departures_under(subject: str) -> str:
    """Return under which subject the instances are kept that went, by that of what happened to them."""
    return f"{subject}/gone"


AMBIGUOUS = "AmbiguousServer"
"""Why nothing is done to an instance with several servers."""

_CHANGE_OPEN = replace(OPERATION_OPEN, message="the operation that changes it has not ended")
"""Why an instance is left alone that an operation has in hand."""


def ambiguities(registry: CollectorRegistry) -> Counter:
    """Return what counts instances that turned out to have several servers."""
    text = "Instances that turned out to have several servers, or one that they are not linked to."
    return Counter("remuda_compute_ambiguous_servers", text, registry=registry)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceController:
    """Keeps one server for each instance."""

    store: Store
    identity: IdentityPort
    region: RegionClient
    making: Making
    keeping: Keeping
    ambiguous: Counter

    async def provision(self, instance: ComputeInstance, run: ReconcileContext) -> Step:
        """Bring an instance one step nearer to being as it is wanted."""
        waiting = await wait_for_create(self.store, instance, instance.spec.operation, run)
        if waiting is not None:
            return waiting
        if await is_locked(self.store, instance):
            return _CHANGE_OPEN
        linked = await linked_to(self.region, instance)
        if damage := linked.damage or broken_spec(instance):
            return Blocked("Errored", damage)
        return await self._converge(instance, linked, run)

    async def deprovision(self, instance: ComputeInstance, run: ReconcileContext) -> Step:
        """Bring an instance one step nearer to being gone."""
        if await is_operation_open(self.store, instance.spec.operation):
            return OPERATION_OPEN
        if await is_locked(self.store, instance):
            return _CHANGE_OPEN
        linked = await linked_to(self.region, instance)
        if linked.damage:
            return Blocked("Errored", linked.damage)
        if linked.own:
            return await self._remove(instance, linked.own, run)
        if self.making.record_missing(instance):
            after_s = self.making.absences.delay_s
            return Requeue(after_s, "Deprovisioning", "looking whether its server is really gone")
        await self.identity.release(charge_for(instance), permanently=True)
        self.making.clear_pending(instance)
        self.keeping.asking.forget(instance)
        return Outcome(Done(), instance, [departure(instance, run)])

    async def _converge(self, instance: ComputeInstance, linked: Linked, run: ReconcileContext) -> Step:
        if is_ambiguous(instance, linked.standing):
            return self._ambiguous(instance, linked.standing, run)
        if linked.standing:
            self.making.clear_pending(instance)
            return await self._keep(instance, linked.standing[0], run)
        if linked.going:
            return Requeue(NET_S, "ServerDeleting", "its server is being deleted, and made again when that is gone")
        if linked.leftovers:
            return await self.making.clear(instance, linked.leftovers, run)
        return await self.making.make(instance, run)

    async def _keep(self, instance: ComputeInstance, server: ServerRead, run: ReconcileContext) -> Step:
        """Keep its server, and give back what it no longer costs."""
        clock = self.keeping.clock
        if is_to_give_back(instance):
            run.acted = True
            held = await give_back(self.identity, instance)
            if held is not None:
                return held
            instance = with_charged(instance, clock)
        step = await self.keeping.keep(instance, server, run)
        return with_less(instance, step, clock) if isinstance(step, Outcome) else step

    def _ambiguous(self, instance: ComputeInstance, servers: Sequence[ServerRead], run: ReconcileContext) -> Step:
        """Say that it is not clear which server is its own, once, and do nothing."""
        ids = [server.metadata.id for server in servers]
        result = Blocked(AMBIGUOUS, f"it is not clear which server is its own: {', '.join(ids)}")
        said = find_condition(instance.status.conditions, AVAILABLE)
        if said is not None and (said.reason, said.message) == (result.reason, result.message):
            return result
        self.ambiguous.inc()
        run.log.warning("ambiguous server", instance=instance.name, servers=ids)
        return Outcome(result, instance, status_events=[run.event(instance, AMBIGUOUS, servers=ids)])

    async def _remove(self, instance: ComputeInstance, own: Sequence[ServerRead], run: ReconcileContext) -> Result:
        self.making.clear_pending(instance)
        for server in own:
            if not is_deleting(server):
                run.acted = True
                await self.region.delete_server(server.metadata.id, payer_of(instance))
        message = f"its server is being removed{_what_keeps(own[0])}"
        return Requeue(NET_S, "Deprovisioning", message, report_after_s=UNTOLD.total_seconds())


def _what_keeps(server: ServerRead) -> str:
    message = message_of(server)
    is_usual = not is_deleting(server) or reason_of(server) in {"", "Deprovisioning", "Provisioning", "Provisioned"}
    return "" if is_usual or not message else f": {message}"


def driver(ports: ComputePorts) -> Controller:
    """Return the controller of instances. Have `Following` done beside it, or it hears nothing of their servers."""
    reconciling = ports.reconcile_ports
    breaker = leftover_breaker(reconciling)
    instances = InstanceController(
        store=reconciling.store,
        identity=ports.identity,
        region=ports.region,
        making=Making(
            store=reconciling.store,
            identity=ports.identity,
            region=ports.region,
            absences=AbsenceTracker(ports.clock, delay_s=ports.settings.absence_delay.total_seconds()),
            breaker=breaker,
        ),
        keeping=Keeping(clock=ports.clock, asking=Asking(ports.region)),
        ambiguous=ambiguities(ports.metrics),
    )
    return Controller(
        "instances",
        Lifecycle(
            ComputeInstance,
            provision=instances.provision,
            deprovision=instances.deprovision,
            finalizer=CONTROLLER_FINALIZER,
            ports=reconciling,
        ),
        kind=ComputeInstance,
        ports=reconciling,
        sources=(
            Source(ComputeInstance),
            Source(Operation, when=lambda operation: operation.phase, keys=subject_of_kind(INSTANCE)),
        ),
        guards=(breaker,),
        settings=ports.controllers.for_many(),
    )
