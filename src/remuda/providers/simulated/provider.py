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
from remuda.providers.contract.provider import CloudEvent, Provider
from remuda.providers.simulated.catalogue import Catalogue
from remuda.providers.simulated.console import SimConsoles
from remuda.providers.simulated.database import open_storage
from remuda.providers.simulated.faults import Calm, DrawnFaults, FaultBounds, Faults, Latency, Past
from remuda.providers.simulated.filestorage import SimFileStorages
from remuda.providers.simulated.gateway import Desk, Disk, Ground
from remuda.providers.simulated.images import SimImages, SimOffers
from remuda.providers.simulated.loadbalancers import SimLoadBalancers
from remuda.providers.simulated.networks import Addresses, SimNetworks, SimPorts, SimSecurityGroups, SimTenancies
from remuda.providers.simulated.operator import Operator
from remuda.providers.simulated.server_states import HostsOfFlavors, Lives
from remuda.providers.simulated.servers import SimServers
from remuda.providers.simulated.timers import Clockwork


class _Listener(AsyncIterator[CloudEvent]):
    def __init__(self) -> None:
        self._pending: dict[CloudEvent, None] = {}
        self._has_pending = asyncio.Event()

    def tell(self, event: CloudEvent) -> None:
        self._pending[event] = None
        self._has_pending.set()

    async def __anext__(self) -> CloudEvent:
        while not self._pending:
            self._has_pending.clear()
            await self._has_pending.wait()
        event = next(iter(self._pending))
        del self._pending[event]
        return event


class Announcements:
    """Broadcaster of change events, the `CloudEvents` of the contract."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._listeners: list[ref[_Listener]] = []

    def events(self) -> AsyncIterator[CloudEvent]:
        """Yield changes from now on, without end; a dropped iterator is no longer served."""
        listener = _Listener()
        self._listeners.append(ref(listener))
        return listener

    def tell(self, events: Iterable[CloudEvent]) -> None:
        """Send events to all listeners."""
        if not self._listeners:
            return
        self._listeners = [each for each in self._listeners if each() is not None]
        for event in events:
            if not self._faults.fires("cloud.dropped_event"):
                for each in self._listeners:
                    if (listener := each()) is not None:
                        listener.tell(event)


_POLL_S = 0.5


class SimulatedCloud:
    """An open cloud, used through `provider`. `start` begins the events of timers, `stop` closes the cloud."""

    def __init__(self, context: Ground, announcements: Announcements, clock: Clock) -> None:
        self._context, self._clock = context, clock
        self._poll: asyncio.Task[None] | None = None
        states = Lives(context.storage, context.clockwork)
        offers, tenancies = SimOffers(context), SimTenancies(context)
        networks, groups = SimNetworks(context), SimSecurityGroups(context)
        ports = SimPorts(context, networks=networks, groups=groups)
        images = SimImages(context, states=states)
        self.consoles = SimConsoles(context, states=states, images=images, ports=ports, tenancies=tenancies)
        """Consoles; also maps a console URL to its server."""
        self.operator = Operator(context.storage, context.clockwork, states)
        """Out-of-band actions."""
        self.provider = Provider(
            type="simulated",
            lag_s=context.desk.lag_s,
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
        """Implementation of the contract."""

    @property
    def is_busy(self) -> bool:
        """Whether a write has not ended."""
        return self._context.desk.is_busy

    async def start(self) -> None:
        """Announce from now on the changes of timers and of other processes."""
        self._context.clockwork.start()
        if self._context.storage.is_shared:
            self._poll = asyncio.create_task(self._watch(), name="cloud watch")

    async def stop(self) -> None:
        """Close the cloud; writes that have not been done are dropped."""
        poll, self._poll = self._poll, None
        if poll is not None:
            poll.cancel()
            with suppress(asyncio.CancelledError):
                await poll
        await self._context.clockwork.stop()
        await self._context.desk.close()
        self._context.storage.close()
        if self._context.desk.disk is not None:
            await self._context.desk.disk.close()

    async def _watch(self) -> None:
        while True:
            await self._clock.sleep(_POLL_S)
            with suppress(Unavailable):  # the next poll announces them
                if self._context.storage.foreign_changes():
                    self._context.clockwork.look_again()


def open_cloud(
    path: Path | None,
    catalogue: Catalogue,
    *,
    clock: Clock,
    randomness: Randomness,
    faults: Faults | None = None,
    bounds: FaultBounds | None = None,
    latency: Latency | None = None,
    is_durable: bool | None = None,
) -> SimulatedCloud:
    """Open or create a cloud on a file, or in memory without a path.

    Faults and latency are those of the catalogue unless others are given. If the cloud `is_durable`, responses wait for
    the disk; by default it is if it is on a file and has latency anyway.
    """
    latency = catalogue.latency if latency is None else latency
    bounds = FaultBounds() if bounds is None else bounds
    if faults is None:
        faults = DrawnFaults(randomness, catalogue.faults) if catalogue.faults else Calm()
    if is_durable is None:
        is_durable = path is not None and not latency.is_zero
    storage = open_storage(path, clock=clock, syncs="elsewhere" if is_durable else "never")
    storage.write(lambda: Addresses(storage).offer(catalogue))
    storage.write(lambda: HostsOfFlavors(storage).offer(catalogue))
    timers = Clockwork(storage, clock)
    gateway = Desk(
        clock=clock,
        randomness=randomness,
        storage=storage,
        clockwork=timers,
        latency=latency,
        faults=faults,
        bounds=bounds,
        past=Past(clock.monotonic, bounds.stale_s),
        disk=Disk(path) if path is not None and is_durable else None,
    )
    announcements = Announcements(faults)
    storage.after_commit = announcements.tell
    context = Ground(catalogue=catalogue, storage=storage, clockwork=timers, desk=gateway, randomness=randomness)
    return SimulatedCloud(context, announcements, clock)
