"""The sweep over all instances: has each its server, is held what it costs, do its labels say where it is.

What those at rest have is held against region and identity: with the others somebody is busy, and `stuck` looks
whether that comes to an end. Damage is looked for in all of them. Nothing is destroyed here. A missing server is the
controller's to look for and to make again; what is held wrongly is put right where two looks in a row found it so.

Instances that should have moved on: what they waited for has not come for too long, or their network is gone.

Only the unsettled are looked at, of which there are few. One whose network is gone was not told so: it went while
nobody watched, and is asked to go after two looks in a row.

What is held for instances that are not there.

Only what was confirmed is looked at: the rest lapses by itself, unless its owner comes to be. What is nobody's in two
looks in a row is given back, and no more of it than the breaker of mass destruction lets pass: whoever has lost the
store would lose the account of what there is as well.

The monitor: holds instances, servers and what is held for them against each other now and then.

It works in the process that leads, and slowly: a hundred thousand instances take hours, so that nobody notices it.
What happens is told by events; this is for what no event tells.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import timedelta

from remuda.compute.instances.rules import charge_for
from remuda.compute.instances.server_lookup import Linked, broken_spec, linked_to
from remuda.compute.instances.server_watch import followed
from remuda.compute.instances.service import end_instances_on
from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.compute.monitor.findings import Checker, Findings, Look, stand_in
from remuda.compute.monitor.orphans import Departures, Strays, stray_breaker
from remuda.compute.ports import ComputePorts, is_deleting
from remuda.kernel.conditions import find_condition
from remuda.kernel.errors import Conflict, Forbidden, Unreadable, Unsealable
from remuda.quota.lock import is_locked
from remuda.quota.ports import AllocatedQuota, Charge, ProjectRef
from remuda.quota.reservation import confirm_quota
from remuda.reconcile.deletion_guard import DeletionGuard
from remuda.reconcile.leader import Pace, every, while_leading
from remuda.reconcile.sources import names
from remuda.reconcile.status import AVAILABLE, UNSETTLED, is_unsettled, since
from remuda.resources.conventions import NETWORK
from remuda.resources.crud import find
from remuda.store.contract import Store

_NETWORK_ENDED = {"NetworkGone", "NetworkDeleting"}
_TWICE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """Looks at what is under way."""

    ports: ComputePorts
    findings: Findings
    wake: Callable[[str], None]
    pace: Pace

    async def look(self) -> None:
        """Look once at all that are unsettled."""
        stuck, gone = self.findings.begin("stuck"), self.findings.begin("network-gone")
        async for name in names(self.ports.store, ComputeInstance, index=UNSETTLED):
            await self.pace.step()
            try:
                instance = await find(self.ports.store, ComputeInstance, name)
            except (Unreadable, Unsealable):
                continue  # the sweep tells of it
            if instance is not None:
                await self._check_network(instance, gone)
                await self._check_time(instance, stuck)
        self.findings.end("stuck", stuck)
        self.findings.end("network-gone", gone)

    async def _check_time(self, instance: ComputeInstance, look: Look) -> None:
        conditions = instance.status.conditions
        began = since(instance, conditions) or instance.metadata.creation_timestamp
        if began is None or self.ports.clock.now() - began < self.ports.settings.stalled_after:
            return
        if look.meet(instance.uid) == 1:
            said = find_condition(conditions, AVAILABLE)
            why = "nothing was said of it yet" if said is None else said.message
            message = f"it has not moved since {began:%Y-%m-%dT%H:%M:%SZ}: {why}"
            await self.findings.tell("stuck", instance, message)
        self.wake(instance.name)

    async def _check_network(self, instance: ComputeInstance, look: Look) -> None:
        said = find_condition(instance.status.conditions, AVAILABLE)
        if instance.is_deleting or said is None or said.reason not in _NETWORK_ENDED:
            return
        network = instance.metadata.labels[NETWORK]
        found = await self.ports.region.find_network(network)
        if found is not None and not is_deleting(found):
            self.wake(instance.name)
            return
        if look.meet(instance.uid) < _TWICE:
            return
        await self.findings.tell("network-gone", instance, "its network is gone, and it is not", network=network)
        ended = await end_instances_on(self.ports.store, network, self.ports.randomness, controller="monitor")
        if ended:
            message = "it is deleted with its network"
            await self.findings.tell_repaired("network-gone", instance, message, network=network)


_CHECKERS: tuple[Checker, ...] = ("instance-without-server", "allocation-differs", "damaged")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Looks at instances."""

    ports: ComputePorts
    findings: Findings
    wake: Callable[[str], None]
    pace: Pace

    async def look(self) -> None:
        """Look at everything once."""
        looks = {checker: self.findings.begin(checker) for checker in _CHECKERS}
        async for name in names(self.ports.store, ComputeInstance):
            await self.pace.step()
            try:
                instance = await find(self.ports.store, ComputeInstance, name)
            except (Unreadable, Unsealable) as error:
                await self._damaged(stand_in(name, "", ProjectRef("", "")), error.message, looks["damaged"])
                continue
            if instance is not None:
                await self._judge(instance, looks)
        for checker, look in looks.items():
            self.findings.end(checker, look)

    async def _judge(self, instance: ComputeInstance, looks: dict[Checker, Look]) -> None:
        linked = await linked_to(self.ports.region, instance)
        if damage := linked.damage or broken_spec(instance):
            await self._damaged(instance, damage, looks["damaged"])
        elif not is_unsettled(instance):
            await self._check_server(instance, linked, looks["instance-without-server"])
            await self._check_held(instance, looks["allocation-differs"])

    async def _damaged(self, instance: ComputeInstance, damage: str, look: Look) -> None:
        if look.meet(instance.name) == 1:
            await self.findings.tell("damaged", instance, damage)

    async def _check_server(self, instance: ComputeInstance, linked: Linked, look: Look) -> None:
        if linked.own:
            return
        if look.meet(instance.uid) == 1:
            await self.findings.tell("instance-without-server", instance, "it has no server, and should have one")
        self.wake(instance.name)

    async def _check_held(self, instance: ComputeInstance, look: Look) -> None:
        charge = charge_for(instance)
        if await self._is_held(charge) or await is_locked(self.ports.store, instance):
            return
        if look.meet(instance.uid) == _TWICE:
            await self.findings.tell("allocation-differs", instance, "what is held for it is not what it costs")
        if look.met[instance.uid] >= _TWICE:
            await self._hold(instance)

    async def _is_held(self, charge: Charge) -> bool:
        held = await self.ports.identity.find_allocation(charge)
        return held is not None and held.is_confirmed and held.amounts == frozenset(charge.amounts)

    async def _hold(self, instance: ComputeInstance) -> None:
        """Hold what an instance costs, if it is still the same; what exceeds a quota or changes stays a finding."""
        found = await find(self.ports.store, ComputeInstance, instance.name, include_deleting=False)
        if found is None or found.version != instance.version:
            return
        charge, identity = charge_for(found), self.ports.identity
        try:
            if await confirm_quota(identity, charge) is not None:
                return
            await identity.change(charge)
        except (Conflict, Forbidden):
            return
        await self.findings.tell_repaired("allocation-differs", found, "what it costs is held")


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocations:
    """Looks at what is held."""

    ports: ComputePorts
    findings: Findings
    breaker: DeletionGuard
    pace: Pace
    _places: set[ProjectRef] = field(default_factory=set)

    async def keep_places(self) -> None:
        """Learn which projects there are, for ever: a duty."""
        ports = self.ports
        projects = followed(ports.identity.projects, "projects", ports.clock, ports.randomness)
        async with aclosing(projects):
            async for seen in projects:
                self._places.add(seen.project)

    async def look(self) -> None:
        """Look once at what is held in each project."""
        look = self.findings.begin("allocation-without-owner")
        for place in sorted(self._places):
            async for held in self.ports.identity.list_allocations(place):
                await self.pace.step()
                if not await _is_nobodys(held, self.ports.store):
                    continue
                count = look.meet(held.name)
                if count >= _TWICE:
                    await self._give_back(held, is_new=count == _TWICE)
            if not await self.ports.identity.has_project(place.organization, place.project):
                self._places.discard(place)
        self.findings.end("allocation-without-owner", look)

    async def _give_back(self, held: AllocatedQuota, *, is_new: bool) -> None:
        subject = stand_in(held.id, held.name, held.payer)
        if is_new:
            message = "quota is held for it, and it is not there"
            await self.findings.tell("allocation-without-owner", subject, message, allocation=held.name)
        with suppress(Conflict):  # another process counts at the same time: at the next look
            if await self.breaker.allow(subject, self.findings.run(subject)) is None:
                await self.ports.identity.release_allocation(held)
                message = "the quota that was held for it is given back"
                await self.findings.tell_repaired("allocation-without-owner", subject, message, allocation=held.name)


