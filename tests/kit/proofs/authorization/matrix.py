"""The authorization matrix: operations by callers by targets, and the status that each cell must have.

A service's table is written by hand, as `Row`s; the callers are written by hand, with the permissions that they have in
the end; and `expected` is design section 7 as a rule over the two. None of it imports anything from the code it
validates.

What the rule says: nobody we know is 401. A path or query that names an organization or project outside the caller's
permissions is 403, existing or not. The id of an object in an organization the caller has nothing to do with is 404, as
if it were not there. An object of the own organization without the right is 403.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Right = tuple[str, str]
"""An endpoint and a verb."""
PermissionSet = frozenset[Right]
NONE: PermissionSet = frozenset()

ABSENT = "f0000000-0000-4000-8000-0000000000ff"
"""An id that nothing has."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Where an object belongs."""

    organization: str
    project: str


HOME = Scope("a0000000-0000-4000-8000-000000000001", "a0000000-0000-4000-8000-00000000000a")
NEXT_DOOR = Scope(HOME.organization, "a0000000-0000-4000-8000-00000000000b")
"""Another project of the same organization."""
ABROAD = Scope("b0000000-0000-4000-8000-000000000002", "b0000000-0000-4000-8000-00000000000a")
NOWHERE = Scope(ABSENT, ABSENT)
NO_PROJECT = Scope(HOME.organization, ABSENT)
LENT = Scope(HOME.organization, ABROAD.project)
"""A project under an organization that it does not belong to."""
PLACES = (HOME, NEXT_DOOR, ABROAD)
"""All that exist, each with objects in it."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One operation, as it should be."""

    operation: str
    method: str
    path: str
    scope: Literal["public", "authenticated", "everywhere", "organization", "project"]
    right: Right | None = None
    success: int = 200
    names: Literal["place", "object", "filter", "nothing"] = "nothing"
    """How a request says what it is about: by a place in its path, by an object's id alone, by a query, or not."""
    thing: str = ""
    """The parameter that holds an object's id, such as `yardID`; in the body if it is not in the path."""
    body: Callable[[Mapping[str, str]], Any] | None = None
    is_form: bool = False
    """The body is sent as a form."""

    @property
    def makes_in_place(self) -> bool:
        """It makes something in the place that its path names."""
        return self.names == "place" and self.method == "POST" and not self.thing


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Somebody, with the permissions that hold for the request in the end."""

    name: str
    sort: Literal["user", "account", "system"] = "user"
    is_known: bool = True
    everywhere: PermissionSet = NONE
    organizations: Mapping[str, PermissionSet] = field(default_factory=dict)
    """Of which organizations one is a member, and what one may do in all of it."""
    projects: Mapping[Scope, PermissionSet] = field(default_factory=dict)
    acts_for: str = ""
    """A service that acts for the caller of this name."""
    impersonates: bool = False
    own: "Caller | None" = None
    """The service itself, where what holds in the end is less than that."""

    def may(self, right: Right, scope: Scope) -> bool:
        """Tell whether the right holds in a place."""
        return self.may_in_all_of(right, scope.organization) or right in self.projects.get(scope, NONE)

    def may_in_all_of(self, right: Right, organization: str) -> bool:
        """Tell whether the right holds in a whole organization."""
        return right in self.everywhere | self.organizations.get(organization, NONE)

    def knows(self, right: Right, organization: str) -> bool:
        """Tell whether the caller has anything to do with an organization, or may read such things everywhere."""
        reading = (right[0], "read")
        homes = {*self.organizations, *(place.organization for place in self.projects)}
        return bool({right, reading} & self.everywhere) or organization in homes


@dataclass(frozen=True, kw_only=True)
class Target:
    """What a request is about."""

    label: str
    named: Scope | None = None
    """The place in the path."""
    holder: Scope | None = None
    """Where the object is; None if there is none, or it is not there."""
    query: Sequence[tuple[str, str]] = ()


def targets(row: Row) -> Iterator[Target]:
    """Yield everything that a request of this operation could be about."""
    if row.names == "nothing":
        yield Target(label="", holder=HOME if row.thing else None)
        if row.thing:
            yield Target(label="absent")
    elif row.names == "object":
        yield from (Target(label=label, holder=place) for label, place in _HELD.items())
        yield Target(label="absent")
    elif row.names == "filter":
        yield from (Target(label=label, query=query) for label, query in _FILTERS.items())
    else:
        yield from _in_places(row)


def _in_places(row: Row) -> Iterator[Target]:
    for label, place in _HELD.items():
        yield Target(label=label, named=place, holder=place if row.thing else None)
    for label, place in {"nowhere": NOWHERE, "no such project": NO_PROJECT, "lent project": LENT}.items():
        yield Target(label=label, named=place)
    if row.thing:
        yield Target(label="absent", named=HOME)
        yield Target(label="next door's through home", named=HOME, holder=NEXT_DOOR)
        yield Target(label="a foreigner's through home", named=HOME, holder=ABROAD)
        yield Target(label="home's through abroad", named=ABROAD, holder=HOME)
        yield Target(label="a foreigner's through a lent project", named=LENT, holder=ABROAD)


_HELD = {"home": HOME, "next door": NEXT_DOOR, "abroad": ABROAD}
_FILTERS: Mapping[str, Sequence[tuple[str, str]]] = {
    "all": (),
    "own organization": (("organizationID", HOME.organization),),
    "foreign organization": (("organizationID", ABROAD.organization),),
    "absent organization": (("organizationID", ABSENT),),
    "own and foreign organization": (("organizationID", HOME.organization), ("organizationID", ABROAD.organization)),
    "own project": (("projectID", HOME.project),),
    "next door's project": (("projectID", NEXT_DOOR.project),),
    "foreign project": (("projectID", ABROAD.project),),
    "absent project": (("projectID", ABSENT),),
    "own and foreign project": (("projectID", HOME.project), ("projectID", ABROAD.project)),
    "foreign project of own organization": (("organizationID", HOME.organization), ("projectID", ABROAD.project)),
}


def expected(row: Row, caller: Caller, target: Target) -> int:
    """Return the status that this request must have."""
    if not caller.is_known and row.scope != "public":
        return 401
    if row.right is None:
        return row.success
    if not _is_allowed(row.right, row, caller, target):
        return 403
    if row.thing and not _is_found(row.right, row, caller, target):
        return 404
    if row.makes_in_place and target.named not in PLACES and row.right not in caller.everywhere:
        return 404  # who may do everything is trusted as it is
    return row.success


def _is_allowed(right: Right, row: Row, caller: Caller, target: Target) -> bool:
    if row.scope == "everywhere":
        return right in caller.everywhere
    if row.names == "filter":
        return True  # of what the caller cannot see, the list shows nothing
    place = target.named if row.names == "place" else target.holder
    if place is None or (row.names == "object" and not caller.knows(right, place.organization)):
        return True  # there is nothing that could be forbidden
    if row.scope == "organization":
        return caller.may_in_all_of(right, place.organization)
    return caller.may(right, place)


def _is_found(right: Right, row: Row, caller: Caller, target: Target) -> bool:
    if target.holder is None:
        return False
    if row.names == "place":
        return target.holder == target.named
    return row.scope == "everywhere" or caller.knows(right, target.holder.organization)


def visible(row: Row, caller: Caller, target: Target) -> set[Scope]:
    """Return the places whose objects a list must show, if it answers at all: all that one may see, and no other."""
    assert row.right is not None, "a list of objects asks for a right"
    shown = {place for place in PLACES if caller.may(row.right, place)}
    if target.named is not None:
        shown &= {target.named}
    organizations = {value for name, value in target.query if name == "organizationID"}
    projects = {value for name, value in target.query if name == "projectID"}
    return {
        place
        for place in shown
        if place.organization in (organizations or {place.organization})
        and place.project in (projects or {place.project})
    }
