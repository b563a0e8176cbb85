"""Looks at the whole pasture now and then: what is astray is noted on its mount, what belongs to nobody goes.

A call may take effect long after everybody has forgotten it, even the process that made it. So what was right once can
be wrong later without anybody's doing, and somebody has to look.
"""

from msgspec.structs import replace

from remuda.kernel.clock import Clock
from remuda.kernel.errors import Conflict, NotFound
from remuda.kernel.randomness import Randomness
from remuda.providers.absence import AbsenceTracker
from remuda.reconcile.deletion_guard import DeletionGuard
from remuda.reconcile.leader import Leader
from remuda.reconcile.results import ReconcileContext
from remuda.store.contract import Store
from remuda.store.objects import Metadata
from tests.example.controllers import with_health
from tests.example.kinds import Mount
from tests.example.looking import pasture_name
from tests.example.pasture import Pasture


class Monitor:
    """Compares what the pasture has with what it should have."""

    def __init__(
        self,
        store: Store,
        pasture: Pasture,
        breaker: DeletionGuard,
        randomness: Randomness,
        *,
        clock: Clock,
        leader: Leader,
        absences: AbsenceTracker,
        every_s: float,
    ) -> None:
        self._store, self._pasture, self._breaker, self._randomness = store, pasture, breaker, randomness
        self._clock, self._leader = clock, leader
        self._absences, self._every_s = absences, every_s

    async def keep(self) -> None:
        """Look for ever: a duty."""
        while True:
            await self._clock.sleep(self._every_s)
            if self._leader.is_leading:
                await self.look()

    async def look(self) -> None:
        """Look once."""
        grazing = {each.name: each for each in await self._pasture.list()}
        for mount in (await self._store.list(Mount)).items:
            found = grazing.get(pasture_name(mount))
            is_astray = found is None or found.paddock != mount.spec.paddock
            if mount.status.pasture_id and not mount.is_deleting and is_astray:
                await self._miss(mount)
        for name in sorted(grazing):
            await self._judge(name)

    async def _miss(self, mount: Mount) -> None:
        conditions = with_health(mount, is_healthy=False, clock=self._clock)
        if conditions is mount.status.conditions:
            return
        try:
            await self._store.update_status(replace(mount, status=replace(mount.status, conditions=conditions)))
        except (Conflict, NotFound):
            return  # its controller is at it

    async def _judge(self, name: str) -> None:
        """Remove a stray: it was turned out by a call that outlived its process, and then its object."""
        if await self._has_owner(name):
            self._absences.clear(name)
        elif self._absences.record_missing(name) and await self._may_destroy(name):
            self._absences.clear(name)
            await self._pasture.bring_in(name)

    async def _may_destroy(self, name: str) -> bool:
        """Ask the breaker about something that nobody asked to go; all that is left of its object is the name."""
        mount, _, uid = name.partition(".")
        run = ReconcileContext(
            controller="strays",
            key=mount,
            cause="resync",
            registry=self._store.registry,
            randomness=self._randomness,
        )
        return await self._breaker.allow(Mount(metadata=Metadata(name=mount, uid=uid)), run) is None

    async def _has_owner(self, name: str) -> bool:
        mount, _, uid = name.partition(".")
        try:
            return (await self._store.get(Mount, mount)).uid == uid
        except NotFound:
            return False
