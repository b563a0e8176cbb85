"""The watch of servers: each change of one wakes the controller of the instance that it says it belongs to.

That is one lookup by key, however many instances there are. When it begins every server is told once. Whatever its
instance already shows is passed over, so a start wakes nobody without a reason: what was unsettled the controller looks
at by itself, and what has changed meanwhile differs. When all servers have been told, then or anew, instances are held
against them: one whose server went while nobody watched is looked at now, and not when the next scan comes by.

A server whose instance is not there, or is another incarnation, and one that is not its instance's own are odd: they
are counted, told in the log, and handed to the monitor. Where there is an instance, its controller tells in its
timeline what it makes of that.
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
from remuda.compute.instances.status import is_shown, is_under_way, is_untold
from remuda.compute.kinds import ComputeInstance
from remuda.compute.ports import ComputePorts, is_deleting
from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock, yield_to_loop
from remuda.kernel.errors import RemudaError, Unreadable, Unsealable
from remuda.kernel.randomness import Randomness
from remuda.quota.reservation import is_provisioned
from remuda.reconcile.leader import while_leading
from remuda.reconcile.sources import names
from remuda.region.port import RegionApi
from remuda.region.servers.schema import ServerRead
from remuda.resources.crud import find

Odd = Literal["missing", "stale", "duplicate"]
"""Why a server is odd: it has no instance, one that took the place of its own, or is not the one of its instance."""

T = TypeVar("T")
_STRIDE = 10
_NAMES = 100
_MOST_REMEMBERED = 10_000
_HAS_BEGUN_S = 0.05
_PAUSE = Backoff(0.5, 30.0)


class InstanceQueue(Protocol):
    """The controller of instances, as far as it is woken."""

    @property
    def is_synced(self) -> bool:
        """Whether it controls, and hears what it is told."""
        ...

    def enqueue(self, key: str) -> None:
        """Look at an instance now."""
        ...


async def followed(
    tell: Callable[[], AsyncIterator[T]], what: str, clock: Clock, randomness: Randomness
) -> AsyncGenerator[T]:
    """Yield what another service tells of its things, for ever; whatever goes wrong, all of it is told again."""
    failures = 0
    while True:
        try:
            async with aclosing(cast("AsyncGenerator[T]", tell())) as things:
                async for each in things:
                    failures = 0
                    yield each
        except RemudaError as error:
            structlog.get_logger().warning("not followed", what=what, error=error.code)
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


class Following:
    """Follows the servers of all instances. Have `keep` done as a duty."""

    def __init__(
        self, ports: ComputePorts, controller: InstanceQueue, suspect: Callable[[ServerRead], None] = lambda _: None
    ) -> None:
        """Wake `controller`, and tell `suspect` of servers whose instance is not there."""
        self._ports, self._controller, self._suspect = ports, controller, suspect
        self._store = ports.reconcile_ports.store
        self._counts = _counts(ports.metrics)
        self._odd: dict[str, Odd] = {}
        """What was told already, by the server's id."""

    async def keep(self) -> None:
        """Follow for ever, while this process leads: a duty."""
        await while_leading(self._ports.leader, self._follow)

    async def notice(self, change: Changed[ServerRead]) -> None:
        """Wake whom it concerns."""
        server = change.item
        found = await find(self._store, ComputeInstance, instance_of(server))
        why = None if change.type == "deleted" else _why_odd(found, server)
        self._judge(found, server, why)
        is_own = change.type != "deleted" and not is_deleting(server) and why is None
        if found is not None and not (is_own and self._is_known(found, server)):
            self._controller.enqueue(found.name)

    async def _follow(self) -> None:
        ports = self._ports
        while not self._controller.is_synced:  # what it is told before that it does not hear
            await ports.clock.sleep(_HAS_BEGUN_S)
        servers = followed(lambda: watch_servers(ports.region.api), "servers", ports.clock, ports.randomness)
        async with aclosing(servers):
            count = 0
            async for each in servers:
                if isinstance(each, AllServers):
                    await self._miss(each.ids)
                    continue
                await self._notice(each)
                count += 1
                if count % _STRIDE == 0:
                    await yield_to_loop()

    async def _miss(self, there: AbstractSet[str]) -> None:
        """Wake those whose server is not there. Nearly always a server has its instance's id, so few are read."""
        count = 0
        async for name in names(self._store, ComputeInstance):
            count += 1
            if count % _NAMES == 0:
                await yield_to_loop()
            if name not in there and await self._misses_its_server(name, there):
                self._controller.enqueue(name)

    async def _misses_its_server(self, instance: str, there: AbstractSet[str]) -> bool:
        try:
            found = await find(self._store, ComputeInstance, instance)
        except (Unreadable, Unsealable):
            return False  # the monitor tells of it
        return found is not None and found.status.has_server and found.spec.server_id not in there

    async def _notice(self, change: Changed[ServerRead]) -> None:
        """Wake whom it concerns; one instance that cannot be judged keeps no other from being woken."""
        server = change.item
        try:
            await self.notice(change)
        except Exception as error:
            if isinstance(error, RemudaError) and error.retry:
                raise
            structlog.get_logger().exception(
                "server not noticed", server=server.metadata.id, instance=instance_of(server)
            )
            self._controller.enqueue(instance_of(server))

    def _judge(self, found: ComputeInstance | None, server: ServerRead, why: Odd | None) -> None:
        id_ = server.metadata.id
        if why is None:
            self._odd.pop(id_, None)
            return
        if found is None or why == "stale":
            self._suspect(server)
        if self._odd.get(id_) == why:
            return
        if len(self._odd) >= _MOST_REMEMBERED:
            self._odd.clear()  # what is still odd is told once more
        self._odd[id_] = why
        self._counts.labels(why).inc()
        structlog.get_logger().warning("odd server", why=why, server=id_, instance=instance_of(server))

    def _is_known(self, found: ComputeInstance, server: ServerRead) -> bool:
        """Tell whether there is nothing to do: an instance at rest shows its server, or is too new to show its way."""
        now = self._ports.clock.now()
        if found.is_deleting:
            return False
        if is_under_way(server):
            return is_untold(found, now)
        return is_provisioned(found) and is_shown(found, server, now) and is_requested(found, server)


def _why_odd(found: ComputeInstance | None, server: ServerRead) -> Odd | None:
    """Return why a server is odd; one that goes is not, whatever it was."""
    if is_deleting(server):
        return None
    if found is None:
        return "missing"
    if incarnation_of(server) not in {"", found.uid}:
        return "stale"
    return None if found.spec.server_id in {"", server.metadata.id} else "duplicate"


def _counts(registry: CollectorRegistry) -> Counter:
    text = "Servers that name an instance which is not there, is another one, or has another server."
    counts = Counter("remuda_compute_odd_servers", text, ["why"], registry=registry)
    for why in get_args(Odd):
        counts.labels(why)
    return counts
