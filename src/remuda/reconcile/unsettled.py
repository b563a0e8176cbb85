"""Unsettled objects: those about which a controller has something to do, or waits for something.

After a start nobody knows what was missed before. Of a kind with the index `unsettled` only these are looked at at
once, and the rest little by little: a hundred thousand objects at rest would take a minute of CPU to find nothing. The
kind promises by it that whatever can happen to its objects while nobody watches either leaves them unsettled or is told
by somebody else in the end, as a poll of their provider does.
"""

from collections.abc import Callable

from remuda.kernel.conditions import find_condition
from remuda.reconcile.status import AVAILABLE, conditions_of
from remuda.store.kinds import Index, Kind
from remuda.store.objects import Resource, ResourceT

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
