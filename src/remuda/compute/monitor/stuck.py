"""Instances that should have moved on: what they waited for has not come for too long, or their network is gone.

Only the unsettled are looked at, of which there are few. One whose network is gone was not told so: it went while
nobody watched, and is asked to go after two looks in a row.
"""

from collections.abc import Callable
from dataclasses import dataclass

from remuda.compute.instances.ending import end_instances_on
from remuda.compute.kinds.instances import ComputeInstance
from remuda.compute.monitor.findings import Findings, Look
from remuda.compute.ports import ComputePorts
from remuda.kernel.conditions import find_condition
from remuda.kernel.errors import Unreadable, Unsealable
from remuda.reconcile.leader import Pace
from remuda.reconcile.sources import names
from remuda.reconcile.status import AVAILABLE, UNSETTLED, since
from remuda.resources.conventions import NETWORK
from remuda.resources.crud import find

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
        if began is None or self.ports.clock.now() - began < self.ports.settings.stuck_after:
            return
        if look.meet(instance.uid) == 1:
            said = find_condition(conditions, AVAILABLE)
            why = "nothing was said of it yet" if said is None else said.message
            message = f"it has not moved since {began:%Y-%m-%dT%H:%M:%SZ}: {why}"
            await self.findings.tell("stuck", instance, message)
        self.wake(instance.name)

    async def _check_network(self, instance: ComputeInstance, look: Look) -> None:
        said = find_condition(instance.status.conditions, AVAILABLE)
        if instance.is_marked or said is None or said.reason not in _NETWORK_ENDED:
            return
        network = instance.metadata.labels[NETWORK]
        found = await self.ports.region.find_network(network)
        if found is not None and not found.is_marked:
            self.wake(instance.name)
            return
        if look.meet(instance.uid) < _TWICE:
            return
        await self.findings.tell("network-gone", instance, "its network is gone, and it is not", network=network)
        ended = await end_instances_on(self.ports.store, network, self.ports.randomness, controller="monitor")
        if ended:
            message = "it is deleted with its network"
            await self.findings.tell_repaired("network-gone", instance, message, network=network)
