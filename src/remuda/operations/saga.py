"""Sagas: tables of steps, each with its undo.

A step and its undo are idempotent, and whatever a step makes is named after the operation (`work.id`), never after a
name that another operation could share. So a step that may or may not have run can be undone without looking, and the
undo of one operation cannot touch what another made.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

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
