"""Status: the conditions `Available` and `Stalled` of a reconciled object, as pure functions.

::

   result     Available
   Done       True   Provisioned  "provisioned"
   Requeue    False  its reason (Provisioning, or Deprovisioning while deleting) and message
   Blocked    False  its reason and message
   Failed     False  its reason and message

An object that is not available, or not removed after its deletion was requested, by its deadline is `Stalled`: since
when, and what it waits for. When it makes progress, Stalled becomes False. The time starts with the object, with its
deletion, or with the first reconcile of a new generation that is not Done: then `Available` gets a new transition time,
since users wait for something else now. A condition that has not changed is kept as it is, so that a comparison finds
nothing to write.

Unsettled objects are those for which a controller has something to do, or waits for something. After a start, missed
events are unknown. Of a kind with the index `unsettled` only these are reconciled at once, and the rest gradually: a
hundred thousand objects at rest would take a minute of CPU to find nothing. By declaring the index a kind guarantees
that any event that may be missed either leaves the object unsettled or is reported later by another component, such as
a poll of the provider.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from remuda.kernel.conditions import Condition, find_condition, find_true, set_condition
from remuda.kernel.errors import RemudaError, TimedOut, Unavailable
from remuda.reconcile.results import Blocked, Done, Failed, Requeue, Result
from remuda.store.kinds import Index, Kind
from remuda.store.objects import Resource, ResourceT

AVAILABLE = "Available"
"""The condition that says whether an object is as its spec desires."""

STALLED = "Stalled"
"""The condition that says that an object has made no progress by its deadline."""

ERRORED = Failed("Errored", "an unexpected error occurred")
"""The result of an unexpected error, as users see it."""

Conditions = tuple[Condition, ...]
"""One condition per type."""


def retry_result(error: RemudaError) -> Requeue:
    """Return the result, as users see it, of an attempt that failed with an error that a retry may cure."""
    if isinstance(error, Unavailable) and error.provider_problem:
        return Requeue(0, "ProviderUnavailable", error.provider_problem)
    if isinstance(error, TimedOut):
        return Requeue(0, message="the last attempt did not end in time and will be retried")
    return Requeue(0, message="the last attempt failed because a service is not available, and will be retried")


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
    """Return an object whose status has this observed generation, if it has a field for that."""
    status: Any = getattr(resource, "status", None)
    if getattr(status, "observed_generation", generation) == generation:
        return resource
    return msgspec.structs.replace(resource, status=msgspec.structs.replace(status, observed_generation=generation))


def with_available(resource: Resource, conditions: Conditions, result: Result, *, now: datetime) -> Conditions:
    """Return the conditions after a reconcile of this object with this result.

    An object that was never available has not been so since its creation, however late that is reported first.
    """
    generation, before = resource.metadata.generation, find_condition(conditions, AVAILABLE)
    created = since(resource, conditions) if before is None and not isinstance(result, Done) else None
    reason, message = _reason_and_message(result, is_deleting=resource.is_deleting)
    new = Condition(
        type=AVAILABLE,
        status="True" if isinstance(result, Done) else "False",
        reason=reason,
        message=message or _WORD.sub(" ", reason).lower(),
        last_transition_time=(created or now).replace(microsecond=0),
        observed_generation=generation,
    )
    if before is None or before.observed_generation == generation or isinstance(result, Done):
        return set_condition(conditions, new)
    return tuple(new if each is before else each for each in conditions)


def _reason_and_message(result: Result, *, is_deleting: bool) -> tuple[str, str]:
    if isinstance(result, Done):
        return "Provisioned", "provisioned"
    if is_deleting and isinstance(result, Requeue) and result.reason == Requeue(0).reason:
        return "Deprovisioning", result.message
    return result.reason, result.message


def is_behind(resource: Resource, conditions: Conditions) -> bool:
    """Return whether `Available` is about an older generation."""
    available = find_condition(conditions, AVAILABLE)
    reported = 1 if available is None else available.observed_generation
    return reported != resource.metadata.generation


def since(resource: Resource, conditions: Conditions) -> datetime | None:
    """Return since when users wait for the object to become available, or to be removed; None if they do not."""
    if resource.is_deleting:
        return resource.metadata.deletion_timestamp
    if is_behind(resource, conditions):
        return None
    available = find_condition(conditions, AVAILABLE)
    if available is None:
        return resource.metadata.creation_timestamp
    return available.last_transition_time if available.status != "True" else None


def report_due_in_s(resource: Resource, result: Result, *, now: datetime) -> float:
    """Return the time until the wait of an object should be reported."""
    waited_since = since(resource, conditions_of(resource))
    if not isinstance(result, Requeue | Blocked) or waited_since is None:
        return 0.0
    return result.report_after_s - (now - waited_since).total_seconds()


def with_stalled(resource: Resource, conditions: Conditions, *, deadline: timedelta, now: datetime) -> Conditions:
    """Return the conditions with `Stalled` set or cleared by the deadline; unchanged if it never passed."""
    waited_since = since(resource, conditions)
    if waited_since is not None and now >= waited_since + deadline:
        reason, waits_for = _waits_for(resource, conditions)
        is_stalled, message = True, f"waiting since {waited_since:%Y-%m-%dT%H:%M:%SZ}: {waits_for}"
    elif (stalled := find_condition(conditions, STALLED)) is None or stalled.status == "False":
        return conditions
    else:
        is_stalled, reason, message = False, "Progressing", "making progress again"
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
        return "Deprovisioning" if resource.is_deleting else "Pending", "the controller has not started yet"
    return available.reason, available.message


def changed_conditions(before: Conditions, after: Conditions) -> list[Condition]:
    """Return those with another status, reason or message; a new observed generation alone does not count."""
    known = {condition.type: (condition.status, condition.reason, condition.message) for condition in before}
    return [
        condition
        for condition in after
        if known.get(condition.type) != (condition.status, condition.reason, condition.message)
    ]


UNSETTLED = ("unsettled", "yes")
"""The index of the unsettled objects of a kind, and the value in it."""


def is_provisioned(resource: Resource) -> bool:
    """Return whether an object is in its desired state, according to its controller."""
    return find_true(conditions_of(resource), AVAILABLE) is not None


def is_unsettled(resource: Resource) -> bool:
    """Return whether an object is being deleted, or not known to match its last generation."""
    if resource.is_deleting:
        return True
    available = find_condition(conditions_of(resource), AVAILABLE)
    if available is None or available.status != "True":
        return True
    return available.observed_generation != resource.metadata.generation


def unsettled_index(also: Callable[[ResourceT], bool] = lambda _: False) -> Index[ResourceT]:
    """Return the index for a kind with a lifecycle; `also` selects further objects."""
    name, value = UNSETTLED

    def values(resource: ResourceT) -> tuple[str, ...]:
        return (value,) if is_unsettled(resource) or also(resource) else ()

    return Index(name=name, values=values)


def has_unsettled_index(kind: Kind[ResourceT]) -> bool:
    """Return whether a kind declares the index."""
    return any(index.name == UNSETTLED[0] for index in kind.indexes)
