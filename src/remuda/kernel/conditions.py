"""Conditions: observations of a controller about an object, one per type.

The transition time says since when the status has had its value, so it changes only with the status. Setting a
condition that is already there returns the same tuple: a caller sees by identity that there is nothing to write.
"""

from datetime import datetime
from typing import Literal

import msgspec


class Condition(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """One observation about an object, stored in the form that Kubernetes uses."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str
    last_transition_time: datetime
    observed_generation: int | None = None


def find_condition(conditions: tuple[Condition, ...], type: str) -> Condition | None:  # noqa: A002  the field's name
    """Return the condition of this type, if there is one."""
    for condition in conditions:
        if condition.type == type:
            return condition
    return None


def find_true(conditions: tuple[Condition, ...], type: str) -> Condition | None:  # noqa: A002  the field's name
    """Return the condition of this type, if its status is True."""
    found = find_condition(conditions, type)
    return found if found is not None and found.status == "True" else None


def set_condition(conditions: tuple[Condition, ...], new: Condition) -> tuple[Condition, ...]:
    """Return the conditions with the one of this type replaced, or appended if its type is new."""
    old = find_condition(conditions, new.type)
    if old is None:
        return (*conditions, new)
    if old.status == new.status:
        new = msgspec.structs.replace(new, last_transition_time=old.last_transition_time)
    if new == old:
        return conditions
    return tuple(new if condition.type == new.type else condition for condition in conditions)
