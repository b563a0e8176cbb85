"""Memory of the server watch: how far it has come, and which instances were not reconciled since.

A process that starts continues from there. Otherwise it would have to compare every server with its instance, which
takes ten seconds of CPU for a hundred thousand.

The memory may be too old, never too new. A cursor is stored after all changes up to it were observed, together with the
instances that those changes have enqueued, except for instances whose reconcile has ended since, so its result is
stored. A crash between a reconcile and the next save repeats comparisons, and loses none. An unsettled instance need
not be stored, because a start reconciles it anyway. The memory of another source code is not used.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

import structlog
from msgspec.structs import replace

from remuda.compute.kinds import ComputeInstance, WatchPosition, WatchPositionSpec
from remuda.compute.ports import ComputePorts
from remuda.kernel.clock import yield_to_loop
from remuda.kernel.errors import RemudaError, Unreadable, Unsealable
from remuda.reconcile.lifecycle import is_paused
from remuda.reconcile.status import is_unsettled
from remuda.resources.crud import find, seed
from remuda.store.objects import Metadata

_NAME = "servers"
_FIRST_S = 1.0
_INTERVAL_S = 2.0
_IDLE_INTERVAL_S = 600.0
"""The interval of saves while nothing changes. It is shorter than the retention of history, without which there would
be nothing to continue from.
"""
_MAX_PENDING = 1_000
_STRIDE = 100

Progress = Literal["pending", "unsettled", "reconciled"]
"""Whether an enqueued instance must be remembered, is found by a start anyway, or is done."""


class InstanceQueue(Protocol):
    """The controller of instances, as far as keys are enqueued."""

    terms: int

    @property
    def is_synced(self) -> bool:
        """Whether it leads and accepts keys."""

    def enqueue(self, key: str) -> None:
        """Enqueue an instance."""

    def is_due(self, key: str) -> bool:
        """Return whether a reconcile of an instance will begin."""

    def is_reconciling(self, key: str) -> bool:
        """Return whether a reconcile of an instance has begun and not ended."""


class WatchMemory:
    """The memory. `run` is a background task of a watch that has loaded it."""

    def __init__(self, ports: ComputePorts, controller: InstanceQueue) -> None:
        self.cursor = ""
        """The cursor up to which every change was observed; empty if none is known."""
        self._ports, self._controller = ports, controller
        self._store = ports.reconcile_ports.store
        self._revision = ""
        self._term = 0
        self._enqueued: dict[str, None] = {}
        """The instances that were enqueued, until their reconcile has ended."""
        self._is_changed = False
        self._saved = WatchPositionSpec()
        self._saved_at = 0.0

    async def load(self) -> Sequence[str]:
        """Continue from the stored cursor, if there is one of this source code; return the instances to reconcile."""
        self._enqueued.clear()
        self._term = self._controller.terms
        self._revision = await self._ports.run_blocking(self._ports.source_digest)
        found = await find(self._store, WatchPosition, _NAME)
        is_usable = found is not None and found.spec.revision == self._revision
        self._saved = found.spec if found is not None and is_usable else WatchPositionSpec()
        self._saved_at = self._ports.clock.monotonic()
        self.cursor = self._saved.cursor
        return self._saved.instances

    def record_enqueued(self, instance: str) -> None:
        """Record an instance that a change has enqueued."""
        self._enqueued[instance] = None

    def record_reached(self, cursor: str, *, by_change: bool) -> None:
        """Record that every change up to a cursor was observed, and what they concern is enqueued."""
        self.cursor = cursor or self.cursor
        self._is_changed = self._is_changed or by_change

    async def run(self) -> None:
        """Save soon after the first complete list, and then at an interval, until cancelled."""
        while True:
            await self._ports.clock.sleep(_INTERVAL_S if self._saved.cursor else _FIRST_S)
            try:
                await self.save()
            except RemudaError as error:
                structlog.get_logger().warning("position of the server watch not saved", error=error.code)

    async def save(self) -> None:
        """Store the cursor and the instances that are not reconciled, if there is anything new."""
        cursor = self.cursor
        if cursor in {"", self._saved.cursor} or not self._is_due():
            return
        self._is_changed = False
        pending = await self._pending()
        # At the end of a term the controller forgets its keys: what was pending would seem to be reconciled.
        if self._controller.terms != self._term or len(pending) > _MAX_PENDING:
            self._is_changed = True
            return
        spec = WatchPositionSpec(revision=self._revision, cursor=cursor, instances=tuple(pending))
        new = WatchPosition(metadata=Metadata(name=_NAME), spec=spec)
        await seed(self._store, new, lambda found: replace(found, spec=spec))
        self._saved, self._saved_at = spec, self._ports.clock.monotonic()

    def _is_due(self) -> bool:
        """Return whether a save is worth its write. While nothing changes, it only keeps the cursor from expiring."""
        is_old = self._ports.clock.monotonic() - self._saved_at >= _IDLE_INTERVAL_S
        return self._is_changed or is_old or not self._saved.cursor or bool(self._saved.instances)

    async def _pending(self) -> list[str]:
        """Return the enqueued instances that a start would not reconcile otherwise, and forget the reconciled ones."""
        pending = []
        for count, name in enumerate(list(self._enqueued), 1):
            progress = await self._progress_of(name)
            if progress == "pending":
                pending.append(name)
            elif progress == "reconciled":  # without an await since that was checked, so no change came in between
                del self._enqueued[name]
            if count % _STRIDE == 0:
                await yield_to_loop()
        return pending

    async def _progress_of(self, name: str) -> Progress:
        """Return the progress of an enqueued instance.

        One that is unsettled, and was not being reconciled when that was read, will not become settled by a reconcile
        that began before the change. For a paused one a reconcile has done nothing.
        """
        controller = self._controller
        was_reconciling = controller.is_reconciling(name)
        try:
            found = await find(self._store, ComputeInstance, name)
        except (Unreadable, Unsealable):
            return "pending"
        if controller.is_due(name) or controller.is_reconciling(name):
            is_unknown = was_reconciling or found is None or not is_unsettled(found)
            return "pending" if is_unknown else "unsettled"
        return "pending" if found is not None and is_paused(found) else "reconciled"
