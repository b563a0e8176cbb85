"""Difference between two specs of an instance, and the steps that turn one server into the other.

The previous spec is compared with the requested one, never with observed state: a server that was changed at the
provider has drifted, which is reported and causes no step. Plan and controller use the same function.

================  ====================================================================================
`in-place`        applied to the running server
`deferred`        stored; applied when the server next starts from a new disk: user data
`reboot`          not used now; reserved for a change that requires a power cycle
`rebuild`         an image, the same one or another, on the same server; not possible if the server never
                  started, has failed, or waits for capacity to be replaced
`replace`         another server behind the same port
================  ====================================================================================
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter, lt, ne
from typing import Any, TypeVar, get_args

import msgspec
from msgspec.structs import replace

from remuda.compute.plans.fields import FIELDS, Field, StepKind
from remuda.region.servers.schema import ServerCreate

StructT = TypeVar("StructT", bound=msgspec.Struct)

STEP_KINDS: tuple[StepKind, ...] = get_args(StepKind)
"""All of them, in the order of their execution."""

_READ = {field: attrgetter(row.attribute) for field, row in FIELDS.items()}
_COMPARED = tuple((field, _READ[field], lt if row.is_counter else ne) for field, row in FIELDS.items())

_DISRUPTIVE: tuple[StepKind, ...] = ("rebuild", "replace")


def changed_fields(before: ServerCreate, after: ServerCreate) -> tuple[Field, ...]:
    """Return the fields in which two specifications of a server differ."""
    return tuple(field for field, read, is_changed in _COMPARED if is_changed(read(before), read(after)))


def with_fields(server: ServerCreate, other: ServerCreate, fields: Iterable[Field]) -> ServerCreate:
    """Return the specification of a server with some fields of another one."""
    for field in fields:
        server = _with(server, FIELDS[field].attribute.split("."), _READ[field](other))
    return server


def _with(struct: StructT, path: Sequence[str], value: Any) -> StructT:
    name, *rest = path
    return replace(struct, **{name: _with(getattr(struct, name), rest, value) if rest else value})


def required_steps(
    before: ServerCreate, after: ServerCreate, *, can_rebuild: bool = True
) -> tuple[tuple[StepKind, tuple[Field, ...]], ...]:
    """Return the steps of an update, with the fields that each one applies.

    A replacement applies what a rebuild would, and both apply user data. A server that cannot be rebuilt is replaced.
    """
    fields = changed_fields(before, after)
    most = _most(fields)
    if most == "rebuild" and not can_rebuild:
        most = "replace"
    steps: dict[StepKind, list[Field]] = {kind: [] for kind in STEP_KINDS}
    for field in fields:
        kind = FIELDS[field].step
        steps[kind if kind == "in-place" else most].append(field)
    return tuple((kind, tuple(steps[kind])) for kind in STEP_KINDS if steps[kind])


def _most(fields: tuple[Field, ...]) -> StepKind:
    """Return the most disruptive step that these fields need, at least `deferred`."""
    kinds = {FIELDS[field].step for field in fields}
    return next((kind for kind in reversed(_DISRUPTIVE) if kind in kinds), "deferred")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedInstance:
    """The instance of a plan, with observed state, which is described and decides nothing."""

    id: str
    uid: str
    name: str
    private_ip: str = ""
    public_ip: str = ""
    mac_address: str = ""
    is_running: bool = True
    """A plan for a stopped instance says nothing about running programs."""
    is_rebuilding: bool = False
    """Whether its server is being rebuilt or replaced, so that its disk is lost in any case."""
