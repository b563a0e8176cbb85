"""The roles that every system has, and how they come into the store.

`BUILT_IN` is the whole table: what a role allows everywhere, in an organization, and in a project. Roles that allow
something everywhere are protected: the configuration gives them, nobody lists them or puts them into a group.

`seed_roles` runs at every start. It writes a built-in role that is missing or is not what this release says, and
nothing else, so that several processes may start at once and an operator's own roles stay as they are.
"""

import hashlib
from collections.abc import Iterator, Mapping
from functools import partial

from msgspec.structs import replace

from remuda.access.principal import Verb
from remuda.identity.kinds.roles import Grant, Role, RoleScopes, RoleSpec
from remuda.resources.conventions import NAME
from remuda.resources.crud import seed
from remuda.store.contract import Store
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
