"""Watch source of servers: a change of a server enqueues the instance that it is tagged with.

Each change costs one lookup by key. At the start all servers are sent; an instance whose status already shows its
server is not enqueued. After each complete list, instances whose server is missing are enqueued at once, instead of at
the next resync.

A server without its instance, of another incarnation, or that is not the linked one, is an orphan: it is counted,
logged and reported to the monitor.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar, cast, get_args

import structlog
from prometheus_client import CollectorRegistry, Counter

from remuda.clients.watch import Changed, Restarted, Synced
from remuda.compute.instances.rules import incarnation_of, instance_of, is_requested
from remuda.compute.instances.status import is_in_progress, is_projected, is_unreported
from remuda.compute.kinds import ComputeInstance
from remuda.compute.ports import ComputePorts, is_deleting
from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock, yield_to_loop
from remuda.kernel.errors import RemudaError, Unreadable, Unsealable
from remuda.kernel.randomness import Randomness
from remuda.reconcile.leader import while_leading
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
_PAUSE = Backoff(0.5, 30.0)


class InstanceQueue(Protocol):
    """The controller of instances, as far as keys are enqueued."""

    @property
    def is_synced(self) -> bool:
        """Whether it leads and accepts keys."""

    def enqueue(self, key: str) -> None:
        """Enqueue an instance."""


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


async def watch_servers(region: RegionApi) -> AsyncGenerator[Changed[ServerRead] | AllServers]:
    """Yield the servers that are tagged with an instance, `AllServers`, and then each change, without end.

    Their ids are the keys of a dictionary, which the garbage collector does not track: it would visit a set of 100,000
    again and again, and block the event loop.
    """
    listed: dict[str, None] | None = None
    async with aclosing(region.watch_servers()) as messages:
        async for message in messages:
            if isinstance(message, Restarted):
                listed = {}
            elif isinstance(message, Synced):
                yield AllServers((listed or {}).keys())
                listed = None
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
            self._controller.enqueue(found.name)

    async def _watch(self) -> None:
        ports = self._ports
        while not self._controller.is_synced:  # it ignores keys before that
            await ports.clock.sleep(_SYNC_POLL_S)
        servers = watch_forever(lambda: watch_servers(ports.region.api), "servers", ports.clock, ports.randomness)
        async with aclosing(servers):
            count = 0
            async for each in servers:
                if isinstance(each, AllServers):
                    await self._enqueue_missing(each.ids)
                    continue
                await self._observe(each)
                count += 1
                if count % _STRIDE == 0:
                    await yield_to_loop()

    async def _enqueue_missing(self, there: AbstractSet[str]) -> None:
        """Enqueue instances whose server is missing. A server usually has the id of its instance, so few are read."""
        count = 0
        async for name in names(self._store, ComputeInstance):
            count += 1
            if count % _NAMES == 0:
                await yield_to_loop()
            if name not in there and await self._lacks_server(name, there):
                self._controller.enqueue(name)

    async def _lacks_server(self, instance: str, there: AbstractSet[str]) -> bool:
        try:
            found = await find(self._store, ComputeInstance, instance)
        except (Unreadable, Unsealable):
            return False  # the monitor reports it
        return found is not None and found.status.has_server and found.spec.server_id not in there

    async def _observe(self, change: Changed[ServerRead]) -> None:
        """Observe a change; an error of one instance does not affect the others."""
        server = change.item
        try:
            await self.observe(change)
        except Exception as error:
            if isinstance(error, RemudaError) and error.retry:
                raise
            structlog.get_logger().exception(
                "server change not processed", server=server.metadata.id, instance=instance_of(server)
            )
            self._controller.enqueue(instance_of(server))

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
