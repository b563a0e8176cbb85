"""A simulated cloud, put together.

What the cloud tells without being asked.

A listener hears of each thing once for all that happened to it since it last looked, so one that is slow holds no more
than there are things. It listens from the moment it asks.
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
        self._news: dict[CloudEvent, None] = {}
        self._has_news = asyncio.Event()

    def tell(self, event: CloudEvent) -> None:
        self._news[event] = None
        self._has_news.set()

    async def __anext__(self) -> CloudEvent:
        while not self._news:
            self._has_news.clear()
            await self._has_news.wait()
        event = next(iter(self._news))
        del self._news[event]
        return event


class Announcements:
    """Tells all who listen. It is the `Events` of the contract."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._listeners: list[ref[_Listener]] = []

    def events(self) -> AsyncIterator[CloudEvent]:
        """Yield what changes from now on, without end; who lets go of it no longer listens."""
        listener = _Listener()
        self._listeners.append(ref(listener))
        return listener

    def tell(self, events: Iterable[CloudEvent]) -> None:
        """Tell of changes."""
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
    """An open cloud. Use it through `provider`; `start` lets it tell what happens by time, `stop` closes it."""

    def __init__(self, ground: Ground, announcements: Announcements, clock: Clock) -> None:
        self._ground, self._clock = ground, clock
        self._poll: asyncio.Task[None] | None = None
        lives = Lives(ground.storage, ground.clockwork)
        offers, tenancies = SimOffers(ground), SimTenancies(ground)
        networks, groups = SimNetworks(ground), SimSecurityGroups(ground)
        ports = SimPorts(ground, networks=networks, groups=groups)
        images = SimImages(ground, lives=lives)
        self.consoles = SimConsoles(ground, lives=lives, images=images, ports=ports, tenancies=tenancies)
        """Also knows whose screen an address shows."""
        self.operator = Operator(ground.storage, ground.clockwork, lives)
        """What happens out of band."""
        self.provider = Provider(
            type="simulated",
            lag_s=ground.desk.lag_s,
            catalogue=offers,
            external_networks=offers,
            images=images,
            tenancies=tenancies,
            networks=networks,
            security_groups=groups,
            ports=ports,
            servers=SimServers(ground, lives=lives, ports=ports, images=images),
            consoles=self.consoles,
            snapshots=images,
            load_balancers=SimLoadBalancers(ground, networks=networks),
            file_storages=SimFileStorages(ground, networks=networks),
            events=announcements,
        )
        """All that the cloud does for us."""

    @property
    def is_busy(self) -> bool:
        """Something that it was told to do has not ended."""
        return self._ground.desk.is_busy

    async def start(self) -> None:
        """Tell from now on what happens by time, and what others do to the file."""
        self._ground.clockwork.start()
        if self._ground.storage.is_shared:
            self._poll = asyncio.create_task(self._watch(), name="cloud watch")

    async def stop(self) -> None:
        """Close the cloud; what it was told to do and has not done, it will not do."""
        poll, self._poll = self._poll, None
        if poll is not None:
            poll.cancel()
            with suppress(asyncio.CancelledError):
                await poll
        await self._ground.clockwork.stop()
        await self._ground.desk.close()
        self._ground.storage.close()
        if self._ground.desk.disk is not None:
            await self._ground.desk.disk.close()

    async def _watch(self) -> None:
        while True:
            await self._clock.sleep(_POLL_S)
            with suppress(Unavailable):  # then the next look tells
                if self._ground.storage.foreign_changes():
                    self._ground.clockwork.look_again()


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
    """Open or make a cloud on a file, or in memory where there is no path.

    Faults and latency are those of the catalogue unless others are given. Answers wait for the disk if the cloud
    `is_durable`: by default, if it is on a file and takes time to answer anyway.
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
    clockwork = Clockwork(storage, clock)
    desk = Desk(
        clock=clock,
        randomness=randomness,
        storage=storage,
        clockwork=clockwork,
        latency=latency,
        faults=faults,
        bounds=bounds,
        past=Past(clock.monotonic, bounds.stale_s),
        disk=Disk(path) if path is not None and is_durable else None,
    )
    announcements = Announcements(faults)
    storage.after_commit = announcements.tell
    ground = Ground(catalogue=catalogue, storage=storage, clockwork=clockwork, desk=desk, randomness=randomness)
    return SimulatedCloud(ground, announcements, clock)
