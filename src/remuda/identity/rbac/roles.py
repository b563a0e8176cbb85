"""Built-in roles, the permissions that roles grant, and the check of who may grant a role.

`BUILT_IN` lists what each role allows globally, in an organization and in a project. Roles with global permissions are
protected: they are bound by the configuration, and are neither listed nor assigned to groups.

A caller grants only permissions that they have: global ones globally, those of an organization there, and those of
projects in the organization or in some project of it. The last is sufficient, because a role takes effect in a project
only through a group that the project lists, and changing either needs a permission of its own.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from remuda.access.principal import OrganizationAccess, Permission, Principal, Verb
from remuda.identity.kinds.users import Grant, Role, RoleScopes, RoleSpec
from remuda.kernel.errors import Forbidden
from remuda.resources.conventions import NAME
from remuda.resources.crud import find, seed
from remuda.store.contract import Store
from remuda.store.derived import DerivedCache
from remuda.store.objects import Metadata

PLATFORM_ADMINISTRATOR = "platform-administrator"

_VERBS: Mapping[str, Verb] = {"C": "create", "R": "read", "U": "update", "D": "delete"}


def role_id(name: str) -> str:
    """Return the id of a role, derived from its name as existing installations do."""
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
"""  # Without reads that show credentials, and without endpoints that do not exist.
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


async def seed_roles(store: Store) -> None:
    """Create or correct the built-in roles. Other roles are not changed, and several processes may start at once."""
    for role in _built_in():
        await seed(store, role, partial(_as_built_in, role))


def _built_in() -> Iterator[Role]:
    for name, spec in BUILT_IN.items():
        yield Role(metadata=Metadata(name=role_id(name), labels={NAME: name}), spec=spec)


def _as_built_in(requested: Role, found: Role) -> Role:
    labels = {**found.metadata.labels, **requested.metadata.labels}
    spec = replace(found.spec, protected=requested.spec.protected, scopes=requested.spec.scopes)
    return replace(found, metadata=replace(found.metadata, labels=labels), spec=spec)


_COMBINATIONS = 1024
_ROLES = (Role,)


@dataclass(frozen=True, slots=True)
class RolePermissions:
    """Permissions of one or more roles, by scope."""

    everywhere: frozenset[Permission] = frozenset()
    organization: frozenset[Permission] = frozenset()
    project: frozenset[Permission] = frozenset()


def permissions_of(spec: RoleSpec) -> RolePermissions:
    scopes = spec.scopes
    return RolePermissions(
        _permissions(scopes.everywhere), _permissions(scopes.organization), _permissions(scopes.project)
    )


def _permissions(grants: Iterable[Grant]) -> frozenset[Permission]:
    return frozenset(Permission(grant.name, verb) for grant in grants for verb in grant.operations)


class RoleIndex:
    """Cache of the permissions of each combination of roles, valid until a role changes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cache: DerivedCache[frozenset[str], RolePermissions] = DerivedCache(store, _COMBINATIONS)

    async def of(self, roles: frozenset[str]) -> RolePermissions:
        found = self._cache.find(roles)
        if found is None:
            counter = self._store.change_counter()
            found = _union([await self._permissions(role) for role in roles])
            self._cache.put(roles, _ROLES, counter, found)
        return found

    async def _permissions(self, role: str) -> RolePermissions:
        found = await find(self._store, Role, role)
        return RolePermissions() if found is None else permissions_of(found.spec)


def _union(roles: Iterable[RolePermissions]) -> RolePermissions:
    total = RolePermissions()
    for each in roles:
        total = RolePermissions(
            total.everywhere | each.everywhere, total.organization | each.organization, total.project | each.project
        )
    return total


_NO_ACCESS = OrganizationAccess()


def check_grant(principal: Principal, role: Role, organization: str) -> None:
    """Raise Forbidden unless the principal may assign the role to a group of the organization."""
    if role.spec.protected:
        raise Forbidden("requested role is protected")
    if not is_grantable(principal, role, organization):
        raise Forbidden("requested role cannot be granted")


def is_grantable(principal: Principal, role: Role, organization: str) -> bool:
    """Return whether the principal may assign the role to a group of the organization."""
    requested, access = permissions_of(role.spec), principal.access
    inside = access.organizations.get(organization, _NO_ACCESS)
    in_organization = access.everywhere | inside.permissions
    in_some_project = in_organization.union(*inside.projects.values())
    return (
        not role.spec.protected
        and requested.everywhere <= access.everywhere
        and requested.organization <= in_organization
        and requested.project <= in_some_project
    )
