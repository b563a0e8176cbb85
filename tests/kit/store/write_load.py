"""A write load whose outcome is known at every step.

Each writer tells a story: a fixed, endless sequence of writes to objects that carry its name as a label. Every write
appends one record to the writer's log, so the log says how far the story came, and the objects must be just there:
both in one commit, or neither. Only two numbers need to survive a crash: what was acknowledged, what was under way.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from remuda.kernel.secrets import Secret
from remuda.store.logs import Record
from remuda.store.objects import Metadata, Resource, ResourceT
from remuda.store.sqlite.store import SqliteStore
from tests.kit.sample_kinds import PASTURE, Corral, Horse, HorseSpec, HorseStatus, Pasture

STREAM = "timeline"
HELD = "test.remuda/held"

Act = Callable[[SqliteStore, str, list[Record]], Awaitable[object]]
"""Write to a store, as the step of this number, with these log records."""


class Trait(NamedTuple):
    """What a story says about one object."""

    step: str
    place: str = ""
    is_deleting: bool = False


Herd = Mapping[str, Trait]
"""All objects of one writer by name."""


@dataclass(frozen=True)
class Step:
    """One write, and the herd after it."""

    number: int
    act: Act
    herd: Herd


class Story:
    """What one writer does."""

    def __init__(self, writer: str) -> None:
        self._writer = writer
        self._number = 0
        self._herd: dict[str, Trait] = {}

    def steps(self) -> Iterator[Step]:
        """Found a pasture and give it up again, without end; one horse of each turn stays."""
        for turn in count():
            yield from self._turn(f"{self._writer}-{turn}")

    def _turn(self, name: str) -> Iterator[Step]:
        pasture, corral, mare, colt, orphan = (
            f"{name}-{what}" for what in ("pasture", "corral", "mare", "colt", "orphan")
        )
        branded = HorseSpec(corrals=(corral,), brand=Secret(f"brand of {mare}"))
        yield self._step(self._create(Pasture, pasture), {pasture: self._here()})
        yield self._step(self._create(Corral, corral, pasture=pasture), {corral: self._here()})
        yield self._step(self._create(Horse, mare, pasture=pasture, spec=branded), {mare: self._here()})
        yield self._step(self._create(Horse, colt, finalizers=(HELD,)), {colt: self._here()})
        yield self._step(_relabel(mare), {mare: self._here()})
        yield self._step(_move(mare), {mare: self._herd[mare]._replace(place=self._here().step)})
        yield self._step(_delete(Corral, corral), {corral: self._herd[corral]._replace(is_deleting=True)})
        yield self._step(_delete(Horse, colt), {colt: self._herd[colt]._replace(is_deleting=True)})
        yield self._step(_release(colt), {colt: None})
        yield self._step(self._create(Horse, orphan), {orphan: self._here()})
        yield self._step(_delete(Pasture, pasture), {pasture: None, corral: None, mare: None})
        yield self._step(_relabel(orphan), {orphan: self._here()})

    def _here(self) -> Trait:
        return Trait(f"{self._number + 1}")

    def _step(self, act: Act, after: Mapping[str, Trait | None]) -> Step:
        self._number += 1
        changed = {**self._herd, **after}
        self._herd = {name: trait for name, trait in changed.items() if trait is not None}
        return Step(self._number, act, self._herd)

    def _create(
        self, kind: type[Resource], name: str, *, pasture: str = "", finalizers: tuple[str, ...] = (), **parts: Any
    ) -> Act:
        async def act(store: SqliteStore, step: str, log: list[Record]) -> object:
            owners = (PASTURE.owner(await store.get(Pasture, pasture)),) if pasture else ()
            labels = {"writer": self._writer, "step": step}
            metadata = Metadata(name=name, labels=labels, owner_references=owners, finalizers=finalizers)
            return await store.create(kind(metadata=metadata, **parts), log=log)

        return act


def _relabel(name: str) -> Act:
    async def act(store: SqliteStore, step: str, log: list[Record]) -> object:
        found = await store.get(Horse, name)
        metadata = replace(found.metadata, labels={**found.metadata.labels, "step": step})
        return await store.update(replace(found, metadata=metadata), log=log)

    return act


def _move(name: str) -> Act:
    async def act(store: SqliteStore, step: str, log: list[Record]) -> object:
        found = await store.get(Horse, name)
        return await store.update_status(replace(found, status=HorseStatus(place=step)), log=log)

    return act


def _release(name: str) -> Act:
    async def act(store: SqliteStore, _: str, log: list[Record]) -> object:
        found = await store.get(Horse, name)
        return await store.update(replace(found, metadata=replace(found.metadata, finalizers=())), log=log)

    return act


def _delete(kind: type[ResourceT], name: str) -> Act:
    async def act(store: SqliteStore, _: str, log: list[Record]) -> object:
        return await store.delete(kind, name, uid=(await store.get(kind, name)).uid, log=log)

    return act


def herd_after(writer: str, step: int) -> Herd:
    """Return what a writer's story says is there after so many steps."""
    steps = islice(Story(writer).steps(), step)
    return {} if step == 0 else list(steps)[-1].herd


class Writer:
    """Tells one story to a store, and knows what was acknowledged."""

    def __init__(self, name: str, *, told: int = 0) -> None:
        self.name = name
        self.told = told
        self.asked = told
        self._steps = islice(Story(name).steps(), told, None)
        self._next = next(self._steps)

    async def tell(self, store: SqliteStore) -> None:
        """Make the next write; if it fails, the next call makes it again."""
        step = self._next
        self.asked = step.number
        record = Record(stream=STREAM, subject=self.name, data=msgspec.Raw(b"%d" % step.number))
        await step.act(store, f"{step.number}", [record])
        self.told, self._next = step.number, next(self._steps)
