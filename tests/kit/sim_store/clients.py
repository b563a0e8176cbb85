"""Clients that write at random to a simulated store, each from what it has just read."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from remuda.store.objects import Metadata, Resource
from remuda.store.sqlite.store import SqliteStore
from tests.kit.sample_kinds import REGISTRY, Corral, Horse, HorseSpec, HorseStatus, Pasture
from tests.kit.sim_store.history import Ledger
from tests.kit.simulation.model import Change, Create, Delete, Thing, seen
from tests.kit.simulation.runner import World

HELD = "test.remuda/held"
NAMES: dict[type[Resource], tuple[str, ...]] = {
    Pasture: ("pasture-0", "pasture-1"),
    Corral: ("corral-0", "corral-1", "corral-2"),
    Horse: ("horse-0", "horse-1", "horse-2", "horse-3"),
}
set_fields = msgspec.structs.replace


class WritingClient:
    """Writes something at random, from what it has just read."""

    def __init__(self, world: World, ledger: Ledger) -> None:
        self._draw = world.randomness.randrange
        self._ledger = ledger

    async def write(self, store: SqliteStore) -> None:
        kind = self._one_of((Pasture, Corral, Horse, Horse))
        name = self._one_of(NAMES[kind])
        found = [each for each in (await store.list(kind)).items if each.name == name]
        if not found:
            await self._create(store, kind, name)
            return
        act = self._one_of(
            (self._grow, self._grow, self._relabel, self._release, self._refer, self._move, self._delete)
        )
        await act(store, found[0])

    def _one_of(self, choices: Any) -> Any:
        return choices[self._draw(len(choices))]

    async def _create(self, store: SqliteStore, kind: type[Resource], name: str) -> None:
        owner = await self._owner(store, kind)
        finalizers = (HELD,) if self._draw(4) == 0 else ()
        side = self._one_of(("left", "right"))
        references = (REGISTRY.of(type(owner)).owner(owner),) if owner else ()
        metadata = Metadata(name=name, labels={"side": side}, finalizers=finalizers, owner_references=references)
        resource: Any = kind(metadata=metadata)
        if kind is Horse:
            resource = set_fields(resource, spec=HorseSpec(corrals=self._corrals()))
        thing = replace(seen(resource), generation=1)
        await self._ledger.attempt(Create((kind, name), thing), lambda log: store.create(resource, log=log))

    async def _owner(self, store: SqliteStore, kind: type[Resource]) -> Resource | None:
        if kind is Pasture or self._draw(3) == 0:
            return None
        owners = (await store.list(self._one_of((Pasture, Corral)) if kind is Horse else Pasture)).items
        return self._one_of(owners) if owners else None

    def _corrals(self) -> tuple[str, ...]:
        return tuple(sorted({self._one_of(NAMES[Corral]) for _ in range(self._draw(3))}))

    async def _grow(self, store: SqliteStore, found: Any) -> None:
        value = seen(found).value + 1
        if isinstance(found, Pasture):
            spec: Any = set_fields(found.spec, acres=value)
        elif isinstance(found, Corral):
            spec = set_fields(found.spec, places=value)
        else:
            spec = set_fields(found.spec, feed={"hay": value})
        await self._update(store, set_fields(found, spec=spec), lambda thing: replace(thing, value=thing.value + 1))

    async def _relabel(self, store: SqliteStore, found: Any) -> None:
        side = self._one_of(("left", "right"))
        metadata = set_fields(found.metadata, labels={"side": side})
        await self._update(store, set_fields(found, metadata=metadata), lambda thing: replace(thing, side=side))

    async def _release(self, store: SqliteStore, found: Any) -> None:
        finalizers = tuple(each for each in found.metadata.finalizers if each != HELD)
        metadata = set_fields(found.metadata, finalizers=finalizers)
        changed = set_fields(found, metadata=metadata)
        await self._update(store, changed, lambda thing: replace(thing, finalizers=frozenset()))

    async def _refer(self, store: SqliteStore, found: Any) -> None:
        if isinstance(found, Pasture):
            favourite = self._one_of((None, *NAMES[Horse]))
            found = set_fields(found, spec=set_fields(found.spec, favourite=favourite))
        elif isinstance(found, Horse):
            found = set_fields(found, spec=set_fields(found.spec, corrals=self._corrals()))
        targets = seen(found).targets
        await self._update(store, found, lambda thing: replace(thing, targets=targets))

    async def _update(self, store: SqliteStore, wanted: Any, change: Callable[[Thing], Thing]) -> None:
        key = type(wanted), wanted.name
        await self._ledger.attempt(Change(key, change), lambda log: store.update(wanted, log=log))

    async def _move(self, store: SqliteStore, found: Any) -> None:
        if not isinstance(found, Horse):
            return
        place = f"{self._draw(100)}"
        wanted = set_fields(found, status=HorseStatus(place=place))
        change = Change((Horse, found.name), lambda thing: replace(thing, place=place))
        await self._ledger.attempt(change, lambda log: store.update_status(wanted, log=log))

    async def _delete(self, store: SqliteStore, found: Resource) -> None:
        kind, name = type(found), found.name
        await self._ledger.attempt(Delete((kind, name)), lambda log: store.delete(kind, name, uid=found.uid, log=log))
