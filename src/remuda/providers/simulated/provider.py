"""Simulated cloud: its construction and its change events.

A listener receives each object once for all changes since it last read, so the queue of a slow listener is bounded by
the number of objects. It receives changes from the moment of the call.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from pathlib import Path
from weakref import ref

from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unavailable
from remuda.kernel.randomness import Randomness
from remuda.kernel.sealing import Sealer
from remuda.providers.contract.provider import CloudEvent, Provider
from remuda.providers.simulated.catalogue import SimCatalogue
from remuda.providers.simulated.console import SimConsoles
from remuda.providers.simulated.database import open_database
from remuda.providers.simulated.faults import FaultBounds, Faults, Latency, NoFaults, RandomFaults, StaleReads
from remuda.providers.simulated.filestorage import SimFileStorages
from remuda.providers.simulated.gateway import CloudContext, DiskSync, Gateway
from remuda.providers.simulated.images import SimFlavors, SimImages
from remuda.providers.simulated.loadbalancers import SimLoadBalancers
from remuda.providers.simulated.networks import AddressPool, SimNetworks, SimPorts, SimSecurityGroups, SimTenancies
from remuda.providers.simulated.operator import Operator
from remuda.providers.simulated.server_states import HostCapacity, ServerStateMachine
from remuda.providers.simulated.servers import SimServers
from remuda.providers.simulated.timers import Timers


class _Listener(AsyncIterator[CloudEvent]):
    def __init__(self) -> None:
        self._pending: dict[CloudEvent, None] = {}
        self._has_pending = asyncio.Event()

    def notify(self, event: CloudEvent) -> None:
        self._pending[event] = None
        self._has_pending.set()

    async def __anext__(self) -> CloudEvent:
        while not self._pending:
            self._has_pending.clear()
            await self._has_pending.wait()
        event = next(iter(self._pending))
        del self._pending[event]
        return event


class EventBroadcaster:
    """Broadcaster of change events, the `CloudEvents` of the contract."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._listeners: list[ref[_Listener]] = []

    def events(self) -> AsyncIterator[CloudEvent]:
        """Yield changes from now on, without end; a dropped iterator is no longer served."""
        listener = _Listener()
        self._listeners.append(ref(listener))
        return listener

    def publish(self, events: Iterable[CloudEvent]) -> None:
        if not self._listeners:
            return
        self._listeners = [each for each in self._listeners if each() is not None]
        for event in events:
            if not self._faults.fires("cloud.dropped_event"):
                for each in self._listeners:
                    if (listener := each()) is not None:
                        listener.notify(event)


_POLL_S = 0.5


class SimulatedCloud:
    """An open cloud, used through `provider`. `start` begins the events of timers, `stop` closes the cloud."""

    def __init__(self, context: CloudContext, announcements: EventBroadcaster, clock: Clock) -> None:
        self._context, self._clock = context, clock
        self._poll: asyncio.Task[None] | None = None
        states = ServerStateMachine(context.storage, context.timers)
        offers, tenancies = SimFlavors(context), SimTenancies(context)
        networks, groups = SimNetworks(context), SimSecurityGroups(context)
        ports = SimPorts(context, networks=networks, groups=groups)
        images = SimImages(context, states=states)
        self.consoles = SimConsoles(context, states=states, images=images, ports=ports, tenancies=tenancies)
        """Consoles; also maps a console URL to its server."""
        self.operator = Operator(context.storage, context.timers, states)
        """Out-of-band actions."""
        self.provider = Provider(
            type="simulated",
            lag_s=context.gateway.lag_s,
            catalogue=offers,
            external_networks=offers,
            images=images,
            tenancies=tenancies,
            networks=networks,
            security_groups=groups,
            ports=ports,
            servers=SimServers(context, states=states, ports=ports, images=images),
            consoles=self.consoles,
            snapshots=images,
            load_balancers=SimLoadBalancers(context, networks=networks),
            file_storages=SimFileStorages(context, networks=networks),
            events=announcements,
        )

    @property
    def is_busy(self) -> bool:
        return self._context.gateway.is_busy

    async def start(self) -> None:
        """Announce from now on the changes of timers and of other processes."""
        self._context.timers.start()
        if self._context.storage.is_shared:
            self._poll = asyncio.create_task(self._watch(), name="cloud watch")

    async def stop(self) -> None:
        """Close the cloud; writes that have not been done are dropped."""
        poll, self._poll = self._poll, None
        if poll is not None:
            poll.cancel()
            with suppress(asyncio.CancelledError):
                await poll
        await self._context.timers.stop()
        await self._context.gateway.close()
        self._context.storage.close()
        if self._context.gateway.disk is not None:
            await self._context.gateway.disk.close()

    async def _watch(self) -> None:
        while True:
            await self._clock.sleep(_POLL_S)
            with suppress(Unavailable):  # the next poll announces them
                if self._context.storage.announce_foreign_changes():
                    self._context.timers.reload()


def open_cloud(
    path: Path | None,
    catalogue: SimCatalogue,
    *,
    clock: Clock,
    randomness: Randomness,
    sealer: Sealer,
    faults: Faults | None = None,
    bounds: FaultBounds | None = None,
    latency: Latency | None = None,
    is_durable: bool | None = None,
) -> SimulatedCloud:
    """Open or create a cloud on a file, or in memory without a path.

    Faults and latency are those of the catalogue unless others are given. If the cloud `is_durable`, responses wait for
    the disk; by default it is if it is on a file and has latency anyway. The sealer seals the user data of servers.
    """
    latency = catalogue.latency if latency is None else latency
    bounds = FaultBounds() if bounds is None else bounds
    if faults is None:
        faults = RandomFaults(randomness, catalogue.faults) if catalogue.faults else NoFaults()
    if is_durable is None:
        is_durable = path is not None and not latency.is_zero
    storage = open_database(path, clock=clock, syncs="elsewhere" if is_durable else "never")
    storage.write(lambda: AddressPool(storage).load(catalogue))
    storage.write(lambda: HostCapacity(storage).load(catalogue))
    timers = Timers(storage, clock)
    gateway = Gateway(
        clock=clock,
        randomness=randomness,
        storage=storage,
        timers=timers,
        latency=latency,
        faults=faults,
        bounds=bounds,
        stale_reads=StaleReads(clock.monotonic, bounds.stale_s),
        disk=DiskSync(path) if path is not None and is_durable else None,
    )
    announcements = EventBroadcaster(faults)
    storage.after_commit = announcements.publish
    context = CloudContext(
        catalogue=catalogue, storage=storage, timers=timers, gateway=gateway, randomness=randomness, sealer=sealer
    )
    return SimulatedCloud(context, announcements, clock)
