"""Watch source of servers: a change of a server enqueues the instance that it is tagged with.

Each change costs one lookup by key. A start continues from the position of the last process (`watch_memory`). If that
is unknown or too old, all servers are sent; an instance whose status already shows its server is not enqueued. After
each complete list, instances whose server is missing are enqueued at once, instead of at the next resync.

After a start that has continued, all servers are compared nevertheless, slowly: orphans are known only in memory.

A server without its instance, of another incarnation, or that is not the linked one, is an orphan: it is counted,
logged and reported to the monitor.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal, TypeVar, cast, get_args

import structlog
from prometheus_client import CollectorRegistry, Counter

from remuda.clients.watch import Changed, Reached, Restarted, Synced
from remuda.compute.instances.rules import incarnation_of, instance_of, is_requested
from remuda.compute.instances.status import is_in_progress, is_projected, is_unreported
from remuda.compute.instances.watch_memory import InstanceQueue, WatchMemory
from remuda.compute.kinds import ComputeInstance
from remuda.compute.ports import ComputePorts, is_deleting, project_in
from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock, yield_to_loop
from remuda.kernel.errors import RemudaError, Unreadable, Unsealable
from remuda.kernel.randomness import Randomness
from remuda.reconcile.leader import Pace, while_leading
from remuda.reconcile.sources import names
from remuda.reconcile.status import is_provisioned
from remuda.region.api import RegionApi
from remuda.region.servers.schema import ServerRead
from remuda.resources.crud import find

OrphanReason = Literal["missing", "stale", "duplicate"]
"""Why a server is an orphan: no instance, another incarnation, or the instance has another server."""

T = TypeVar("T")
_STRIDE = 10
_NAMES = 100
_MAX_REMEMBERED = 10_000
_SYNC_POLL_S = 0.05
_REVIEWED_PER_S = 50.0
"""The rate of the review after a start: 100,000 servers take half an hour, and half a percent of a core."""
_PAUSE = Backoff(0.5, 30.0)


async def watch_forever(
    tell: Callable[[], AsyncIterator[T]], what: str, clock: Clock, randomness: Randomness
) -> AsyncGenerator[T]:
    """Yield the messages of a watch without end; after an error the watch starts over."""
    failures = 0
    while True:
        try:
            async with aclosing(cast("AsyncGenerator[T]", tell())) as things:
                async for each in things:
                    failures = 0
                    yield each
        except RemudaError as error:
            structlog.get_logger().warning("watch interrupted", what=what, error=error.code)
        failures += 1
        await clock.sleep(_PAUSE.pause_s(failures, randomness))


@dataclass(frozen=True, slots=True)
class AllServers:
    """Message: all present servers of instances were sent. An instance whose server is not among them has none."""

    ids: AbstractSet[str]
    cursor: str = ""


ServerMessage = Changed[ServerRead] | AllServers | Reached


async def watch_servers(region: RegionApi, since: str = "") -> AsyncGenerator[ServerMessage]:
    """Yield the servers that are tagged with an instance, `AllServers`, and then each change, without end.

    With a cursor it yields only the changes since then, if they are known.

    Their ids are the keys of a dictionary, which the garbage collector does not track: it would visit a set of 100,000
    again and again, and block the event loop.
    """
    listed: dict[str, None] | None = None
    async with aclosing(region.watch_servers(since)) as messages:
        async for message in messages:
            if isinstance(message, Restarted):
                listed = {}
            elif isinstance(message, Synced):
                yield AllServers((listed or {}).keys(), message.cursor)
                listed = None
            elif isinstance(message, Reached):
                if listed is None:
                    yield message
            elif instance_of(message.item):
                if listed is not None and message.type == "deleted":
                    listed.pop(message.item.metadata.id, None)
                elif listed is not None:
                    listed[message.item.metadata.id] = None
                yield message


class ServerWatch:
    """Watches the servers of all instances. `run` is a background task."""

    def __init__(
        self, ports: ComputePorts, controller: InstanceQueue, suspect: Callable[[ServerRead], None] = lambda _: None
    ) -> None:
        """Enqueue in `controller`, and report servers without an instance to `suspect`."""
        self._ports, self._controller, self._suspect = ports, controller, suspect
        self._store = ports.reconcile_ports.store
        self._counts = _counts(ports.metrics)
        self._memory = WatchMemory(ports, controller)
        self._orphans: dict[str, OrphanReason] = {}
        """The reported orphans, by the id of the server."""

    async def run(self) -> None:
        """Watch while this process leads."""
        await while_leading(self._ports.leader, self._watch)

    async def observe(self, change: Changed[ServerRead]) -> None:
        """Enqueue the instance of a server, if its status does not show the change."""
        server = change.item
        found = await find(self._store, ComputeInstance, instance_of(server))
        reason = None if change.type == "deleted" else _orphan_reason(found, server)
        self._classify(found, server, reason)
        is_own = change.type != "deleted" and not is_deleting(server) and reason is None
        if found is not None and not (is_own and self._is_current(found, server)):
            self._enqueue(found.name)

    async def _watch(self) -> None:
        while not self._controller.is_synced:  # it ignores keys before that
            await self._ports.clock.sleep(_SYNC_POLL_S)
        for instance in await self._memory.load():
            self._enqueue(instance)
        async with asyncio.TaskGroup() as tasks:
            if self._memory.cursor:
                tasks.create_task(self._review())
            tasks.create_task(self._follow())
            tasks.create_task(self._memory.run())

    def _messages(self, since: Callable[[], str]) -> AsyncGenerator[ServerMessage]:
        ports = self._ports
        return watch_forever(lambda: watch_servers(ports.region.api, since()), "servers", ports.clock, ports.randomness)

    async def _follow(self) -> None:
        """Observe every change since the remembered position, for ever."""
        async with aclosing(self._messages(lambda: self._memory.cursor)) as servers:
            count = 0
            async for each in servers:
                if isinstance(each, AllServers):
                    await self._enqueue_missing(each.ids)
                elif isinstance(each, Changed):
                    await self._observe(each)
                    count += 1
                self._memory.record_reached(each.cursor, by_change=isinstance(each, Changed))
                if count % _STRIDE == 0:
                    await yield_to_loop()

    async def _review(self) -> None:
        """Compare all servers with their instances once, slowly."""
        pace = Pace(self._ports.clock, _REVIEWED_PER_S)
        async with aclosing(self._messages(str)) as servers:
            async for each in servers:
                if isinstance(each, AllServers):
                    return
                if isinstance(each, Changed):
                    await self._observe(each, is_review=True)
                    await pace.step()

    def _enqueue(self, instance: str) -> None:
        self._memory.record_enqueued(instance)
        self._controller.enqueue(instance)

    async def _enqueue_missing(self, there: AbstractSet[str]) -> None:
        """Enqueue instances whose server is missing. A server usually has the id of its instance, so few are read."""
        count = 0
        async for name in names(self._store, ComputeInstance):
            count += 1
            if count % _NAMES == 0:
                await yield_to_loop()
            if name not in there and await self._lacks_server(name, there):
                self._enqueue(name)

    async def _lacks_server(self, instance: str, there: AbstractSet[str]) -> bool:
        try:
            found = await find(self._store, ComputeInstance, instance)
        except (Unreadable, Unsealable):
            return False  # the monitor reports it
        return found is not None and found.status.has_server and found.spec.server_id not in there

    async def _observe(self, change: Changed[ServerRead], *, is_review: bool = False) -> None:
        """Observe a change; an error of one instance does not affect the others."""
        server = change.item
        try:
            if not (is_review and await self._is_outdated_orphan(server)):
                await self.observe(change)
        except Exception as error:
            if isinstance(error, RemudaError) and error.retry:
                raise
            structlog.get_logger().exception(
                "server change not processed", server=server.metadata.id, instance=instance_of(server)
            )
            self._enqueue(instance_of(server))

    async def _is_outdated_orphan(self, server: ServerRead) -> bool:
        """Return whether a server only seems to be an orphan, because it was deleted since it was read."""
        if _orphan_reason(await find(self._store, ComputeInstance, instance_of(server)), server) is None:
            return False
        present = await self._ports.region.list_servers(instance_of(server), project_in(server.metadata))
        return not any(each.metadata.id == server.metadata.id and not is_deleting(each) for each in present)

    def _classify(self, found: ComputeInstance | None, server: ServerRead, reason: OrphanReason | None) -> None:
        id_ = server.metadata.id
        if reason is None:
            self._orphans.pop(id_, None)
            return
        if found is None or reason == "stale":
            self._suspect(server)
        if self._orphans.get(id_) == reason:
            return
        if len(self._orphans) >= _MAX_REMEMBERED:
            self._orphans.clear()  # present orphans are reported once more
        self._orphans[id_] = reason
        self._counts.labels(reason).inc()
        structlog.get_logger().warning("orphan server", reason=reason, server=id_, instance=instance_of(server))

    def _is_current(self, found: ComputeInstance, server: ServerRead) -> bool:
        """Return whether nothing is to be done: the status shows the server, or is too new to be reported."""
        now = self._ports.clock.now()
        if found.is_deleting:
            return False
        if is_in_progress(server):
            return is_unreported(found, now)
        return is_provisioned(found) and is_projected(found, server, now) and is_requested(found, server)


def _orphan_reason(found: ComputeInstance | None, server: ServerRead) -> OrphanReason | None:
    """Return the reason why a server is an orphan; None if it is not, or is being deleted."""
    if is_deleting(server):
        return None
    if found is None:
        return "missing"
    if incarnation_of(server) not in {"", found.uid}:
        return "stale"
    return None if found.spec.server_id in {"", server.metadata.id} else "duplicate"


def _counts(registry: CollectorRegistry) -> Counter:
    text = "Servers that name an instance which is not there, is another one, or has another server."
    counts = Counter("remuda_compute_orphan_servers", text, ["reason"], registry=registry)
    for reason in get_args(OrphanReason):
        counts.labels(reason)
    return counts
