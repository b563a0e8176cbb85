"""Providers of the regions of a process: those of the configuration throughout, and those of the store as they change.

Each region of the store has a task of its own, so one that takes long to open delays no other, and not the start. A
region that changes is opened again first; calls that are in flight then have some time to end before its previous
connection is closed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast
from weakref import WeakSet

import structlog
from msgspec.structs import replace

from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Gone
from remuda.kernel.randomness import Randomness
from remuda.providers.contract.provider import Provider
from remuda.region.kinds.regions import Region, RegionSpec
from remuda.region.ports import ProviderChanges
from remuda.region.regions.rules import is_managed
from remuda.store.contract import Change, Store

_BACKOFF = Backoff(0.5, 30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenProvider:
    """A provider that is open, and how to close it."""

    provider: Provider
    close: Callable[[], Awaitable[None]]
    drain_s: float = 0.0
    """Time that calls in flight have before it is closed."""


OpenRegion = Callable[[Region], Awaitable[OpenProvider]]
"""Opens the provider of a region, without waiting for its cloud."""


@dataclass(slots=True)
class _Slot:
    """A region of the store: what is desired, and what is open."""

    desired: Region | None = None
    has_changed: asyncio.Event = field(default_factory=asyncio.Event)
    opened: OpenProvider | None = None
    task: asyncio.Task[None] | None = None


class RegionProviders:
    """Providers by the ids of their regions; implements `ProviderSource`."""

    def __init__(
        self,
        configured: Mapping[str, Provider],
        open_region: OpenRegion,
        *,
        store: Store,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        self._providers = dict(configured)
        self._configured, self._open_region = frozenset(configured), open_region
        self._store, self._clock, self._randomness = store, clock, randomness
        self._slots: dict[str, _Slot] = {}
        self._draining: set[asyncio.Task[None]] = set()
        self._subscriptions: WeakSet[ProviderChanges] = WeakSet()

    def find(self, region: str) -> Provider | None:
        return self._providers.get(region)

    def all(self) -> Mapping[str, Provider]:
        return self._providers

    def changes(self) -> ProviderChanges:
        changes = ProviderChanges()
        self._subscriptions.add(changes)
        return changes

    async def run(self) -> None:
        """Follow the regions of the store until cancelled."""
        while True:
            page = await self._store.list(Region)
            present = {region.name: region for region in page.items}
            for name in self._slots.keys() - present.keys():
                self._set(name, None)
            for name, region in present.items():
                self._set(name, region)
            try:
                await self._follow(page.version)
            except Gone:
                structlog.get_logger().info("watch of regions restarted")

    async def close(self) -> None:
        """Close everything that was opened by `run`, which has ended."""
        tasks = [*self._draining, *(slot.task for slot in self._slots.values() if slot.task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for name, slot in self._slots.items():
            if slot.opened is not None:
                self._providers.pop(name, None)
                await slot.opened.close()
        self._slots.clear()

    async def _follow(self, version: str) -> None:
        async with aclosing(cast("Any", self._store.watch(Region, since=version))) as events:
            async for event in events:
                if isinstance(event, Change):
                    self._set(event.resource.name, None if event.type == "deleted" else event.resource)

    def _set(self, name: str, region: Region | None) -> None:
        """Note what is desired of a region. Those of the configuration are open for as long as the process runs."""
        if name in self._configured or (name not in self._slots and (region is None or not is_managed(region))):
            return
        slot = self._slots.setdefault(name, _Slot())
        slot.desired = region
        slot.has_changed.set()
        if slot.task is None or slot.task.done():
            slot.task = asyncio.create_task(self._converge(name, slot), name=f"provider of {name}")

    async def _converge(self, name: str, slot: _Slot) -> None:
        """Open, open again and close the provider of one region, until the region is gone."""
        opened: Region | None = None
        failures = 0
        while True:
            slot.has_changed.clear()
            desired = slot.desired
            if _connection(desired) != _connection(opened):
                try:
                    await self._switch(name, slot, desired)
                    opened, failures = desired, 0
                except Exception:  # noqa: BLE001  no region ends the others, or itself
                    failures += 1
                    structlog.get_logger().exception("provider not opened", region=name)
                    await self._clock.sleep(_BACKOFF.pause_s(failures, self._randomness))
                    continue
            if opened is None and not slot.has_changed.is_set():
                del self._slots[name]
                return
            await slot.has_changed.wait()

    async def _switch(self, name: str, slot: _Slot, desired: Region | None) -> None:
        after = None if desired is None else await self._open_region(desired)
        before, slot.opened = slot.opened, after
        if after is None:
            self._providers.pop(name, None)
        else:
            self._providers[name] = after.provider
        structlog.get_logger().info("provider changed", region=name, is_open=after is not None)
        for changes in self._subscriptions:
            changes.add(name)
        if before is not None and before.drain_s:
            self._drain(before)
        elif before is not None:
            await before.close()

    def _drain(self, before: OpenProvider) -> None:
        async def drain() -> None:
            try:
                await self._clock.sleep(before.drain_s)
            finally:
                await before.close()

        task = asyncio.create_task(drain(), name="close of a previous provider")
        self._draining.add(task)
        task.add_done_callback(self._draining.discard)


def _connection(region: Region | None) -> tuple[str, RegionSpec] | None:
    """Return the part of a region for which its provider is opened again."""
    if region is None:
        return None
    return region.uid, replace(region.spec, security=None, tags=(), disabled=False)
