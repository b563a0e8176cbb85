"""The sweep over all instances: has each its server, is held what it costs, do its labels say where it is.

What those at rest have is held against region and identity: with the others somebody is busy, and `stuck` looks
whether that comes to an end. Damage is looked for in all of them. Nothing is destroyed here. A missing server is the
controller's to look for and to make again; what is held wrongly is put right where two looks in a row found it so.
"""

from collections.abc import Callable
from dataclasses import dataclass

from remuda.compute.instances.damage import broken_spec
from remuda.compute.instances.paying import charge_for
from remuda.compute.instances.server_lookup import Linked, linked_to
from remuda.compute.kinds.instances import ComputeInstance
from remuda.compute.monitor.findings import Checker, Findings, Look, stand_in
from remuda.compute.ports import ComputePorts
from remuda.kernel.errors import Conflict, Forbidden, Unreadable, Unsealable
from remuda.quota.lock import is_in_hand
from remuda.quota.ports import Charge, Place
from remuda.quota.reservation import settle_charge
from remuda.reconcile.leader import Pace
from remuda.reconcile.sources import names
from remuda.reconcile.status import is_unsettled
from remuda.resources.crud import find

_CHECKERS: tuple[Checker, ...] = ("instance-without-server", "allocation-differs", "damaged")
_TWICE = 2


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
                await self._damaged(stand_in(name, "", Place("", "")), error.sentence, looks["damaged"])
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
        if await self._is_held(charge) or await is_in_hand(self.ports.store, instance):
            return
        if look.meet(instance.uid) == _TWICE:
            await self.findings.tell("allocation-differs", instance, "what is held for it is not what it costs")
        if look.met[instance.uid] >= _TWICE:
            await self._hold(instance)

    async def _is_held(self, charge: Charge) -> bool:
        held = await self.ports.identity.held_for(charge)
        return held is not None and held.is_confirmed and held.amounts == frozenset(charge.amounts)

    async def _hold(self, instance: ComputeInstance) -> None:
        """Hold what an instance costs, if it is still the same; what exceeds a quota or changes stays a finding."""
        found = await find(self.ports.store, ComputeInstance, instance.name, marked=False)
        if found is None or found.version != instance.version:
            return
        charge, identity = charge_for(found), self.ports.identity
        try:
            if await settle_charge(identity, charge) is not None:
                return
            await identity.change(charge)
        except (Conflict, Forbidden):
            return
        await self.findings.tell_repaired("allocation-differs", found, "what it costs is held")
