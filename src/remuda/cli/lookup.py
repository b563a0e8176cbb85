"""Lookup of resources by name or id, and the login, organization and project that a command works in."""

import os
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

import msgspec
from cyclopts import Group, Parameter

from remuda.cli.client.contexts import ContextsFile, LoginContext, NamedId, default_path
from remuda.cli.client.session import ClientSession, Query, Service
from remuda.cli.output import ResourceT
from remuda.kernel.errors import Malformed, NotFound, Unusable

_ID_LENGTH = 36
_DASHES = (8, 13, 18, 23)
_MAX_NAMES = 8


class NamedResource(msgspec.Struct, frozen=True):
    """The part of any resource that a lookup by name needs."""

    metadata: NamedId


class _ExistingMetadata(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    name: str
    deletion_time: str | None = None


class ExistingResource(msgspec.Struct, frozen=True):
    """The part of any resource that tells whether its name is in use."""

    metadata: _ExistingMetadata


def reject_duplicate(name: str, existing: Iterable[ExistingResource], type_name: str) -> None:
    """Raise Unusable if a resource that is not being deleted has this name."""
    for each in existing:
        if each.metadata.name == name and each.metadata.deletion_time is None:
            raise Unusable(
                f"The {type_name} {name} exists already, with the id {each.metadata.id}: "
                "choose another name, or add --allow-duplicate."
            )


def is_id(text: str) -> bool:
    """Tell whether a text has the form of an id."""
    return len(text) == _ID_LENGTH and all(text[at] == "-" for at in _DASHES)


def match_one(items: Sequence[ResourceT], name: str, type_name: str) -> ResourceT:
    """Return the item with this id or name, or raise Unusable."""
    for each in items:
        if each.metadata.id == name:
            return each
    found = [each for each in items if each.metadata.name == name]
    if not found:
        raise Unusable(f"The {type_name} {name} does not exist: {_choices(items, type_name)}.")
    if len(found) > 1:
        ids = ", ".join(each.metadata.id for each in found)
        raise Unusable(f"The name {name} matches {len(found)} {_plural(type_name)}: give the id, one of {ids}.")
    return found[0]


async def find_resource(
    session: ClientSession,
    service: Service,
    path: str,
    item_type: type[ResourceT],
    name: str,
    type_name: str,
    query: Query | None = None,
    *,
    paged: bool = True,
) -> ResourceT:
    if is_id(name):
        try:
            return await session.get(service, f"{path}/{name}", item_type)
        except (NotFound, Malformed):
            message = f"The {type_name} {name} does not exist: check the id, and the login with remuda context list."
            raise Unusable(message) from None
    return match_one(await session.list_all(service, path, item_type, query, paged=paged), name, type_name)


def _plural(noun: str) -> str:
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def _choices(items: Sequence[ResourceT], type_name: str) -> str:
    names = sorted({each.metadata.name for each in items})
    if not names:
        return f"there are no {_plural(type_name)} yet"
    left = len(names) - _MAX_NAMES
    return f"choose from {', '.join(names[:_MAX_NAMES])}" + (f" and {left} more" if left > 0 else "")


_GROUP = Group("Login and project", sort_key=9)


@dataclass(frozen=True, slots=True)
class ProjectScope:
    """Organization and project of a command, by id; empty if none is chosen."""

    organization: str
    project: str

    @property
    def query(self) -> dict[str, str]:
        parameters = {"organizationID": self.organization, "projectID": self.project}
        return {name: value for name, value in parameters.items() if value}


@dataclass(frozen=True, slots=True)
class ScopedSession:
    """A session, and the organization and project that its command works in."""

    session: ClientSession
    scope: ProjectScope

    def require_project(self) -> ProjectScope:
        """Return the scope, or raise Unusable if no project is chosen."""
        self.require_organization()
        if not self.scope.project:
            raise Unusable("No project is chosen: give --project, or choose one with remuda context set.")
        return self.scope

    def require_organization(self) -> str:
        """Return the organization, or raise Unusable if none is chosen."""
        if not self.scope.organization:
            raise Unusable("No organization is chosen: give --organization, or choose one with remuda context set.")
        return self.scope.organization


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ScopeOptions:
    """Options that choose the login, the organization and the project."""

    context: Annotated[
        str | None, Parameter(group=_GROUP, help="Use this login context instead of the current one.")
    ] = None
    organization: Annotated[
        str | None, Parameter(group=_GROUP, help="Use this organization, by name or id, instead of the context's.")
    ] = None
    project: Annotated[
        str | None, Parameter(group=_GROUP, help="Use this project, by name or id, instead of the context's.")
    ] = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[ScopedSession]:
        file = contexts_file()
        name, context = file.read().find(self.context)
        async with ClientSession(name, context, file) as session:
            yield ScopedSession(session, await self._scope(session, context))

    async def _scope(self, session: ClientSession, context: LoginContext) -> ProjectScope:
        organization, project = context.organization, context.project
        if self.organization is not None:
            organization, project = await find_organization(session, self.organization), None
        if self.project is not None:
            project = await find_project(session, organization, self.project)
        return ProjectScope(*("" if each is None else each.id for each in (organization, project)))


DEFAULT_SCOPE = ScopeOptions()
"""The scope of the current login context."""


def contexts_file() -> ContextsFile:
    return ContextsFile(default_path(os.environ))


async def find_organization(session: ClientSession, name: str) -> NamedId:
    found = await session.get("identity", "/api/v1/organizations", list[NamedResource])
    return match_one(found, name, "organization").metadata


async def find_project(session: ClientSession, organization: NamedId | None, name: str) -> NamedId:
    if organization is None:
        raise Unusable("No organization is chosen: give the organization of the project with --organization.")
    path = f"/api/v1/organizations/{organization.id}/projects"
    return match_one(await session.get("identity", path, list[NamedResource]), name, "project").metadata
