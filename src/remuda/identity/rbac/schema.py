"""Schemas of roles, access lists and revocations."""

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec

from remuda.access.principal import AccessList, OrganizationAccess, Permission, Verb
from remuda.http.schema import Moment, Uuid, Wire
from remuda.identity.kinds.tokens import Revocation
from remuda.identity.kinds.users import Role
from remuda.resources.metadata import read_metadata
from remuda.resources.schema import MetadataRead


class RoleRead(Wire, frozen=True):
    """Role."""

    metadata: MetadataRead
    grantable: Annotated[bool, msgspec.Meta(description="Whether the caller may assign it to a group.")]


class AclEndpoint(Wire, frozen=True):
    """Permitted operations of an endpoint."""

    name: Annotated[str, msgspec.Meta(description="Name of the endpoint, such as compute:instances.")]
    operations: Annotated[tuple[Verb, ...], msgspec.Meta(description="Permitted operations.")]


class AclProject(Wire, frozen=True):
    """Permissions in a project."""

    id: Annotated[Uuid, msgspec.Meta(description="Id of the project.")]
    endpoints: Annotated[tuple[AclEndpoint, ...], msgspec.Meta(description="Permissions in the project.")]


class AclOrganization(Wire, frozen=True):
    """Permissions in an organization, and additional ones in its projects."""

    id: Annotated[Uuid, msgspec.Meta(description="Id of the organization.")]
    endpoints: Annotated[
        tuple[AclEndpoint, ...], msgspec.Meta(description="Permissions in the organization and all of its projects.")
    ] = ()
    projects: Annotated[tuple[AclProject, ...], msgspec.Meta(description="Additional permissions in projects.")] = ()


_ACL_NAMES = {
    "everywhere": "global",
    "second_factor_required": "secondFactorRequired",
    "caller_name": "callerName",
}


class AclRead(Wire, frozen=True, rename=_ACL_NAMES):
    """Permissions of the caller. `organization` and `projects` repeat those of the organization in the path."""

    everywhere: Annotated[tuple[AclEndpoint, ...], msgspec.Meta(description="Permissions in all organizations.")] = ()
    organizations: Annotated[
        tuple[AclOrganization, ...], msgspec.Meta(description="Permissions in each organization of the caller.")
    ] = ()
    organization: AclOrganization | None = None
    projects: Annotated[
        tuple[AclProject, ...], msgspec.Meta(description="Permissions in the projects of the organization in the path.")
    ] = ()
    second_factor_required: Annotated[
        tuple[str, ...],
        msgspec.Meta(
            description="Organizations of the caller that require a second factor, which this login lacked. `*` are "
            "all, for a caller with global roles that require one."
        ),
    ] = ()
    caller_name: Annotated[str, msgspec.Meta(description="Name of the caller, if it is a service account.")] = ""


class RevocationRead(Wire, frozen=True):
    """Revoked token or session."""

    id: Annotated[str, msgspec.Meta(description="Id of a token (`jti`) or of a session (`sid`).")]
    expires: Annotated[Moment, msgspec.Meta(description="Time after which no token with this id is valid anyway.")]


def read_role(role: Role, *, grantable: bool) -> RoleRead:
    return RoleRead(metadata=read_metadata(role.metadata, role.spec.tags), grantable=grantable)


def read_acl(
    access: AccessList, organization: str | None = None, *, closed: tuple[str, ...] = (), caller_name: str = ""
) -> AclRead:
    """Return the response for an access list, in which the entry of `organization` is repeated."""
    organizations = {name: _organization(name, found) for name, found in sorted(access.organizations.items())}
    scoped = organizations.get(organization) if organization is not None else None
    return AclRead(
        everywhere=_endpoints(access.everywhere),
        organizations=tuple(organizations.values()),
        organization=scoped and AclOrganization(id=scoped.id, endpoints=scoped.endpoints),
        projects=scoped.projects if scoped else (),
        second_factor_required=closed,
        caller_name=caller_name,
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
