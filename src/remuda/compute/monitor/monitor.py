"""Monitor of compute: compares instances with servers and quota allocations, in the process that leads.

Watches report changes; the monitor finds what no change reports. It is slow on purpose: a hundred thousand instances
take hours.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

from remuda.compute.instances.rules import charge_of
from remuda.compute.instances.server_lookup import LinkedServers, broken_spec, find_linked
from remuda.compute.instances.server_watch import watch_forever
from remuda.compute.instances.service import delete_instances_on
from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.compute.monitor.findings import Checker, CheckRound, Findings, placeholder_instance
from remuda.compute.monitor.orphans import DeletedInstances, OrphanCheck, orphan_guard
from remuda.compute.ports import ComputePorts, is_deleting
from remuda.kernel.conditions import find_condition
from remuda.kernel.errors import Conflict, Forbidden, Unreadable, Unsealable
from remuda.quota.lifecycle import confirm_quota
from remuda.quota.lock import is_locked
from remuda.quota.ports import AllocatedQuota, Charge, ProjectRef
from remuda.reconcile.deletion_guard import DeletionGuard
from remuda.reconcile.leader import Pace, every, while_leading
from remuda.reconcile.sources import names
from remuda.reconcile.status import AVAILABLE, UNSETTLED, is_unsettled, since
from remuda.resources.conventions import NETWORK
from remuda.resources.crud import find
from remuda.store.contract import Store

_NETWORK_DELETED = {"NetworkNotFound", "NetworkDeleting"}
_TWICE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class StalledCheck:
    """Checks unsettled instances: those without progress, and those whose network was deleted unnoticed."""

    ports: ComputePorts
    findings: Findings
    enqueue: Callable[[str], None]
    pace: Pace

    async def run(self) -> None:
        """Check all unsettled instances once."""
        stalled, gone = self.findings.begin("stuck"), self.findings.begin("network-gone")
        async for name in names(self.ports.store, ComputeInstance, index=UNSETTLED):
            await self.pace.step()
            try:
                instance = await find(self.ports.store, ComputeInstance, name)
            except (Unreadable, Unsealable):
                continue  # InstanceCheck reports it
            if instance is not None:
                await self._check_network(instance, gone)
                await self._check_progress(instance, stalled)
        self.findings.end("stuck", stalled)
        self.findings.end("network-gone", gone)

    async def _check_progress(self, instance: ComputeInstance, checked: CheckRound) -> None:
        conditions = instance.status.conditions
        began = since(instance, conditions) or instance.metadata.creation_timestamp
        if began is None or self.ports.clock.now() - began < self.ports.settings.stalled_after:
            return
        if checked.record(instance.uid) == 1:
            available = find_condition(conditions, AVAILABLE)
            reason = "it was not reconciled yet" if available is None else available.message
            message = f"the instance made no progress since {began:%Y-%m-%dT%H:%M:%SZ}: {reason}"
            await self.findings.report("stuck", instance, message)
        self.enqueue(instance.name)

    async def _check_network(self, instance: ComputeInstance, checked: CheckRound) -> None:
        available = find_condition(instance.status.conditions, AVAILABLE)
        if instance.is_deleting or available is None or available.reason not in _NETWORK_DELETED:
            return
        network = instance.metadata.labels[NETWORK]
        found = await self.ports.region.find_network(network)
        if found is not None and not is_deleting(found):
            self.enqueue(instance.name)
            return
        if checked.record(instance.uid) < _TWICE:
            return
        await self.findings.report(
            "network-gone", instance, "its network was deleted, and the instance was not", network=network
        )
        ended = await delete_instances_on(self.ports.store, network, self.ports.randomness, controller="monitor")
        if ended:
            message = "the instance is deleted with its network"
            await self.findings.report_repair("network-gone", instance, message, network=network)


_CHECKERS: tuple[Checker, ...] = ("instance-without-server", "allocation-differs", "damaged")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceCheck:
    """Checks all instances for damage, and settled ones for their server and their quota allocation.

    It deletes nothing: the controller confirms that a server is missing, and an allocation is corrected after two
    rounds.
    """

    ports: ComputePorts
    findings: Findings
    enqueue: Callable[[str], None]
    pace: Pace

    async def run(self) -> None:
        rounds = {checker: self.findings.begin(checker) for checker in _CHECKERS}
        async for name in names(self.ports.store, ComputeInstance):
            await self.pace.step()
            try:
                instance = await find(self.ports.store, ComputeInstance, name)
            except (Unreadable, Unsealable) as error:
                await self._damaged(
                    placeholder_instance(name, "", ProjectRef("", "")), error.message, rounds["damaged"]
                )
                continue
            if instance is not None:
                await self._check(instance, rounds)
        for checker, checked in rounds.items():
            self.findings.end(checker, checked)

    async def _check(self, instance: ComputeInstance, rounds: dict[Checker, CheckRound]) -> None:
        linked = await find_linked(self.ports.region, instance)
        if damage := linked.damage or broken_spec(instance):
            await self._damaged(instance, damage, rounds["damaged"])
        elif not is_unsettled(instance):
            await self._check_server(instance, linked, rounds["instance-without-server"])
            await self._check_allocation(instance, rounds["allocation-differs"])

    async def _damaged(self, instance: ComputeInstance, damage: str, checked: CheckRound) -> None:
        if checked.record(instance.name) == 1:
            await self.findings.report("damaged", instance, damage)

    async def _check_server(self, instance: ComputeInstance, linked: LinkedServers, checked: CheckRound) -> None:
        if linked.own:
            return
        if checked.record(instance.uid) == 1:
            await self.findings.report("instance-without-server", instance, "the instance has no server")
        self.enqueue(instance.name)

    async def _check_allocation(self, instance: ComputeInstance, checked: CheckRound) -> None:
        charge = charge_of(instance)
        if await self._is_allocated(charge) or await is_locked(self.ports.store, instance):
            return
        if checked.record(instance.uid) == _TWICE:
            await self.findings.report("allocation-differs", instance, "its quota allocation differs from its spec")
        if checked.found[instance.uid] >= _TWICE:
            await self._correct_allocation(instance)

    async def _is_allocated(self, charge: Charge) -> bool:
        found = await self.ports.identity.find_allocation(charge)
        return found is not None and found.is_confirmed and found.amounts == frozenset(charge.amounts)

    async def _correct_allocation(self, instance: ComputeInstance) -> None:
        """Set the allocation of an instance that did not change meanwhile; one that exceeds a quota stays a finding."""
        found = await find(self.ports.store, ComputeInstance, instance.name, include_deleting=False)
        if found is None or found.version != instance.version:
            return
        charge, ledger = charge_of(found), self.ports.identity
        try:
            if await confirm_quota(ledger, charge) is not None:
                return
            await ledger.update(charge)
        except (Conflict, Forbidden):
            return
        await self.findings.report_repair("allocation-differs", found, "its quota allocation was corrected")


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationCheck:
    """Checks quota allocations, and releases confirmed ones whose instance was missing in two rounds.

    The deletion guard limits how many: after a loss of the store all allocations would lose their instances.
    """

    ports: ComputePorts
    findings: Findings
    guard: DeletionGuard
    pace: Pace
    _projects: set[ProjectRef] = field(default_factory=set)

    async def watch_projects(self) -> None:
        """Collect the projects until the task is cancelled."""
        ports = self.ports
        projects = watch_forever(ports.identity.projects, "projects", ports.clock, ports.randomness)
        async with aclosing(projects):
            async for observed in projects:
                self._projects.add(observed.project)

    async def run(self) -> None:
        """Check the allocations of each project once."""
        checked = self.findings.begin("allocation-without-owner")
        for project in sorted(self._projects):
            async for allocation in self.ports.identity.list_allocations(project):
                await self.pace.step()
                if not await _is_orphaned(allocation, self.ports.store):
                    continue
                count = checked.record(allocation.name)
                if count >= _TWICE:
                    await self._release(allocation, is_new=count == _TWICE)
            if not await self.ports.identity.has_project(project.organization, project.project):
                self._projects.discard(project)
        self.findings.end("allocation-without-owner", checked)

    async def _release(self, allocation: AllocatedQuota, *, is_new: bool) -> None:
        subject = placeholder_instance(allocation.id, allocation.name, allocation.payer)
        name = allocation.name
        if is_new:
            message = "the instance does not exist and has a quota allocation"
            await self.findings.report("allocation-without-owner", subject, message, allocation=name)
        with suppress(Conflict):  # another process counts at the same time: the next round tries again
            if await self.guard.admit_deletion(subject, self.findings.context(subject)) is None:
                await self.ports.identity.release_allocation(allocation)
                message = "the quota allocation was released"
                await self.findings.report_repair("allocation-without-owner", subject, message, allocation=name)


async def _is_orphaned(allocation: AllocatedQuota, store: Store) -> bool:
    if allocation.kind != INSTANCE.qualified or not allocation.is_confirmed:
        return False  # an unconfirmed one expires by itself
    try:
        return await find(store, ComputeInstance, allocation.id) is None
    except (Unreadable, Unsealable):
        return False  # a damaged instance exists


_INSTANCES_PER_S = 2.0
_ALLOCATIONS_PER_S = 6.0
_DELETED_PER_S = 20.0
_ALLOCATION_PERIODS = 72
"""The interval between checks of allocations: six hours by default."""


def new_monitor(ports: ComputePorts, enqueue: Callable[[str], None]) -> "Monitor":
    findings, guard = Findings(ports), orphan_guard(ports.reconcile_ports)

    def pace(per_second: float) -> Pace:
        return Pace(ports.clock, per_second)

    return Monitor(
        ports=ports,
        findings=findings,
        guard=guard,
        instances=InstanceCheck(ports=ports, findings=findings, enqueue=enqueue, pace=pace(_INSTANCES_PER_S)),
        stalled=StalledCheck(ports=ports, findings=findings, enqueue=enqueue, pace=pace(_INSTANCES_PER_S)),
        orphans=OrphanCheck(
            ports=ports,
            findings=findings,
            guard=guard,
            deleted=DeletedInstances(ports=ports, pace=pace(_DELETED_PER_S)),
        ),
        allocations=AllocationCheck(ports=ports, findings=findings, guard=guard, pace=pace(_ALLOCATIONS_PER_S)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitor:
    """Checks. `run` and `orphans.deleted.run` are background tasks; `orphans.add_suspect` takes servers to check."""

    ports: ComputePorts
    findings: Findings
    guard: DeletionGuard
    instances: InstanceCheck
    stalled: StalledCheck
    orphans: OrphanCheck
    allocations: AllocationCheck

    async def run(self) -> None:
        """Check periodically while this process leads, until cancelled."""
        await while_leading(self.ports.leader, self._lead)

    async def _lead(self) -> None:
        await self.guard.report()
        period, clock = self.ports.settings.monitor_interval, self.ports.clock
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.allocations.watch_projects())
                for check in (self.instances.run, self.stalled.run, self.orphans.run):
                    tasks.create_task(every(period, clock, check))
                tasks.create_task(every(period * _ALLOCATION_PERIODS, clock, self.allocations.run))
        finally:
            self.findings.clear()
