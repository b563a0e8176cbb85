"""Sagas: sequences of steps, each with its undo, and the registry that binds them to their ports.

A step and its undo are idempotent, and everything a step creates is named after the operation (`work.id`), never by a
name that another operation could use. So a step that may or may not have run can be undone without a check, and the
undo of one operation cannot touch what another created.

Only a registered saga can be run, because the generic tests cover every saga of a registry.

A record stores its input as readable JSON, or sealed if the saga declares a secret in it (`Saga.has_secret`). Without
that declaration a `Secret` in the input is rejected: it would be stored readable.
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
class SagaSubject:
    """The subject of a run, as its steps find it."""

    uid: str = ""
    """The incarnation of the created or changed object, once there is one. It is stored in the record, too."""


@dataclass(frozen=True, slots=True)
class Work(Generic[InputT]):
    """One run of a saga."""

    id: str
    """The operation's id, after which steps name the objects they create."""
    input: InputT
    """The input of the run. It is stored: a secret in it has to be declared (`Saga.has_secret`)."""
    actor: str
    """The user or service on whose behalf it runs."""
    actor_name: str = ""
    """Its display name, if it is a service account."""
    subject: SagaSubject = field(default_factory=SagaSubject, compare=False)


Effect = Callable[[PortsT, Work[InputT]], Awaitable[None]]
"""The function of a step: it takes the ports and the work, and raises when it fails."""


@dataclass(frozen=True, kw_only=True)
class Step(Generic[PortsT, InputT]):
    """One effect, and its undo."""

    name: str
    do: Effect[PortsT, InputT]
    undo: Effect[PortsT, InputT]


@dataclass(frozen=True, kw_only=True)
class Saga(Generic[PortsT, InputT]):
    """Steps that happen in order, all or none."""

    name: str
    """The name, such as `mount.create`: stable, because stored operations contain it."""
    input_type: type[InputT]
    subject: Callable[[InputT], tuple[str, str]]
    """The qualified plural and name of the object the operation is about."""
    steps: tuple[Step[PortsT, InputT], ...]
    has_secret: bool = False
    """Whether its input contains a secret, so that the record stores it sealed."""


AnyStep = Step[Any, Any]
"""A step of any types."""

AnySaga = Saga[Any, Any]
"""A saga of any types."""


@dataclass(frozen=True, slots=True)
class BoundSaga(Generic[PortsT]):
    """A saga with the ports that its steps use."""

    saga: Saga[PortsT, Any]
    ports: PortsT


AnyBoundSaga = BoundSaga[Any]
"""A saga with its ports, of any types."""


class Sagas:
    """A closed set of sagas. The constructor checks what would otherwise fail in the first run."""

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
        """Return the saga of this name, or None."""
        return self._by_name.get(name)


def stored_input(saga: AnySaga, input: msgspec.Struct) -> tuple[str, Secret | None]:  # noqa: A002  as in `Operations.run`
    """Return an input as a record stores it: the readable text, and the secret to seal."""
    if not saga.has_secret:
        return msgspec.json.encode(input).decode(), None
    return "", Secret(msgspec.json.encode(input, enc_hook=Secret.reveal).decode())


def read_input(saga: AnySaga, spec: OperationSpec) -> Any:
    """Return the input of a record, or raise msgspec.MsgspecError."""
    text = spec.input if spec.sealed_input is None else spec.sealed_input.reveal()
    return msgspec.json.decode(text, type=saga.input_type, dec_hook=_hide)


def _hide(kind: type, value: Any) -> Any:
    return kind(value)
