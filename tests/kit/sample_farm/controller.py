"""A small real controller: animals that live in a barn, and eat what their trough holds.

The barn is the provider: it has its own state, takes its time, and rejects a second stall under one name. A herd owns
its animals, and may refer to a favourite one. A change of a trough concerns every animal that feeds from it.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, cast

import msgspec

from remuda.kernel.clock import Clock
from remuda.kernel.conditions import Condition
from remuda.kernel.errors import NotFound, ServerUnreachable
from remuda.reconcile.controller import Controller
from remuda.reconcile.kinds import DELETION_GUARD, LEASE
from remuda.reconcile.leader import Leader, SingleProcess
from remuda.reconcile.lifecycle import Lifecycle, LifecycleSettings, Outcome
from remuda.reconcile.ports import ControllerSettings, ReconcilePorts
from remuda.reconcile.reporter import ReconcileResult, Reporter
from remuda.reconcile.results import Blocked, Done, ReconcileContext, Requeue, Result
from remuda.reconcile.sources import Source, indexed
from remuda.store.contract import Store
from remuda.store.kinds import Index, Kind, Reference, Registry, keyed
from remuda.store.logs import Log
from remuda.store.objects import Metadata, OwnerReference, Resource, StoredStruct
from remuda.store.sqlite.store import SqliteStore
from tests.kit.simulation.faults import FaultMenu
from tests.kit.simulation.runner import World
from tests.kit.simulation.store import lose_power, open_simulated

GROUP = "toy.remuda"
FINALIZER = f"{GROUP}/barn"
LOOK_AGAIN_S = 1.0
"""Longer than a call of the barn takes."""


class HerdSpec(StoredStruct, frozen=True):
    favourite: str | None = None


class Herd(Resource, frozen=True):
    spec: HerdSpec = HerdSpec()


class TroughSpec(StoredStruct, frozen=True):
    feed: str = "hay"


class Trough(Resource, frozen=True):
    spec: TroughSpec = TroughSpec()


class AnimalSpec(StoredStruct, frozen=True):
    colour: str = "bay"
    trough: str = ""
    pause: bool = False


class AnimalStatus(StoredStruct, frozen=True):
    conditions: Annotated[tuple[Condition, ...], keyed("type")] = ()
    observed_generation: int = 0
    colour: str = ""


class Animal(Resource, frozen=True):
    spec: AnimalSpec = AnimalSpec()
    status: AnimalStatus = AnimalStatus()


HERD = Kind(
    type=Herd,
    group=GROUP,
    version="v1alpha1",
    plural="herds",
    references=(
        Reference(target=f"animals.{GROUP}", names=lambda herd: [herd.spec.favourite] if herd.spec.favourite else []),
    ),
)
TROUGH = Kind(type=Trough, group=GROUP, version="v1alpha1", plural="troughs")
ANIMAL = Kind(
    type=Animal,
    group=GROUP,
    version="v1alpha1",
    plural="animals",
    indexes=(Index(name="trough", values=lambda animal: [animal.spec.trough] if animal.spec.trough else []),),
)
REGISTRY = Registry([HERD, TROUGH, ANIMAL, LEASE, DELETION_GUARD])


def animal(
    name: str,
    colour: str = "bay",
    *,
    trough: str = "",
    labels: Mapping[str, str] | None = None,
    owner: OwnerReference | None = None,
    finalizers: tuple[str, ...] = (),
    pause: bool = False,
) -> Animal:
    owners = (owner,) if owner else ()
    metadata = Metadata(name=name, labels=labels or {}, owner_references=owners, finalizers=finalizers)
    return Animal(metadata=metadata, spec=AnimalSpec(colour=colour, trough=trough, pause=pause))


def recoloured(resource: Animal, colour: str) -> Animal:
    return msgspec.structs.replace(resource, spec=msgspec.structs.replace(resource.spec, colour=colour))


@dataclass(frozen=True)
class Stall:
    colour: str
    feed: str
    ready_at: float


class Barn:
    """The provider. Calls take a while, and with a menu of faults some fail before or after they did their work."""

    def __init__(self, clock: Clock, faults: FaultMenu | None = None) -> None:
        self.stalls: dict[str, Stall] = {}
        self.calls: list[tuple[str, str]] = []
        self._clock = clock
        self._faults = faults or FaultMenu(0)

    async def look(self, name: str) -> Stall | None:
        await self._clock.sleep(0.01)
        return self.stalls.get(name)

    async def build(self, name: str, colour: str, feed: str) -> None:
        if name not in self.stalls:
            await self._effect("build", name, lambda: Stall(colour, feed, self._clock.monotonic() + 3))

    async def change(self, name: str, colour: str, feed: str) -> None:
        await self._effect("change", name, lambda: replace(self.stalls[name], colour=colour, feed=feed))

    async def remove(self, name: str) -> None:
        await self._effect("remove", name, lambda: None)

    async def _effect(self, verb: str, name: str, outcome: Any) -> None:
        if self._faults.fires("barn rejects"):
            raise ServerUnreachable("barn", "refused")
        await self._clock.sleep(0.02)
        if verb == "build" and name in self.stalls:
            return  # the name is taken: somebody else was faster, and one stall is enough
        self.calls.append((verb, name))
        if (stall := outcome()) is None:
            self.stalls.pop(name, None)
        else:
            self.stalls[name] = stall
        if self._faults.fires("barn done but silent"):
            raise ServerUnreachable("barn", "timed out")


class Keeper:
    """The controller's two functions."""

    def __init__(self, store: Store, barn: Barn, clock: Clock) -> None:
        self._store = store
        self._barn = barn
        self._clock = clock
        self._missed: dict[str, float] = {}

    async def provision(self, resource: Animal, _run: ReconcileContext) -> Result | Outcome[Animal]:
        feed = ""
        if resource.spec.trough:
            try:
                feed = (await self._store.get(Trough, resource.spec.trough)).spec.feed
            except NotFound:
                return Blocked("DependencyNotFound", f"there is no trough {resource.spec.trough}")
        stall = await self._barn.look(resource.name)
        if stall is None:
            await self._barn.build(resource.name, resource.spec.colour, feed)
            return Requeue(1)
        if stall.ready_at > self._clock.monotonic():
            return Requeue(1)
        if (stall.colour, stall.feed) != (resource.spec.colour, feed):
            await self._barn.change(resource.name, resource.spec.colour, feed)
            return Requeue(0.5)
        status = msgspec.structs.replace(resource.status, colour=stall.colour)
        return Outcome(Done(), msgspec.structs.replace(resource, status=status))

    async def deprovision(self, resource: Animal, _run: ReconcileContext) -> Result:
        if await self._barn.look(resource.name) is None:
            # Another who believes to lead may be building just now: gone is what was looked for twice and not there.
            now = self._clock.monotonic()
            missed_since = self._missed.setdefault(resource.uid, now)
            return Done() if now - missed_since >= LOOK_AGAIN_S else Requeue(LOOK_AGAIN_S)
        self._missed.pop(resource.uid, None)
        await self._barn.remove(resource.name)
        return Requeue(0.5)


