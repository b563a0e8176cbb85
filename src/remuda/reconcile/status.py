"""What a controller says of an object: the conditions `Available` and `Stalled`, as pure functions.

::

    result     Available
    Done       True   Provisioned  "provisioned"
    Again      False  its reason (Provisioning, or Deprovisioning when marked) and message
    Blocked    False  its reason and message
    Failed     False  its reason and message

An object that has not become available, or has not gone after its deletion was requested, by its deadline is `Stalled`:
since when, and what it waits for. When it moves on, Stalled turns False. The clock begins with the object, with its
deletion, or with the first pass over a new generation that is not Done: then `Available` begins anew, with a transition
time of its own, since somebody waits for something else now. A condition whose statement has not changed is left as it
is, so that whoever compares finds nothing to write.

Unsettled objects: those about which a controller has something to do, or waits for something.

After a start nobody knows what was missed before. Of a kind with the index `unsettled` only these are looked at at
once, and the rest little by little: a hundred thousand objects at rest would take a minute of CPU to find nothing. The
kind promises by it that whatever can happen to its objects while nobody watches either leaves them unsettled or is told
by somebody else in the end, as a poll of their provider does.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from remuda.kernel.conditions import Condition, find_condition, set_condition
from remuda.reconcile.results import Again, Blocked, Done, Failed, Result
from remuda.store.kinds import Index, Kind
from remuda.store.objects import Resource, ResourceT

AVAILABLE = "Available"
"""The condition that says whether an object is as its spec wants it."""

STALLED = "Stalled"
"""The condition that says that an object has not moved by its deadline."""

ERRORED = Failed("Errored", "an unexpected error occurred")
"""What the world is told of an error that nobody thought of."""

Conditions = tuple[Condition, ...]
"""One statement per type."""

_WORD = re.compile(r"(?<!^)(?=[A-Z])")


def conditions_of(resource: Resource) -> Conditions:
    """Return the conditions in an object's status."""
    status: Any = getattr(resource, "status", None)
    conditions: Conditions = status.conditions
    return conditions


def with_conditions(resource: ResourceT, conditions: Conditions) -> ResourceT:
    """Return an object with these conditions."""
    status: Any = getattr(resource, "status", None)
    return msgspec.structs.replace(resource, status=msgspec.structs.replace(status, conditions=conditions))


def with_observed(resource: ResourceT, generation: int) -> ResourceT:
    """Return an object whose status says which generation it speaks of, if it has a field for that."""
    status: Any = getattr(resource, "status", None)
    if getattr(status, "observed_generation", generation) == generation:
        return resource
    return msgspec.structs.replace(resource, status=msgspec.structs.replace(status, observed_generation=generation))


def with_available(
    conditions: Conditions, result: Result, *, is_marked: bool, generation: int, now: datetime
) -> Conditions:
    """Return the conditions after a pass with this result."""
    reason, message = _said(result, is_marked=is_marked)
    new = Condition(
        type=AVAILABLE,
        status="True" if isinstance(result, Done) else "False",
        reason=reason,
        message=message or _WORD.sub(" ", reason).lower(),
        last_transition_time=now.replace(microsecond=0),
        observed_generation=generation,
    )
    before = find_condition(conditions, AVAILABLE)
    if before is None or before.observed_generation == generation or isinstance(result, Done):
        return set_condition(conditions, new)
    return tuple(new if each is before else each for each in conditions)


def _said(result: Result, *, is_marked: bool) -> tuple[str, str]:
    if isinstance(result, Done):
        return "Provisioned", "provisioned"
    if is_marked and isinstance(result, Again) and result.reason == Again(0).reason:
        return "Deprovisioning", result.message
    return result.reason, result.message


def is_behind(resource: Resource, conditions: Conditions) -> bool:
    """Tell whether something else is wanted by now than that of which `Available` speaks."""
    available = find_condition(conditions, AVAILABLE)
    spoken_of = 1 if available is None else available.observed_generation
    return spoken_of != resource.metadata.generation


def since(resource: Resource, conditions: Conditions) -> datetime | None:
    """Return since when somebody waits for the object to become available, or to go; None if that is not known yet."""
    if resource.is_marked:
        return resource.metadata.deletion_timestamp
    if is_behind(resource, conditions):
        return None
    available = find_condition(conditions, AVAILABLE)
    if available is None:
        return resource.metadata.creation_timestamp
    return available.last_transition_time if available.status != "True" else None


def patience_left_s(resource: Resource, result: Result, *, now: datetime) -> float:
    """Return for how long yet nobody needs to be told what an object waits for."""
    waited_since = since(resource, conditions_of(resource))
    if not isinstance(result, Again | Blocked) or waited_since is None:
        return 0.0
    return result.patience_s - (now - waited_since).total_seconds()


def with_stalled(resource: Resource, conditions: Conditions, *, deadline: timedelta, now: datetime) -> Conditions:
    """Return the conditions with what there is to say about the deadline; nothing if it never passed."""
    waited_since = since(resource, conditions)
    if waited_since is not None and now >= waited_since + deadline:
        reason, waits_for = _waits_for(resource, conditions)
        is_stalled, message = True, f"waiting since {waited_since:%Y-%m-%dT%H:%M:%SZ}: {waits_for}"
    elif (stalled := find_condition(conditions, STALLED)) is None or stalled.status == "False":
        return conditions
    else:
        is_stalled, reason, message = False, "Moving", "moving again"
    new = Condition(
        type=STALLED,
        status="True" if is_stalled else "False",
        reason=reason,
        message=message,
        last_transition_time=now.replace(microsecond=0),
        observed_generation=resource.metadata.generation,
    )
    return set_condition(conditions, new)


def _waits_for(resource: Resource, conditions: Conditions) -> tuple[str, str]:
    available = find_condition(conditions, AVAILABLE)
    if available is None or is_behind(resource, conditions):
        return "Deprovisioning" if resource.is_marked else "Pending", "nothing was done yet"
    return available.reason, available.message


def changed_conditions(before: Conditions, after: Conditions) -> list[Condition]:
    """Return those whose statement is another than before; a new observed generation alone is no news."""
    known = {condition.type: (condition.status, condition.reason, condition.message) for condition in before}
    return [
        condition
        for condition in after
        if known.get(condition.type) != (condition.status, condition.reason, condition.message)
    ]


UNSETTLED = ("unsettled", "yes")
"""The index, and the value in it, under which the unsettled objects of a kind are found."""


def is_unsettled(resource: Resource) -> bool:
    """Tell whether an object is being deleted, or is not known to be as its last generation wants it."""
    if resource.is_marked:
        return True
    available = find_condition(conditions_of(resource), AVAILABLE)
    if available is None or available.status != "True":
        return True
    return available.observed_generation != resource.metadata.generation


def unsettled_index(also: Callable[[ResourceT], bool] = lambda _: False) -> Index[ResourceT]:
    """Return the index for a kind with the conditions of a lifecycle; `also` tells what else keeps one from rest."""
    name, value = UNSETTLED

    def values(resource: ResourceT) -> tuple[str, ...]:
        return (value,) if is_unsettled(resource) or also(resource) else ()

    return Index(name=name, values=values)


def finds_unsettled(kind: Kind[ResourceT]) -> bool:
    """Tell whether a kind declares the index."""
    return any(index.name == UNSETTLED[0] for index in kind.indexes)
