"""What providers tell by themselves, as wakes of the controllers that it concerns."""

from collections.abc import AsyncIterator, Mapping

import structlog

from remuda.kernel.clock import Clock
from remuda.kernel.errors import RemudaError
from remuda.providers.contract.common import id_in
from remuda.providers.contract.provider import CloudEvent, Provider, Subject
from remuda.reconcile.controller import Driver

_PAUSE_S = 1.0


class Waking:
    """Listens to one provider, from the moment it is made."""

    def __init__(self, provider: Provider, drivers: Mapping[Subject, Driver], clock: Clock) -> None:
        """Make it before anything is looked at, so that no change after that is missed; then have `keep` done."""
        self._provider, self._drivers, self._clock = provider, drivers, clock
        self._heard = self._listen()

    async def keep(self) -> None:
        """Wake whom it concerns, for ever: a duty. What is missed while a provider is silent, the monitor finds."""
        while True:
            try:
                async for event in self._heard:
                    self.wake(event.subject, event.handle.name)
            except RemudaError as error:
                structlog.get_logger().warning("provider tells nothing", provider=self._provider.type, error=error.code)
            self._heard = self._listen()
            await self._clock.sleep(_PAUSE_S)

    def wake(self, subject: Subject, name: str) -> None:
        """Have looked at what a provider's name stands for."""
        driver, key = self._drivers.get(subject), name if subject == "image" else id_in(name)
        if driver is not None and key:
            driver.wake(key)

    def _listen(self) -> AsyncIterator[CloudEvent]:
        assert self._provider.events is not None, "one that tells nothing is not listened to"
        return self._provider.events.events()