@dataclass
class Notes(Reporter):
    """A reporter that remembers."""

    passes: list[tuple[str, str, ReconcileResult]] = field(default_factory=list)
    finds: list[str] = field(default_factory=list)
    retries: list[tuple[str, float]] = field(default_factory=list)
    scans: list[int] = field(default_factory=list)
    trips: list[int] = field(default_factory=list)
    terms: list[bool] = field(default_factory=list)
    armed_for: list[str] = field(default_factory=list)

    def finished(self, run: ReconcileContext, outcome: ReconcileResult, seconds: float) -> None:
        assert seconds >= 0
        self.passes.append((run.key, run.cause, outcome))

    def retried(self, run: ReconcileContext, pause_s: float) -> None:
        self.retries.append((run.key, pause_s))

    def resynced(self, controller: str, keys: int) -> None:
        assert controller
        self.scans.append(keys)

    def lost_event_found(self, run: ReconcileContext) -> None:
        self.finds.append(run.key)

    def armed(self, controller: str) -> None:
        self.armed_for.append(controller)

    def tripped(self, controller: str, groups: int) -> None:
        assert controller
        self.trips.append(groups)

    def leading(self, lease: str, is_leading: bool) -> None:  # noqa: FBT001  as the port has it
        assert lease
        self.terms.append(is_leading)


class Farm:
    """A store, a barn, and as many drivers as a test wants."""

    def __init__(self, world: World, store: Store, barn: Barn | None = None) -> None:
        self.world = world
        self.store = store
        self.barn = barn or Barn(world.clock, world.faults)
        self.notes = Notes()
        self._drivers: list[Controller] = []

    def ports(
        self, *, store: Store | None = None, leader: Leader | None = None, log: Log | None = None
    ) -> ReconcilePorts:
        return ReconcilePorts(
            store=store or self.store,
            clock=self.world.clock,
            randomness=self.world.randomness,
            leader=leader or SingleProcess(),
            reporter=self.notes,
            log=log,
        )

    def lifecycle(self, ports: ReconcilePorts, *, deadline_s: float = 600) -> Lifecycle[Animal]:
        keeper = Keeper(ports.store, self.barn, ports.clock)
        settings = LifecycleSettings(deadline_s=deadline_s)
        return Lifecycle(
            Animal,
            provision=keeper.provision,
            deprovision=keeper.deprovision,
            finalizer=FINALIZER,
            ports=ports,
            settings=settings,
        )

    async def drive(
        self,
        *,
        store: Store | None = None,
        leader: Leader | None = None,
        settings: ControllerSettings | None = None,
        deadline_s: float = 600,
    ) -> Controller:
        ports = self.ports(store=store, leader=leader)
        by_trough = indexed(ports.store, Animal, "trough", lambda trough: trough.name)
        driver = Controller(
            "animals",
            self.lifecycle(ports, deadline_s=deadline_s),
            kind=Animal,
            ports=ports,
            sources=(Source(Animal), Source(Trough, keys=by_trough)),
            settings=settings,
        )
        self._drivers.append(driver)
        await driver.start()
        return driver

    async def stop(self) -> None:
        for driver in self._drivers:
            await driver.stop()

    async def rest(self, seconds: float = 120) -> None:
        """Let the world come to rest: nothing of the toy's own takes longer."""
        await self.world.clock.sleep(seconds)

    async def animals(self) -> Mapping[str, Animal]:
        return {each.name: each for each in (await self.store.list(Animal)).items}

    async def versions(self) -> Mapping[str, str]:
        kinds: tuple[type[Resource], ...] = (Herd, Trough, Animal)
        stored = [each for kind in kinds for each in (await self.store.list(kind)).items]
        return {f"{type(each).__name__}/{each.name}": each.version for each in stored}


async def reopened(environment: Farm) -> SqliteStore:
    """Return the store after a loss of power: what it knew by heart it has to read again."""
    assert isinstance(environment.store, SqliteStore)
    await lose_power(environment.world, environment.store)
    environment.store = open_simulated(environment.world, REGISTRY)
    return environment.store


@asynccontextmanager
async def farm(world: World) -> AsyncIterator[Farm]:
    store = open_simulated(world, REGISTRY)
    environment = Farm(world, store)
    try:
        yield environment
    finally:
        await environment.stop()
        await cast("SqliteStore", environment.store).close()
