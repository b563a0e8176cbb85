"""Region put together: the rooms over their ports, the API before them, and what goes on by itself behind them."""

from collections.abc import Iterable

from remuda.http.api import Api
from remuda.http.watch import WatchPorts
from remuda.operations.recovery import Recovery
from remuda.providers.metrics import CallMetrics
from remuda.region import control
from remuda.region.api import TABLE
from remuda.region.catalogue.provider_registry import Clouds
from remuda.region.catalogue.seed import seed_regions
from remuda.region.consumers.projects import ProjectConsumer
from remuda.region.control import CONCERNED
from remuda.region.filestorage.classes import ClassKeeper
from remuda.region.monitor.monitor import monitor_of
from remuda.region.ports import RegionPorts
from remuda.region.rooms import rooms
from remuda.region.waking import Waking
from remuda.service import api_ports, not_begun, operations_of
from remuda.store.background import Duties


class RegionApp:
    """The whole service."""

    def __init__(self, ports: RegionPorts) -> None:
        self.ports = ports
        self.table = TABLE
        self.clouds = Clouds(
            ports.watched or ports.store,
            ports.providers,
            clock=ports.clock,
            randomness=ports.randomness,
            settings=ports.settings.calls,
            poll_busy=ports.settings.poll_busy,
            look_again=ports.settings.look_again,
            metrics=CallMetrics(ports.metrics),
        )
        self.operations = operations_of(ports, control.sagas(ports))
        self.service = rooms(ports, self.clouds, self.operations)
        self.watches = WatchPorts(clock=ports.clock, closing=ports.closing)
        self.api = Api(TABLE, self.service, api_ports(ports, ports.authenticator, self.watches, url=ports.settings.url))
        self.drivers = control.drivers(ports, self.clouds)
        self._consumer = ProjectConsumer(ports.store, ports.identity, clock=ports.clock, randomness=ports.randomness)
        self._classes = ClassKeeper(ports.store, self.clouds, clock=ports.clock)
        self._monitor = monitor_of(ports, self.clouds, self.drivers["servers"].wake)
        self._recovery = Recovery(self.operations, is_alone=ports.is_alone)
        self._duties = Duties(ports.clock)

    async def start(self) -> None:
        """Write which regions there are, take up what was left, and begin."""
        settings = self.ports.settings
        await seed_regions(self.ports.store, settings.regions, now=self.ports.clock.now())
        self._duties.start("recovery", self._recovery.keep)
        self._duties.start("forgetting", self._recovery.keep_forgetting)
        for waking in self._wakings():  # before anything is looked at, so that no change after that is missed
            self._duties.start("provider events", waking.keep)
        for driver in self.drivers.values():
            await driver.start()
        self._duties.start("monitor", self._monitor.keep)
        self._duties.start("project consumer", self._consumer.keep)
        self._duties.start("file storage classes", self._classes.keep)

    async def stop(self) -> None:
        """End everything that goes on by itself."""
        self.ports.closing.set()
        for driver in self.drivers.values():
            await driver.stop()
        await self._duties.stop()
        await self.operations.stop()
        await self.clouds.close()

    def check(self) -> Iterable[tuple[str, str]]:
        """Return what speaks against sending requests here."""
        return not_begun(self.drivers.values())

    def _wakings(self) -> Iterable[Waking]:
        """Yield who listens to each provider that tells anything."""
        drivers = {subject: self.drivers[name] for subject, name in CONCERNED.items()}
        for provider in self.ports.providers.all():
            if provider.events is not None:
                yield Waking(provider, drivers, self.ports.clock)
