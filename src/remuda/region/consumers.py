"""Consumers of events from outside: deletions of projects in identity, and changes of providers and at them."""

import asyncio
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
from remuda.region.ports import IdentityPort, ProviderSource
from remuda.resources.conventions import PROJECT, REGION
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.objects import Resource

ROOTS: Sequence[type[Resource]] = (Identity, FileStorage, SSHCertificateAuthority)
"""Kinds that belong to a project directly: every other object of a project is owned by one of them."""

_BACKOFF = Backoff(0.5, 30.0)
_RECONNECT_S = 1.0


class ProjectConsumer:
    """Cascade: deletes the objects of a project whose deletion was requested.

    An object of `ROOTS` adds its reference to the project before it is created and checks the project again afterwards,
    so one visit after the deletion request finds all of them. Deleting twice is harmless: every process does it.
    """

    def __init__(self, store: Store, identity: IdentityPort, *, clock: Clock, randomness: Randomness) -> None:
        self._store, self._identity = store, identity
        self._clock, self._randomness = clock, randomness

    async def run(self) -> None:
        """Watch projects until cancelled. After an error, visit all of them again."""
        failures = 0
        while True:
            try:
                async with aclosing(self._identity.projects()) as projects:
                    async for state in projects:
                        if state.is_deleting:
                            await self.delete_contents(state.project.project)
                        failures = 0
            except RemudaError as error:
                structlog.get_logger().warning("watch of projects failed", error=error.code)
            failures += 1
            await self._clock.sleep(_BACKOFF.pause_s(failures, self._randomness))

    async def delete_contents(self, project: str) -> None:
        """Request the deletion of every root object of a project."""
        for kind in ROOTS:
            async for name in names(self._store, kind, labels={PROJECT: project}):
                root = await find(self._store, kind, name, include_deleting=False)
                if root is not None:
                    await self._store.delete(kind, root.name, uid=root.uid)


class ProviderEventListener:
    """Listener to the events of one provider, which enqueues the objects that they concern.

    Events after its construction are received, so build it before the first reconcile. The monitor finds what is missed
    while a provider sends nothing.
    """

    def __init__(self, provider: Provider, controllers: Mapping[EventSubject, Controller], clock: Clock) -> None:
        self._provider, self._controllers, self._clock = provider, controllers, clock
        self._events = self._subscribe()

    async def run(self) -> None:
        while True:
            try:
                async for event in self._events:
                    self.enqueue(event.subject, event.handle.name)
            except RemudaError as error:
                structlog.get_logger().warning("provider events failed", provider=self._provider.type, error=error.code)
            self._events = self._subscribe()
            await self._clock.sleep(_RECONNECT_S)

    def enqueue(self, subject: EventSubject, name: str) -> None:
        controller, key = self._controllers.get(subject), name if subject == "image" else id_in(name)
        if controller is not None and key:
            controller.enqueue(key)

    def _subscribe(self) -> AsyncIterator[CloudEvent]:
        assert self._provider.events is not None, "only providers with events have a listener"
        return self._provider.events.events()


class ProviderEvents:
    """Listeners to the events of all providers, which follow the providers as these come and go.

    Reconciles that a provider has missed were delayed. So when it is opened, all objects of its region are enqueued.
    """

    def __init__(
        self,
        source: ProviderSource,
        controllers: Mapping[EventSubject, Controller],
        regions: Controller,
        *,
        store: Store,
        clock: Clock,
    ) -> None:
        """Take the controllers of what events are about, and the controller of regions."""
        self._source, self._controllers, self._regions = source, controllers, regions
        self._store, self._clock = store, clock
        self._changes = source.changes()
        self._listeners = {
            region: listener for region, each in source.all().items() if (listener := self._listener(each)) is not None
        }
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Listen until cancelled."""
        try:
            for region, listener in self._listeners.items():
                self._start(region, listener)
            self._listeners.clear()
            async for region in self._changes:
                await self._follow(region)
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            self._tasks.clear()

    async def _follow(self, region: str) -> None:
        if (task := self._tasks.pop(region, None)) is not None:
            task.cancel()
        provider = self._source.find(region)
        if provider is None:
            return
        if (listener := self._listener(provider)) is not None:
            self._start(region, listener)
        self._regions.enqueue(region)
        for controller in dict.fromkeys(self._controllers.values()):
            async for name in names(self._store, controller.kind, labels={REGION: region}):
                controller.enqueue(name)

    def _listener(self, provider: Provider) -> ProviderEventListener | None:
        return None if provider.events is None else ProviderEventListener(provider, self._controllers, self._clock)

    def _start(self, region: str, listener: ProviderEventListener) -> None:
        self._tasks[region] = asyncio.create_task(listener.run(), name=f"provider events of {region}")
