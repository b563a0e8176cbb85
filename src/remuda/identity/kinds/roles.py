"""Stored roles: permissions globally, in an organization, and in a project."""

from typing import Annotated

from remuda.access.principal import Verb
from remuda.identity.kinds.common import SHARED, VERSION
from remuda.kernel.tags import Tag
from remuda.store.kinds import Kind, keyed
from remuda.store.objects import Resource, StoredStruct


class Grant(StoredStruct, frozen=True):
    """Permitted operations of an endpoint."""

    name: str
    operations: tuple[Verb, ...] = ()


Grants = Annotated[tuple[Grant, ...], keyed("name")]


class RoleScopes(StoredStruct, frozen=True, rename={"everywhere": "global"}):
    """Permissions of a role, by scope."""

    everywhere: Grants = ()
    organization: Grants = ()
    project: Grants = ()


class RoleSpec(StoredStruct, frozen=True):
    """Spec of a role."""

    protected: bool = False
    """Only the configuration binds it: it is not listed and cannot be assigned to groups."""
    scopes: RoleScopes = RoleScopes()
    tags: tuple[Tag, ...] = ()


class Role(Resource, frozen=True):
    """Named set of permissions."""

    spec: RoleSpec = RoleSpec()


ROLE = Kind(
    type=Role,
    group=SHARED,
    version=VERSION,
    plural="roles",
    columns={"Display name": ".metadata.labels.unikorn-cloud\\.org/name"},
)
"""Roles. Built-in ones are written at each start; an operator may add others."""
