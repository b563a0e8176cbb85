"""Compute put together: the rooms over their ports, the API before them, and what goes on by itself behind them."""

from collections.abc import Iterable

from remuda.compute import control
from remuda.compute.api import TABLE
from remuda.compute.ports import ComputePorts
from remuda.compute.rooms import rooms
from remuda.http.api import Api
from remuda.http.watch import WatchPorts
from remuda.operations.recovery import Recovery
from remuda.service import api_ports, not_begun, operations_of
from remuda.store.background import Duties


class ComputeApp:
    """The whole service."""

    def __init__(self, ports: ComputePorts) -> None:
        self.ports = ports
        self.table = TABLE
        self.operations = operations_of(ports, control.sagas(ports))
        self.service = rooms(ports, self.operations)
        self.watches = WatchPorts(clock=ports.clock, closing=ports.closing)
        self.api = Api(TABLE, self.service, api_ports(ports, ports.authenticator, self.watches, url=ports.settings.url))
        self.drivers = control.drivers(ports)
        self._recovery = Recovery(self.operations, is_alone=ports.is_alone)
        self._duties = Duties(ports.clock)

    async def start(self) -> None:
        """Take up what was left, and begin."""
        self._duties.start("recovery", self._recovery.keep)
        self._duties.start("forgetting", self._recovery.keep_forgetting)
        for name, duty in control.duties(self.ports, self.drivers):
            self._duties.start(name, duty)
        for driver in self.drivers.values():
            await driver.start()

    async def stop(self) -> None:
        """End everything that goes on by itself."""
        self.ports.closing.set()
        for driver in self.drivers.values():
            await driver.stop()
        await self._duties.stop()
        await self.operations.stop()

    def check(self) -> Iterable[tuple[str, str]]:
        """Return what speaks against sending requests here."""
        return not_begun(self.drivers.values())
