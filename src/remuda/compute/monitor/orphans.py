"""Servers that belong to an instance which is not there.

The watch of servers tells of them, and where an instance goes without its server that of instances (`departures`). One
that is there in two looks in a row is a finding. It is removed only if our own timeline tells that its instance was let
go (a call took effect after everybody had forgotten it), and no more of them than the breaker of mass destruction lets
pass. Everything else waits for an operator: whoever has lost the store would lose the servers as well.

Instances that go, and the servers that they leave behind.

No server changes when its instance goes without it, as one does whose finalizer somebody has taken away, so the watch
of servers tells nothing of that. Whatever goes is remembered, and its servers are looked for at the next look of the
monitor: one lookup for each deletion, and nothing while nothing is deleted. What was left while nobody followed is
found when all servers are told the next time (`following`).
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import cast

import structlog

from remuda.compute.history.explanation import find_gone
from remuda.compute.instances.rules import has_scope, incarnation_of, instance_of
from remuda.compute.instances.server_lookup import servers_naming, sorted_out
from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.compute.monitor.findings import Findings, stand_in
from remuda.compute.ports import ComputePorts, is_deleting, project_ref
from remuda.kernel.errors import Conflict, Gone, Unreadable, Unsealable
from remuda.reconcile.deletion_guard import DeletionGuard, DeletionGuardSettings, DeletionLimit
from remuda.reconcile.leader import Pace, while_leading
from remuda.reconcile.ports import ReconcilePorts
from remuda.region.servers.schema import ServerRead
from remuda.resources.crud import find
from remuda.store.contract import Change, Event
from remuda.store.logs import subject_of

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

    async def left_behind(self) -> AsyncIterator[ServerRead]:
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


_MOST_SUSPECTS = 10_000
_FEW = DeletionLimit(always=20)
_TWICE = 2


def stray_breaker(ports: ReconcilePorts) -> DeletionGuard:
    """Return what keeps strays from being removed by the dozen: they are counted against the instances there are."""
    return DeletionGuard(
        "strays", ComputeInstance, ports=ports, settings=DeletionGuardSettings(group=_FEW, overall=_FEW)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Strays:
    """Looks at servers that seem to be nobody's."""

    ports: ComputePorts
    findings: Findings
    breaker: DeletionGuard
    departures: Departures
    _suspects: dict[str, ServerRead] = field(default_factory=dict)

    def suspect(self, server: ServerRead) -> None:
        """Remember a server whose instance is not there; if there are too many, the last are told of again later."""
        if len(self._suspects) < _MOST_SUSPECTS:
            self._suspects[server.metadata.id] = server

    async def look(self) -> None:
        """Look once at all that are suspected."""
        async for server in self.departures.left_behind():
            self.suspect(server)
        look = self.findings.begin("server-without-instance")
        for server in list(self._suspects.values()):
            found = await self._still_there(server)
            if found is None:
                self._suspects.pop(server.metadata.id, None)
                continue
            count = look.meet(found.metadata.id)
            if count == _TWICE:
                message = "its server is still there, and the instance is not"
                await self.findings.tell("server-without-instance", _of(found), message, server=found.metadata.id)
            if count >= _TWICE:
                await self._remove(found)
        self.findings.end("server-without-instance", look)

    async def _still_there(self, server: ServerRead) -> ServerRead | None:
        """Return a server if it is there and nobody's."""
        try:
            instance = await find(self.ports.store, ComputeInstance, instance_of(server))
        except (Unreadable, Unsealable):
            return None  # there is one, whatever it is
        if instance is not None and incarnation_of(server) in {"", instance.uid}:
            return None
        return next((each for each in await self._named(server) if each.metadata.id == server.metadata.id), None)

    async def _named(self, server: ServerRead) -> Sequence[ServerRead]:
        found = await self.ports.region.list_servers(instance_of(server), project_ref(server.metadata))
        return [each for each in found if not is_deleting(each)]

    async def _remove(self, server: ServerRead) -> None:
        gone = await find_gone(self.ports.log, subject_of(INSTANCE.qualified, instance_of(server)))
        if gone is None or not incarnation_of(server) or gone.uid != incarnation_of(server):
            return
        subject = _of(server)
        with suppress(Conflict):  # another process counts at the same time: at the next look
            if await self.breaker.allow(subject, self.findings.run(subject)) is None:
                await self.ports.region.delete_server(server.metadata.id, project_ref(server.metadata))
                message = "its server had stayed, and is removed"
                await self.findings.tell_repaired(
                    "server-without-instance", subject, message, server=server.metadata.id
                )


def _of(server: ServerRead) -> ComputeInstance:
    """Return what stands for the instance of a server."""
    return stand_in(instance_of(server), incarnation_of(server), project_ref(server.metadata))
