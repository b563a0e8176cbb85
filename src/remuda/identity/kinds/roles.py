"""Roles as they are stored: what they allow everywhere, in an organization, and in a project."""

from typing import Annotated

from remuda.access.principal import Verb
from remuda.identity.kinds.common import SHARED, VERSION
from remuda.kernel.tags import Tag
from remuda.store.kinds import Kind, keyed
from remuda.store.objects import Resource, StoredStruct


class Grant(StoredStruct, frozen=True):
    """What may be done to one endpoint."""

    name: str
    operations: tuple[Verb, ...] = ()


Grants = Annotated[tuple[Grant, ...], keyed("name")]


class RoleScopes(StoredStruct, frozen=True, rename={"everywhere": "global"}):
    """What a role allows, by where."""

    everywhere: Grants = ()
    organization: Grants = ()
    project: Grants = ()


class RoleSpec(StoredStruct, frozen=True):
    """What a role is."""

    protected: bool = False
    """It is for the configuration to give: nobody lists it or puts it into a group."""
    scopes: RoleScopes = RoleScopes()
    tags: tuple[Tag, ...] = ()


class Role(Resource, frozen=True):
    """A named set of rights."""

    spec: RoleSpec = RoleSpec()


ROLE = Kind(
    type=Role,
    group=SHARED,
    version=VERSION,
    plural="roles",
    columns={"Display name": ".metadata.labels.unikorn-cloud\\.org/name"},
)
"""Roles: those that are built in are written at each start, an operator may add others."""
