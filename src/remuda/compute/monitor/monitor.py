"""The monitor: holds instances, servers and what is held for them against each other now and then.

It works in the process that leads, and slowly: a hundred thousand instances take hours, so that nobody notices it.
What happens is told by events; this is for what no event tells.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from remuda.compute.monitor.allocations import Allocations
from remuda.compute.monitor.departures import Departures
from remuda.compute.monitor.findings import Findings
from remuda.compute.monitor.orphans import Strays, stray_breaker
from remuda.compute.monitor.stuck import Stuck
from remuda.compute.monitor.sweep import Sweep
from remuda.compute.ports import ComputePorts
from remuda.reconcile.deletion_guard import Breaker
from remuda.reconcile.leader import Pace, every, while_leading

_JUDGED_PER_S = 2.0
_HELD_PER_S = 6.0
_DEPARTED_PER_S = 20.0
_SELDOM = 72  # every six hours, unless set otherwise


def monitor_of(ports: ComputePorts, wake: Callable[[str], None]) -> "Monitor":
    """Return the monitor of the compute service; `wake` is that of the controller of instances."""
    findings, breaker = Findings(ports), stray_breaker(ports.reconciling)
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
    breaker: Breaker
    sweep: Sweep
    stuck: Stuck
    strays: Strays
    allocations: Allocations

    async def keep(self) -> None:
        """Look for ever, while this process leads: a duty."""
        await while_leading(self.ports.leader, self._lead)

    async def _lead(self) -> None:
        await self.breaker.report()
        period, clock = self.ports.settings.check_every, self.ports.clock
        seldom: timedelta = period * _SELDOM
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.allocations.keep_places())
                for look in (self.sweep.look, self.stuck.look, self.strays.look):
                    tasks.create_task(every(period, clock, look))
                tasks.create_task(every(seldom, clock, self.allocations.look))
        finally:
            self.findings.fall_silent()
