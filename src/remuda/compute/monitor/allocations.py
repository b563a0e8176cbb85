"""What is held for instances that are not there.

Only what was confirmed is looked at: the rest lapses by itself, unless its owner comes to be. What is nobody's in two
looks in a row is given back, and no more of it than the breaker of mass destruction lets pass: whoever has lost the
store would lose the account of what there is as well.
"""

from contextlib import aclosing, suppress
from dataclasses import dataclass, field

from remuda.compute.instances.server_watch import followed
from remuda.compute.kinds.instances import INSTANCE, ComputeInstance
from remuda.compute.monitor.findings import Findings, stand_in
from remuda.compute.ports import ComputePorts
from remuda.compute.seen import Held
from remuda.kernel.errors import Conflict, Unreadable, Unsealable
from remuda.quota.ports import Place
from remuda.reconcile.deletion_guard import Breaker
from remuda.reconcile.leader import Pace
from remuda.resources.crud import find
from remuda.store.contract import Store

_TWICE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocations:
    """Looks at what is held."""

    ports: ComputePorts
    findings: Findings
    breaker: Breaker
    pace: Pace
    _places: set[Place] = field(default_factory=set)

    async def keep_places(self) -> None:
        """Learn which projects there are, for ever: a duty."""
        ports = self.ports
        projects = followed(ports.identity.projects, "projects", ports.clock, ports.randomness)
        async with aclosing(projects):
            async for seen in projects:
                self._places.add(seen.place)

    async def look(self) -> None:
        """Look once at what is held in each project."""
        look = self.findings.begin("allocation-without-owner")
        for place in sorted(self._places):
            async for held in self.ports.identity.held_in(place):
                await self.pace.step()
                if not await _is_nobodys(held, self.ports.store):
                    continue
                count = look.meet(held.name)
                if count >= _TWICE:
                    await self._give_back(held, is_new=count == _TWICE)
            if not await self.ports.identity.has_project(place.organization, place.project):
                self._places.discard(place)
        self.findings.end("allocation-without-owner", look)

    async def _give_back(self, held: Held, *, is_new: bool) -> None:
        subject = stand_in(held.id, held.name, held.payer)
        if is_new:
            message = "quota is held for it, and it is not there"
            await self.findings.tell("allocation-without-owner", subject, message, allocation=held.name)
        with suppress(Conflict):  # another process counts at the same time: at the next look
            if await self.breaker.allow(subject, self.findings.run(subject)) is None:
                await self.ports.identity.let_go(held)
                message = "the quota that was held for it is given back"
                await self.findings.tell_repaired("allocation-without-owner", subject, message, allocation=held.name)


async def _is_nobodys(held: Held, store: Store) -> bool:
    if held.kind != INSTANCE.qualified or not held.is_confirmed:
        return False
    try:
        return await find(store, ComputeInstance, held.id) is None
    except (Unreadable, Unsealable):
        return False  # there is one, whatever it is
