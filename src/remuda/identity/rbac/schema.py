"""Schemas of roles, access lists and revocations."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from remuda.access.principal import AccessList, OrganizationAccess, Permission, Verb
from remuda.http.schema import Wire
from remuda.identity.kinds.tokens import Revocation
from remuda.identity.kinds.users import Role
from remuda.resources.metadata import read_metadata
from remuda.resources.schema import MetadataRead


class RoleRead(Wire, frozen=True):
    """Role."""

    metadata: MetadataRead
    grantable: bool
    """Whether the caller may assign it to a group."""


class AclEndpoint(Wire, frozen=True):
    """Permitted operations of an endpoint."""

    name: str
    operations: tuple[Verb, ...]


class AclProject(Wire, frozen=True):
    """Permissions in a project."""

    id: str
    endpoints: tuple[AclEndpoint, ...]


class AclOrganization(Wire, frozen=True):
    """Permissions in an organization, and additional ones in its projects."""

    id: str
    endpoints: tuple[AclEndpoint, ...] = ()
    projects: tuple[AclProject, ...] = ()


class AclRead(Wire, frozen=True, rename={"everywhere": "global", "second_factor_required": "secondFactorRequired"}):
    """Permissions of the caller. `organization` and `projects` repeat those of the organization in the path."""

    everywhere: tuple[AclEndpoint, ...] = ()
    organizations: tuple[AclOrganization, ...] = ()
    organization: AclOrganization | None = None
    projects: tuple[AclProject, ...] = ()
    second_factor_required: tuple[str, ...] = ()
    """Organizations of the caller that require a second factor, which this login lacked."""


class RevocationRead(Wire, frozen=True):
    """Revoked token or session."""

    id: str
    """Id of a token (`jti`) or of a session (`sid`)."""
    expires: datetime
    """Time after which no token with this id is valid anyway."""


def read_role(role: Role, *, grantable: bool) -> RoleRead:
    return RoleRead(metadata=read_metadata(role.metadata, role.spec.tags), grantable=grantable)


def read_acl(access: AccessList, organization: str | None = None, *, closed: tuple[str, ...] = ()) -> AclRead:
    """Return the response for an access list, in which the entry of `organization` is repeated."""
    organizations = {name: _organization(name, found) for name, found in sorted(access.organizations.items())}
    scoped = organizations.get(organization) if organization is not None else None
    return AclRead(
        everywhere=_endpoints(access.everywhere),
        organizations=tuple(organizations.values()),
        organization=scoped and AclOrganization(id=scoped.id, endpoints=scoped.endpoints),
        projects=scoped.projects if scoped else (),
        second_factor_required=closed,
    )


def access_of(acl: AclRead) -> AccessList:
    return AccessList(
        everywhere=_permissions(acl.everywhere),
        organizations={
            each.id: OrganizationAccess(
                _permissions(each.endpoints), {project.id: _permissions(project.endpoints) for project in each.projects}
            )
            for each in acl.organizations
        },
    )


def _organization(name: str, found: OrganizationAccess) -> AclOrganization:
    return AclOrganization(id=name, endpoints=_endpoints(found.permissions), projects=_projects(found.projects))


def _projects(projects: Mapping[str, frozenset[Permission]]) -> tuple[AclProject, ...]:
    # There may be thousands, and the same few roles in all of them.
    endpoints = {permissions: _endpoints(permissions) for permissions in set(projects.values())}
    return tuple(AclProject(id=name, endpoints=endpoints[projects[name]]) for name in sorted(projects))


def _endpoints(permissions: Iterable[Permission]) -> tuple[AclEndpoint, ...]:
    by_name: dict[str, list[Verb]] = {}
    for permission in permissions:
        by_name.setdefault(permission.endpoint, []).append(permission.verb)
    return tuple(AclEndpoint(name=name, operations=tuple(sorted(by_name[name]))) for name in sorted(by_name))


def _permissions(endpoints: Iterable[AclEndpoint]) -> frozenset[Permission]:
    return frozenset(Permission(endpoint.name, verb) for endpoint in endpoints for verb in endpoint.operations)


def revocation_view(revocation: Revocation) -> bytes:
    assert revocation.spec.expires is not None, "every revocation expires"
    return msgspec.json.encode(RevocationRead(id=revocation.spec.revoked, expires=revocation.spec.expires))
