"""Conditions: what a controller has observed about an object, one statement per type.

The transition time tells since when a statement has been true or false, so it moves only when the status flips. Setting
what is already said gives back the very same tuple, which lets a caller see by identity that there is nothing to write.
"""

from datetime import datetime
from typing import Literal

import msgspec


class Condition(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """One statement about an object, in the stored form Kubernetes users know."""

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


def set_condition(conditions: tuple[Condition, ...], new: Condition) -> tuple[Condition, ...]:
    """Return the conditions with the new one in the place of its type, or at the end if its type is new."""
    old = find_condition(conditions, new.type)
    if old is None:
        return (*conditions, new)
    if old.status == new.status:
        new = msgspec.structs.replace(new, last_transition_time=old.last_transition_time)
    if new == old:
        return conditions
    return tuple(new if condition.type == new.type else condition for condition in conditions)