async def _is_nobodys(held: AllocatedQuota, store: Store) -> bool:
    if held.kind != INSTANCE.qualified or not held.is_confirmed:
        return False
    try:
        return await find(store, ComputeInstance, held.id) is None
    except (Unreadable, Unsealable):
        return False  # there is one, whatever it is


_JUDGED_PER_S = 2.0
_HELD_PER_S = 6.0
_DEPARTED_PER_S = 20.0
_SELDOM = 72  # every six hours, unless set otherwise


def monitor_of(ports: ComputePorts, wake: Callable[[str], None]) -> "Monitor":
    """Return the monitor of the compute service; `wake` is that of the controller of instances."""
    findings, breaker = Findings(ports), stray_breaker(ports.reconcile_ports)
    departures = Departures(ports=ports, pace=Pace(ports.clock, _DEPARTED_PER_S))
    return Monitor(
        ports=ports,
        findings=findings,
        breaker=breaker,
        sweep=Sweep(ports=ports, findings=findings, wake=wake, pace=Pace(ports.clock, _JUDGED_PER_S)),
        stuck=Stuck(ports=ports, findings=findings, wake=wake, pace=Pace(ports.clock, _JUDGED_PER_S)),
        strays=Strays(ports=ports, findings=findings, breaker=breaker, departures=departures),
        allocations=Allocations(ports=ports, findings=findings, breaker=breaker, pace=Pace(ports.clock, _HELD_PER_S)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitor:
    """Looks at everything. Have `keep` and `strays.departures.keep` done as duties.

    And have `strays.suspect` told of servers without an instance.
    """

    ports: ComputePorts
    findings: Findings
    breaker: DeletionGuard
    sweep: Sweep
    stuck: Stuck
    strays: Strays
    allocations: Allocations

    async def keep(self) -> None:
        """Look for ever, while this process leads: a duty."""
        await while_leading(self.ports.leader, self._lead)

    async def _lead(self) -> None:
        await self.breaker.report()
        period, clock = self.ports.settings.monitor_interval, self.ports.clock
        seldom: timedelta = period * _SELDOM
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.allocations.keep_places())
                for look in (self.sweep.look, self.stuck.look, self.strays.look):
                    tasks.create_task(every(period, clock, look))
                tasks.create_task(every(seldom, clock, self.allocations.look))
        finally:
            self.findings.fall_silent()
