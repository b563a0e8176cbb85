"""The store's invariant as a few lines of plain Python, to be replayed beside the real one.

The model applies writes in the order in which the store logged them and says what must be there. It knows no versions,
no batches and no order inside a cascade: only what is left when everything that may go has gone.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from remuda.store.objects import FOREGROUND, IN_USE, Resource
from tests.kit.sample_kinds import Corral, Horse, Pasture

Key = tuple[type[Resource], str]


@dataclass(frozen=True)
class Thing:
    """What a client may know of one object."""

    value: int = 0
    side: str = ""
    place: str = ""
    finalizers: frozenset[str] = frozenset()
    owner: Key | None = None
    targets: frozenset[Key] = frozenset()
    generation: int = 1
    is_deleting: bool = False


@dataclass(frozen=True)
class Create:
    """Make a thing that is not there, of an owner and with targets that will stay."""

    key: Key
    thing: Thing


@dataclass(frozen=True)
class Change:
    """Change a thing that is there; told as a function of what was there, so that a lost update shows."""

    key: Key
    change: Callable[[Thing], Thing]


@dataclass(frozen=True)
class Delete:
    """Ask for a thing to go, and for all it owns."""

    key: Key


Write = Create | Change | Delete


@dataclass
class Model:
    """Everything that is there."""

    things: dict[Key, Thing] = field(default_factory=dict)

    def apply(self, write: Write) -> None:
        """Do what the store has done, or fail if it should not have."""
        if isinstance(write, Create):
            assert write.key not in self.things, f"{write.key} was made twice"
            self._check_stays({write.thing.owner} | write.thing.targets)
            self.things[write.key] = write.thing
        elif isinstance(write, Change):
            self._change(write)
        else:
            self._mark(write.key)
        while self._let_one_go():
            pass

    def _change(self, write: Change) -> None:
        before = self.things[write.key]
        after = write.change(before)
        self._check_stays(after.targets - before.targets)
        grown = (before.value, before.targets) != (after.value, after.targets)
        self.things[write.key] = replace(after, generation=before.generation + grown)

    def _check_stays(self, keys: set[Key | None] | frozenset[Key]) -> None:
        for key in keys:
            assert key is None or not self.things[key].is_deleting, f"{key} was given a new holder while it goes"

    def _mark(self, key: Key) -> None:
        thing = self.things[key]
        if not thing.is_deleting:
            self.things[key] = replace(thing, is_deleting=True, generation=thing.generation + 1)
            for child in [child for child, each in self.things.items() if each.owner == key]:
                self._mark(child)

    def _let_one_go(self) -> bool:
        for key, thing in self.things.items():
            if thing.is_deleting and not thing.finalizers and not self._is_held(key):
                del self.things[key]
                return True
        return False

    def _is_held(self, key: Key) -> bool:
        dying = {owner for owner in self._owners(key) if self.things[owner].is_deleting}
        return any(
            each.owner == key or (key in each.targets and holder not in dying) for holder, each in self.things.items()
        )

    def _owners(self, key: Key) -> Iterator[Key]:
        while (owner := self.things[key].owner) is not None:
            yield owner
            key = owner


def seen(resource: Any) -> Thing:
    """Return what the model says of a real object."""
    metadata = resource.metadata
    owner = next(((_KINDS[each.kind], each.name) for each in metadata.owner_references), None)
    return Thing(
        value=_VALUES[type(resource)](resource.spec),
        side=metadata.labels["side"],
        place=resource.status.place if isinstance(resource, Horse) else "",
        finalizers=frozenset(metadata.finalizers) - {FOREGROUND, IN_USE},
        owner=owner,
        targets=_targets(resource),
        generation=metadata.generation,
        is_deleting=resource.is_deleting,
    )


def _targets(resource: Resource) -> frozenset[Key]:
    if isinstance(resource, Horse):
        return frozenset((Corral, name) for name in resource.spec.corrals)
    if isinstance(resource, Pasture) and resource.spec.favourite:
        return frozenset({(Horse, resource.spec.favourite)})
    return frozenset()


_KINDS: Mapping[str, type[Resource]] = {kind.__name__: kind for kind in (Pasture, Corral, Horse)}
_VALUES: Mapping[type[Resource], Callable[[Any], int]] = {
    Pasture: lambda spec: spec.acres,
    Corral: lambda spec: spec.places,
    Horse: lambda spec: spec.feed.get("hay", 0),
}
