"""Instances that go, and the servers that they leave behind.

No server changes when its instance goes without it, as one does whose finalizer somebody has taken away, so the watch
of servers tells nothing of that. Whatever goes is remembered, and its servers are looked for at the next look of the
monitor: one lookup for each deletion, and nothing while nothing is deleted. What was left while nobody followed is
found when all servers are told the next time (`following`).
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import cast

import structlog

from remuda.compute.instances.rules import has_scope
from remuda.compute.instances.server_lookup import servers_naming, sorted_out
from remuda.compute.kinds.instances import ComputeInstance
from remuda.compute.ports import ComputePorts
from remuda.compute.seen import ServerSeen
from remuda.kernel.errors import Gone
from remuda.reconcile.leader import Pace, while_leading
from remuda.store.contract import Change, Event

_MOST_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Departures:
    """Follows instances as they go. Have `keep` done as a duty."""

    ports: ComputePorts
    pace: Pace
    _departed: dict[str, ComputeInstance] = field(default_factory=dict)
    """The last state of each, by its uid."""

    async def keep(self) -> None:
        """Follow for ever, while this process leads: a duty."""
        await while_leading(self.ports.leader, self._follow)

    async def left_behind(self) -> AsyncIterator[ServerSeen]:
        """Yield the servers that are still there of instances that went since the last time."""
        for uid, instance in list(self._departed.items()):
            await self.pace.step()
            for server in sorted_out(instance, await servers_naming(self.ports.region, instance)).standing:
                yield server
            self._departed.pop(uid, None)

    async def _follow(self) -> None:
        store = self.ports.store
        while True:
            version = (await store.list_names(ComputeInstance, limit=1)).version
            watch = cast("AsyncGenerator[Event[ComputeInstance]]", store.watch(ComputeInstance, since=version))
            try:
                async with aclosing(watch) as events:
                    async for event in events:
                        if isinstance(event, Change) and event.type == "deleted":
                            self._remember(event.resource)
            except Gone:
                structlog.get_logger().info("departures are followed anew")

    def _remember(self, instance: ComputeInstance) -> None:
        """Remember one that went; of too many at once, and of one that does not say where it was, nothing is known."""
        if len(self._departed) < _MOST_REMEMBERED and has_scope(instance):
            self._departed[instance.uid] = instance
