"""As whom a command asks, and where: the login, and the organization and project it works in.

Names or ids: people type either, and mean one thing.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Group, Parameter

from remuda.cli.client.contexts import Context, ContextsFile, Named, default_path
from remuda.cli.client.session import Query, Service, Session
from remuda.kernel.errors import Malformed, NotFound, Unusable

_LENGTH = 36
_DASHES = (8, 13, 18, 23)
_SHOWN = 8


def looks_like_id(text: str) -> bool:
    """Tell whether somebody typed an id."""
    return len(text) == _LENGTH and all(text[at] == "-" for at in _DASHES)


def among(things: Sequence[Any], wanted: str, noun: str) -> Any:
    """Return the one of these things that has this id or name."""
    for each in things:
        if each["metadata"]["id"] == wanted:
            return each
    found = [each for each in things if each["metadata"]["name"] == wanted]
    if not found:
        raise Unusable(f"There is no {noun} {wanted}: {_others(things)}.")
    if len(found) > 1:
        ids = ", ".join(each["metadata"]["id"] for each in found)
        raise Unusable(f"The name {wanted} is that of {len(found)} {_plural(noun)}: say which by its id, of {ids}.")
    return found[0]


def resolve(session: Session, service: Service, path: str, wanted: str, noun: str, query: Query | None = None) -> Any:
    """Return the thing below a path that has this id or name."""
    if looks_like_id(wanted):
        try:
            return session.get(service, f"{path}/{wanted}")
        except (NotFound, Malformed):
            raise Unusable(f"There is no {noun} {wanted}: check the id, and as whom you ask.") from None
    return among(session.get_all(service, path, query), wanted, noun)


def _plural(noun: str) -> str:
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def _others(things: Sequence[Any]) -> str:
    names = sorted({each["metadata"]["name"] for each in things})
    if not names:
        return "there is none at all yet"
    left = len(names) - _SHOWN
    return f"choose from {', '.join(names[:_SHOWN])}" + (f" and {left} more" if left > 0 else "")


_GROUP = Group("As whom, and where", sort_key=9)


@dataclass(frozen=True, slots=True)
class Place:
    """Where somebody works, by ids; empty is nowhere in particular."""

    organization: str
    project: str

    @property
    def query(self) -> dict[str, str]:
        """The same, for the query of a list."""
        asked = {"organizationID": self.organization, "projectID": self.project}
        return {name: value for name, value in asked.items() if value}


@dataclass(frozen=True, slots=True)
class Asked:
    """A session, and where somebody works."""

    session: Session
    place: Place

    def needs_project(self) -> Place:
        """Return where something is made, or refuse if nobody has said."""
        self.needs_organization()
        if not self.place.project:
            raise Unusable("No project is chosen: say which with --project, or for good with remuda context set.")
        return self.place

    def needs_organization(self) -> str:
        """Return the organization, or refuse if nobody has said."""
        if not self.place.organization:
            raise Unusable(
                "No organization is chosen: say which with --organization, or for good with remuda context set."
            )
        return self.place.organization


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Where:
    """As whom, and where."""

    context: Annotated[
        str | None, Parameter(group=_GROUP, help="The login to use, instead of the current one; see remuda context.")
    ] = None
    organization: Annotated[
        str | None, Parameter(group=_GROUP, help="Another organization than the login's, by name or id.")
    ] = None
    project: Annotated[str | None, Parameter(group=_GROUP, help="Another project than the login's, by name or id.")] = (
        None
    )

    @contextmanager
    def open(self) -> Iterator[Asked]:
        """Open a session for the time of a block."""
        file = logins()
        name, context = file.read().find(self.context)
        with Session(name, context, file) as session:
            yield Asked(session, self._place(session, context))

    def _place(self, session: Session, context: Context) -> Place:
        organization, project = context.organization, context.project
        if self.organization is not None:
            organization, project = organization_called(session, self.organization), None
        if self.project is not None:
            if organization is None:
                raise Unusable("No organization is chosen: say with --organization whose project that is.")
            project = project_called(session, organization, self.project)
        return Place(*("" if each is None else each.id for each in (organization, project)))


HERE = Where()
"""As the login says."""


def logins() -> ContextsFile:
    """Return the file with all logins."""
    return ContextsFile(default_path(os.environ))


def organization_called(session: Session, wanted: str) -> Named:
    """Return the organization that has this id or name."""
    return _named(among(session.get("identity", "/api/v1/organizations"), wanted, "organization"))


def project_called(session: Session, organization: Named, wanted: str) -> Named:
    """Return the project of an organization that has this id or name."""
    path = f"/api/v1/organizations/{organization.id}/projects"
    return _named(among(session.get("identity", path), wanted, "project"))


def _named(thing: dict[str, dict[str, str]]) -> Named:
    return Named(id=thing["metadata"]["id"], name=thing["metadata"]["name"])
