"""All sagas there are, and each with its ports.

The generic proofs run on every saga of a registry, so a saga that is in none cannot be run.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from remuda.operations.saga import AnySaga, Saga

PortsT = TypeVar("PortsT")


@dataclass(frozen=True, slots=True)
class Bound(Generic[PortsT]):
    """A saga with what its steps reach the world through."""

    saga: Saga[PortsT, Any]
    ports: PortsT


AnyBound = Bound[Any]
"""Some saga with its ports, where their types do not matter."""


class Sagas:
    """A closed set of sagas. Checks at construction what would otherwise fail in the first run."""

    def __init__(self, sagas: Iterable[AnySaga]) -> None:
        self._by_name: dict[str, AnySaga] = {}
        for saga in sagas:
            if saga.name in self._by_name:
                raise ValueError(f"the saga {saga.name} is registered twice")
            names = [step.name for step in saga.steps]
            if not names or len(set(names)) != len(names):
                raise ValueError(f"the saga {saga.name} needs at least one step, and each step a name of its own")
            self._by_name[saga.name] = saga

    def __iter__(self) -> Iterator[AnySaga]:
        return iter(self._by_name.values())

    def get(self, name: str) -> AnySaga | None:
        """Return the saga of this name, if there is one."""
        return self._by_name.get(name)
