"""The end of a project is the end of everything in it: its roots are deleted, and with each root all that it owns.

Roots are what keeps a project. They put their reference on it before they exist and look at it again when they do, so
once a project is marked no new one comes to stay, and to look once after the mark is enough. To ask twice is fine, so
every process asks, whoever leads.

What happens here because of what happens in other services.

What providers tell by themselves, as wakes of the controllers that it concerns.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing

import structlog

from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock
from remuda.kernel.errors import RemudaError
from remuda.kernel.randomness import Randomness
from remuda.providers.contract.common import id_in
from remuda.providers.contract.provider import CloudEvent, EventSubject, Provider
from remuda.reconcile.controller import Controller
from remuda.reconcile.sources import names
from remuda.region.kinds.authorities import SSHCertificateAuthority
from remuda.region.kinds.filestorage import FileStorage
from remuda.region.kinds.networks import Identity
from remuda.region.ports import IdentityPort
from remuda.resources.conventions import PROJECT
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.objects import Resource

ROOTS: Sequence[type[Resource]] = (Identity, FileStorage, SSHCertificateAuthority)
"""What stands in a project by itself: everything else has one of these as its owner, or its owner's."""

_PAUSE = Backoff(0.5, 30.0)


class ProjectConsumer:
    """Watches projects end."""

    def __init__(self, store: Store, identity: IdentityPort, *, clock: Clock, randomness: Randomness) -> None:
        self._store, self._identity = store, identity
        self._clock, self._randomness = clock, randomness

    async def run(self) -> None:
        """Watch for ever: a duty. Whatever goes wrong, all projects are looked at again."""
        failures = 0
        while True:
            try:
                async with aclosing(self._identity.projects()) as projects:
                    async for seen in projects:
                        if seen.is_deleting:
                            await self.delete_contents(seen.project.project)
                        failures = 0
            except RemudaError as error:
                structlog.get_logger().warning("projects are not watched", error=error.code)
            failures += 1
            await self._clock.sleep(_PAUSE.pause_s(failures, self._randomness))

    async def delete_contents(self, project: str) -> None:
        """Ask for everything in a project to go."""
        for kind in ROOTS:
            async for name in names(self._store, kind, labels={PROJECT: project}):
                root = await find(self._store, kind, name, marked=False)
                if root is not None:
                    await self._store.delete(kind, root.name, uid=root.uid)


_PAUSE_S = 1.0


class ProviderEventListener:
    """Listens to one provider, from the moment it is made."""

    def __init__(self, provider: Provider, drivers: Mapping[EventSubject, Controller], clock: Clock) -> None:
        """Make it before anything is looked at, so that no change after that is missed; then have `keep` done."""
        self._provider, self._controllers, self._clock = provider, drivers, clock
        self._events = self._listen()

    async def run(self) -> None:
        """Wake whom it concerns, for ever: a duty. What is missed while a provider is silent, the monitor finds."""
        while True:
            try:
                async for event in self._events:
                    self.enqueue(event.subject, event.handle.name)
            except RemudaError as error:
                structlog.get_logger().warning("provider tells nothing", provider=self._provider.type, error=error.code)
            self._events = self._listen()
            await self._clock.sleep(_PAUSE_S)

    def enqueue(self, subject: EventSubject, name: str) -> None:
        """Have looked at what a provider's name stands for."""
        driver, key = self._controllers.get(subject), name if subject == "image" else id_in(name)
        if driver is not None and key:
            driver.enqueue(key)

    def _listen(self) -> AsyncIterator[CloudEvent]:
        assert self._provider.events is not None, "one that tells nothing is not listened to"
        return self._provider.events.events()
