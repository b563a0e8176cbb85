"""What the cloud tells without being asked.

A listener hears of each thing once for all that happened to it since it last looked, so one that is slow holds no more
than there are things. It listens from the moment it asks.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from weakref import ref

from remuda.providers.contract.provider import CloudEvent
from remuda.providers.simulated.faults import Faults


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
