"""Orphans: servers whose instance does not exist.

The server watch reports them, and `DeletedInstances` those of instances that were deleted without their server.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import cast

import structlog

from remuda.compute.history.explanation import find_tombstone
from remuda.compute.instances.rules import has_scope, incarnation_of, instance_of
from remuda.compute.instances.server_lookup import classified, list_tagged
from remuda.compute.kinds import INSTANCE, ComputeInstance
from remuda.compute.monitor.findings import Findings, placeholder_instance
from remuda.compute.ports import ComputePorts, is_deleting, project_in
from remuda.kernel.errors import Conflict, Gone, Unreadable, Unsealable
from remuda.reconcile.deletion_guard import DeletionGuard, DeletionGuardSettings, DeletionLimit
from remuda.reconcile.leader import Pace, while_leading
from remuda.reconcile.ports import ReconcilePorts
from remuda.region.servers.schema import ServerRead
from remuda.resources.crud import find
from remuda.store.contract import Change, Event
from remuda.store.logs import subject_of

_MAX_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedInstances:
    """Watch of deleted instances, whose servers may remain; `run` is a background task.

    An instance whose finalizer was removed by another program goes without its server, and the server watch reports
    nothing. What is missed while no process watches is found when all servers are listed again.
    """

    ports: ComputePorts
    pace: Pace
    _deleted: dict[str, ComputeInstance] = field(default_factory=dict)
    """The last state of each instance, by uid."""

    async def run(self) -> None:
        """Watch while this process leads, until cancelled."""
        await while_leading(self.ports.leader, self._watch)

    async def remaining_servers(self) -> AsyncIterator[ServerRead]:
        """Yield the servers of instances that were deleted since the last call."""
        for uid, instance in list(self._deleted.items()):
            await self.pace.step()
            for server in classified(instance, await list_tagged(self.ports.region, instance)).candidates:
                yield server
            self._deleted.pop(uid, None)

    async def _watch(self) -> None:
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
                structlog.get_logger().info("watch of deleted instances restarted")

    def _remember(self, instance: ComputeInstance) -> None:
        if len(self._deleted) < _MAX_REMEMBERED and has_scope(instance):
            self._deleted[instance.uid] = instance


_MAX_SUSPECTS = 10_000
_FEW = DeletionLimit(always=20)
_TWICE = 2


def orphan_guard(ports: ReconcilePorts) -> DeletionGuard:
    """Return the guard of the deletion of orphans, which are counted relative to the stored instances."""
    return DeletionGuard(
        "compute-orphans", ComputeInstance, ports=ports, settings=DeletionGuardSettings(group=_FEW, overall=_FEW)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanCheck:
    """Checks servers whose instance does not exist.

    A server that is found in two rounds is a finding. It is deleted only if the timeline has the tombstone of its
    instance, within the limits of the deletion guard. All others wait for an operator: after a loss of the store every
    server would seem to be an orphan.
    """

    ports: ComputePorts
    findings: Findings
    guard: DeletionGuard
    deleted: DeletedInstances
    _suspects: dict[str, ServerRead] = field(default_factory=dict)

    def add_suspect(self, server: ServerRead) -> None:
        """Remember a server without an instance. Those above the limit are reported again by a later resync."""
        if len(self._suspects) < _MAX_SUSPECTS:
            self._suspects[server.metadata.id] = server

    async def run(self) -> None:
        async for server in self.deleted.remaining_servers():
            self.add_suspect(server)
        checked = self.findings.begin("server-without-instance")
        for server in list(self._suspects.values()):
            found = await self._find_orphan(server)
            if found is None:
                self._suspects.pop(server.metadata.id, None)
                continue
            count = checked.record(found.metadata.id)
            if count == _TWICE:
                message = "the instance does not exist and has a server"
                await self.findings.report("server-without-instance", _of(found), message, server=found.metadata.id)
            if count >= _TWICE:
                await self._delete(found)
        self.findings.end("server-without-instance", checked)

    async def _find_orphan(self, server: ServerRead) -> ServerRead | None:
        """Return the present state of a server if it still exists without an instance."""
        try:
            instance = await find(self.ports.store, ComputeInstance, instance_of(server))
        except (Unreadable, Unsealable):
            return None  # a damaged instance exists
        if instance is not None and incarnation_of(server) in {"", instance.uid}:
            return None
        return next((each for each in await self._named(server) if each.metadata.id == server.metadata.id), None)

    async def _named(self, server: ServerRead) -> Sequence[ServerRead]:
        found = await self.ports.region.list_servers(instance_of(server), project_in(server.metadata))
        return [each for each in found if not is_deleting(each)]

    async def _delete(self, server: ServerRead) -> None:
        tombstone = await find_tombstone(self.ports.log, subject_of(INSTANCE.qualified, instance_of(server)))
        if tombstone is None or not incarnation_of(server) or tombstone.uid != incarnation_of(server):
            return
        subject, id_ = _of(server), server.metadata.id
        with suppress(Conflict):  # another process counts at the same time: the next round tries again
            if await self.guard.admit_deletion(subject, self.findings.context(subject)) is None:
                await self.ports.region.delete_server(id_, project_in(server.metadata))
                message = "its server was deleted"
                await self.findings.report_repair("server-without-instance", subject, message, server=id_)


def _of(server: ServerRead) -> ComputeInstance:
    return placeholder_instance(instance_of(server), incarnation_of(server), project_in(server.metadata))
