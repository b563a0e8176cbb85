"""The roles that every system has, and how they come into the store.

`BUILT_IN` is the whole table: what a role allows everywhere, in an organization, and in a project. Roles that allow
something everywhere are protected: the configuration gives them, nobody lists them or puts them into a group.

`seed_roles` runs at every start. It writes a built-in role that is missing or is not what this release says, and
nothing else, so that several processes may start at once and an operator's own roles stay as they are.

Stored roles as sets of rights.

Who may give which role: nobody gives more than they have.

What a role allows everywhere must be held everywhere; what it allows in an organization, there; and what it allows in
projects, in the organization or in some project of it. The last is enough because a role takes effect in a project
only through a group that the project lists, and both the group and that list need rights of their own to change.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from remuda.access.principal import OrganizationAccess, Permission, Principal, Verb
from remuda.identity.kinds.roles import Grant, Role, RoleScopes, RoleSpec
from remuda.kernel.errors import Forbidden, NotFound
from remuda.resources.conventions import NAME
from remuda.resources.crud import seed
from remuda.store.contract import Store
from remuda.store.derived import DerivedCache
from remuda.store.objects import Metadata

PLATFORM_ADMINISTRATOR = "platform-administrator"
"""The role of those whom the configuration names as administrators of everything."""

_VERBS: Mapping[str, Verb] = {"C": "create", "R": "read", "U": "update", "D": "delete"}


def role_id(name: str) -> str:
    """Return the id of a role, which depends on its name alone: existing installations derive it the same way."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    return f"f{digest[1:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"


_ADMINISTRATOR = """
    RU    identity:organizations
    CRUD  identity:oauth2providers identity:serviceaccounts identity:users identity:roles identity:groups
    CRUD  identity:projects
    R     identity:quotas
    R     region:regions region:flavors region:filestorageclass:v2 region:volumeclasses:v2
    CRD   region:images region:sshcertificateauthorities:v2
    CRUD  region:networks:v2 region:loadbalancers:v2 region:volumes:v2 region:filestorage:v2 region:securitygroups:v2
    R     storage:objectstorageclasses
    CRUD  storage:objectstorageendpoints storage:objectstorageendpoints/accesskeys
    R     kubernetes:regions kubernetes:flavors kubernetes:images
    CRUD  kubernetes:clusters kubernetes:virtualclusters
    R     compute:regions compute:flavors compute:images
    CRUD  compute:instances compute:clusters
"""
_USER_IN_ORGANIZATION = """
    R     identity:quotas
    R     region:regions region:flavors region:filestorageclass:v2 region:volumeclasses:v2
    CRD   region:images
    R     storage:objectstorageclasses
    R     kubernetes:regions kubernetes:flavors kubernetes:images
    R     compute:regions compute:flavors compute:images
"""
_USER_IN_PROJECT = """
    R     identity:projects
    CRUD  region:networks:v2 region:loadbalancers:v2 region:securitygroups:v2 region:volumes:v2 region:filestorage:v2
    CRD   region:sshcertificateauthorities:v2
    CRUD  storage:objectstorageendpoints storage:objectstorageendpoints/accesskeys
    CRUD  kubernetes:clusters kubernetes:virtualclusters
    CRUD  compute:instances compute:clusters
"""
_PLATFORM_ADMINISTRATOR = """
    CRUD  identity:organizations identity:oauth2providers identity:roles identity:serviceaccounts identity:users
    CRUD  identity:groups identity:projects identity:projects/references identity:quotas identity:allocations
    CRUD  region:regions region:flavors region:images region:externalnetworks
    CRUD  region:identities region:identities/references region:networks region:networks/references
    CRUD  region:networks:v2 region:networks:v2/references region:loadbalancers:v2
    CRUD  region:securitygroups region:securitygroups:v2 region:servers region:servers:v2
    CRUD  region:volumes:v2 region:filestorage:v2 region:filestorageclass:v2
    R     region:volumeclasses:v2
    CRD   region:sshcertificateauthorities:v2
    CRUD  kubernetes:regions kubernetes:flavors kubernetes:images
    CRUD  kubernetes:clustermanagers kubernetes:clusters kubernetes:virtualclusters
    CRUD  compute:regions compute:flavors compute:images compute:instances compute:clusters
    CRUD  storage:objectstorageclasses storage:objectstorageendpoints storage:objectstorageendpoints/accesskeys
"""
_PLATFORM_READER = """
    R     identity:organizations identity:oauth2providers identity:roles identity:serviceaccounts identity:users
    R     identity:groups identity:projects identity:quotas identity:allocations
    R     region:regions region:flavors region:images region:externalnetworks region:networks region:networks:v2
    R     region:loadbalancers:v2 region:securitygroups region:securitygroups:v2 region:servers
    R     region:filestorage:v2 region:filestorageclass:v2 region:volumeclasses:v2
    R     region:sshcertificateauthorities:v2
    R     kubernetes:regions kubernetes:flavors kubernetes:images kubernetes:clustermanagers
    R     compute:regions compute:flavors compute:images
    R     storage:objectstorageclasses storage:objectstorageendpoints
"""  # Reads that show credentials are left out, as are those that nobody serves.
_REGION_SERVICE = """
    CRUD  identity:allocations
    R     identity:projects
    CD    identity:projects/references
"""
_KUBERNETES_SERVICE = """
    CRUD  identity:allocations
    R     identity:projects
    CD    identity:projects/references
    CRD   region:identities region:networks
    CD    region:identities/references
    R     region:regions region:regions/detail region:flavors region:images region:externalnetworks
"""
_COMPUTE_SERVICE = """
    CRUD  identity:allocations
    R     identity:projects identity:quotas
    CRD   region:identities region:networks
    R     region:regions region:flavors region:networks:v2 region:securitygroups:v2 region:sshcertificateauthorities:v2
    CR    region:images
    CRUD  region:servers region:servers:v2 region:securitygroups
"""
_STORAGE_SERVICE = """
    CRUD  identity:allocations
    R     identity:projects
    CD    identity:projects/references
    CRUD  region:networks:v2/references
"""


def _grants(text: str) -> tuple[Grant, ...]:
    lines = [line.split() for line in text.strip().splitlines()]
    return tuple(
        Grant(name=endpoint, operations=tuple(_VERBS[letter] for letter in letters))
        for letters, *endpoints in lines
        for endpoint in endpoints
    )


def _reads(text: str) -> tuple[Grant, ...]:
    return tuple(Grant(name=grant.name, operations=("read",)) for grant in _grants(text))


def _protected(text: str) -> RoleSpec:
    return RoleSpec(protected=True, scopes=RoleScopes(everywhere=_grants(text)))


BUILT_IN: Mapping[str, RoleSpec] = {
    "administrator": RoleSpec(scopes=RoleScopes(organization=_grants(_ADMINISTRATOR))),
    "auditor": RoleSpec(scopes=RoleScopes(organization=_reads(_ADMINISTRATOR))),
    "user": RoleSpec(scopes=RoleScopes(organization=_grants(_USER_IN_ORGANIZATION), project=_grants(_USER_IN_PROJECT))),
    "reader": RoleSpec(scopes=RoleScopes(organization=_reads(_USER_IN_ORGANIZATION), project=_reads(_USER_IN_PROJECT))),
    PLATFORM_ADMINISTRATOR: _protected(_PLATFORM_ADMINISTRATOR),
    "platform-reader": _protected(_PLATFORM_READER),
    "region-service": _protected(_REGION_SERVICE),
    "kubernetes-service": _protected(_KUBERNETES_SERVICE),
    "compute-service": _protected(_COMPUTE_SERVICE),
    "storage-service": _protected(_STORAGE_SERVICE),
}
"""The roles that are always there, by their names."""


async def seed_roles(store: Store) -> None:
    """Make the built-in roles in the store what they are here."""
    for role in _built_in():
        await seed(store, role, partial(_as_built_in, role))


def _built_in() -> Iterator[Role]:
    for name, spec in BUILT_IN.items():
        yield Role(metadata=Metadata(name=role_id(name), labels={NAME: name}), spec=spec)


def _as_built_in(wanted: Role, found: Role) -> Role:
    labels = {**found.metadata.labels, **wanted.metadata.labels}
    spec = replace(found.spec, protected=wanted.spec.protected, scopes=wanted.spec.scopes)
    return replace(found, metadata=replace(found.metadata, labels=labels), spec=spec)


_COMBINATIONS = 1024
_ROLES = (Role,)


@dataclass(frozen=True, slots=True)
class RoleRights:
    """What roles allow together, by where."""

    everywhere: frozenset[Permission] = frozenset()
    organization: frozenset[Permission] = frozenset()
    project: frozenset[Permission] = frozenset()


def rights_of(spec: RoleSpec) -> RoleRights:
    scopes = spec.scopes
    return RoleRights(_permissions(scopes.everywhere), _permissions(scopes.organization), _permissions(scopes.project))


def _permissions(grants: Iterable[Grant]) -> frozenset[Permission]:
    return frozenset(Permission(grant.name, verb) for grant in grants for verb in grant.operations)


class RoleBook:
    """What any combination of roles allows, worked out once for all who have it until some role changes.

    A role that is not there allows nothing: who has others keeps those.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: DerivedCache[frozenset[str], RoleRights] = DerivedCache(store, _COMBINATIONS)

    async def of(self, roles: frozenset[str]) -> RoleRights:
        """Return what these roles, by their ids, allow together."""
        kept = self._kept.find(roles)
        if kept is None:
            stamp = self._store.change_counter()
            kept = _together([await self._one(role) for role in roles])
            self._kept.put(roles, _ROLES, stamp, kept)
        return kept

    async def _one(self, role: str) -> RoleRights:
        try:
            return rights_of((await self._store.get(Role, role)).spec)
        except NotFound:
            return RoleRights()


def _together(several: Iterable[RoleRights]) -> RoleRights:
    whole = RoleRights()
    for each in several:
        whole = RoleRights(
            whole.everywhere | each.everywhere, whole.organization | each.organization, whole.project | each.project
        )
    return whole


_NOWHERE = OrganizationAccess()


def check_grant(principal: Principal, role: Role, organization: str) -> None:
    """Raise Forbidden unless this principal may put the role into a group of the organization."""
    if role.spec.protected:
        raise Forbidden("requested role is protected")
    if not is_grantable(principal, role, organization):
        raise Forbidden("requested role cannot be granted")


def is_grantable(principal: Principal, role: Role, organization: str) -> bool:
    """Tell whether this principal may put the role into a group of the organization."""
    wanted, access = rights_of(role.spec), principal.access
    inside = access.organizations.get(organization, _NOWHERE)
    in_organization = access.everywhere | inside.permissions
    in_some_project = in_organization.union(*inside.projects.values())
    return (
        not role.spec.protected
        and wanted.everywhere <= access.everywhere
        and wanted.organization <= in_organization
        and wanted.project <= in_some_project
    )
