"""Sagas: tables of steps, each with its undo.

A step and its undo are idempotent, and whatever a step makes is named after the operation (`work.id`), never after a
name that another operation could share. So a step that may or may not have run can be undone without looking, and the
undo of one operation cannot touch what another made.

All sagas there are, and each with its ports.

The generic proofs run on every saga of a registry, so a saga that is in none cannot be run.

The input of a run as its record keeps it: as JSON for everybody's eyes, or sealed where it holds a secret.

A saga says itself that its input holds one (`Saga.holds_secret`). If it does not say so, a `Secret` in its input is
refused: it would be stored for everybody to read.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from remuda.kernel.secrets import Secret
from remuda.operations.kinds import OperationSpec

PortsT = TypeVar("PortsT")
InputT = TypeVar("InputT", bound=msgspec.Struct)


@dataclass(slots=True)
class About:
    """What a run is about, as its steps find it."""

    uid: str = ""
    """The incarnation of the subject that was made or changed, once there is one: the record says so, too."""


@dataclass(frozen=True, slots=True)
class Work(Generic[InputT]):
    """One run of a saga."""

    id: str
    """The operation's id: name after it what the steps make."""
    input: InputT
    """What the run was asked to do. It is stored: a secret in it has to be declared (`Saga.holds_secret`)."""
    actor: str
    """For whom it is done."""
    about: About = field(default_factory=About, compare=False)


Effect = Callable[[PortsT, Work[InputT]], Awaitable[None]]
"""The function of a step: it takes the ports and the work, and raises when it fails."""


@dataclass(frozen=True, kw_only=True)
class Step(Generic[PortsT, InputT]):
    """One effect, and how to take it back."""

    name: str
    do: Effect[PortsT, InputT]
    undo: Effect[PortsT, InputT]


@dataclass(frozen=True, kw_only=True)
class Saga(Generic[PortsT, InputT]):
    """Steps that happen in order, and all or none."""

    name: str
    """Such as `mount.create`: stable, because stored operations name it."""
    input_type: type[InputT]
    subject: Callable[[InputT], tuple[str, str]]
    """The qualified plural and name of the object the operation is about."""
    steps: tuple[Step[PortsT, InputT], ...]
    holds_secret: bool = False
    """Its input holds a secret: the record keeps it sealed."""


AnyStep = Step[Any, Any]
"""Some step, where its types do not matter."""

AnySaga = Saga[Any, Any]
"""Some saga, where its types do not matter."""


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


def stored_input(saga: AnySaga, input: msgspec.Struct) -> tuple[str, Secret | None]:  # noqa: A002  as in `Operations.run`
    """Return what a record keeps of an input: the part to be read by all, and the part to be sealed."""
    if not saga.holds_secret:
        return msgspec.json.encode(input).decode(), None
    return "", Secret(msgspec.json.encode(input, enc_hook=Secret.reveal).decode())


def read_input(saga: AnySaga, spec: OperationSpec) -> Any:
    """Return the input that a record keeps, or raise msgspec.MsgspecError."""
    text = spec.input if spec.sealed_input is None else spec.sealed_input.reveal()
    return msgspec.json.decode(text, type=saga.input_type, dec_hook=_hide)


def _hide(kind: type, value: Any) -> Any:
    return kind(value)
