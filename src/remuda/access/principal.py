"""Principal: the authenticated caller of a request with its permissions, and the context of a call.

Permissions are an access list in three scopes. A global permission applies in every organization, and one in an
organization in all its projects; nothing denies. A service that acts for another caller (`service` is set) has its own
permissions, or, impersonating, the intersection of both. An operation stores a `Requester`, the principal without
permissions: they were checked when the operation was requested.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

import msgspec

from remuda.store.logs import Record

Verb = Literal["create", "read", "update", "delete"]


class Permission(msgspec.Struct, frozen=True, cache_hash=True):
    """The permission for an action on an endpoint, such as `compute:instances`. A struct, for fast hashing."""

    endpoint: str
    verb: Verb


@dataclass(frozen=True, slots=True)
class OrganizationAccess:
    """The permissions in an organization, and additional ones in some of its projects."""

    permissions: frozenset[Permission] = frozenset()
    projects: Mapping[str, frozenset[Permission]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AccessList:
    """All permissions of a principal."""

    everywhere: frozenset[Permission] = frozenset()
    organizations: Mapping[str, OrganizationAccess] = field(default_factory=dict)


EVERYWHERE = "*"
"""Stands among closed organizations for the global permissions of the subject, which need a second factor."""


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """The caller. A struct, because every request creates several slightly different ones."""

    subject: str
    """The owner of the credentials: a user's e-mail address, a service account's id, a service's name."""
    type: Literal["user", "service", "system"]
    access: AccessList = AccessList()
    actor: str = ""
    """The user on whose behalf it is done and who is audited, if that is not the subject."""
    display_name: str = ""
    """The name of the audited service account, as it was when it was authenticated; empty for all whose id is a name.

    It is only shown. Decisions compare ids.
    """
    organization: str | None = None
    """The organization that pays, if it is known before the request is read."""
    project: str | None = None
    """The project that pays, if it is known before the request is read."""
    organizations: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    """Organizations of the subject in which it has no permissions because its login lacked a second factor.

    `EVERYWHERE` is among them if it lacks its global permissions for that reason.
    """
    service: str | None = None
    """The service that acts on behalf of another caller, or the local operator that impersonates a user."""
    expires: datetime | None = None
    issuer: str = ""
    """The issuer of the credentials, exactly as it writes itself; empty for this system."""
    member_of_only: str | None = None
    """The only organization in which the subject is known, by its identity provider; None for no limit."""

    @property
    def actor_name(self) -> str:
        """The name for audit and timeline: the actor, or else the subject."""
        return self.actor or self.subject

    @property
    def caller(self) -> str:
        """The unique name of the caller: the actor and, if a service acts for it, that service."""
        return self.actor_name if self.service is None else f"{self.service} for {self.actor_name}"

    def with_payer(self, organization: str | None, project: str | None) -> "Principal":
        return msgspec.structs.replace(self, organization=organization, project=project)


ANONYMOUS = Principal(subject="", type="user")
"""The caller of a public route."""


def intersection(one: AccessList, other: AccessList) -> AccessList:
    """Return the intersection of two access lists, in the organizations and projects that both can access."""
    return AccessList(
        everywhere=one.everywhere & other.everywhere,
        organizations={
            name: _both_in(name, one, other)
            for name in one.organizations.keys() | other.organizations.keys()
            if all(access.everywhere or name in access.organizations for access in (one, other))
        },
    )


def _both_in(organization: str, one: AccessList, other: AccessList) -> OrganizationAccess:
    mine, theirs = (access.organizations.get(organization, OrganizationAccess()) for access in (one, other))
    my_permissions, their_permissions = one.everywhere | mine.permissions, other.everywhere | theirs.permissions
    projects = {
        project: (my_permissions | mine.projects.get(project, frozenset()))
        & (their_permissions | theirs.projects.get(project, frozenset()))
        for project in mine.projects.keys() | theirs.projects.keys()
        if (my_permissions or project in mine.projects) and (their_permissions or project in theirs.projects)
    }
    return OrganizationAccess(permissions=my_permissions & their_permissions, projects=projects)


class AuditHook(Protocol):
    """Returns the audit records of a change, which are stored in the change's own commit."""

    def __call__(self, plural: str, name: str, *, organization: str | None = None) -> Sequence[Record]:
        """Return the records for a change of this object; pass its organization if the path does not contain it."""


def _no_audit(plural: str, name: str, *, organization: str | None = None) -> Sequence[Record]:  # noqa: ARG001  an AuditHook
    return ()


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """The caller of a request, and the request."""

    principal: Principal
    operation: str
    """The id of the operation; the same for a repeated request with the same idempotency key."""
    key: str | None = None
    """The idempotency key of the caller, if any. A service that calls another passes its operation."""
    trace_id: str = "0" * 32
    if_match: str | None = None
    audit: AuditHook = _no_audit
    """Returns the `log` of the write that carries out the request, so that neither is stored without the other."""
    impersonated: Principal | None = None
    """The caller that a service impersonates in this call: it asks for no more than both may do."""


class Requester(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stored part of a principal: the caller, the actor, and the payer."""

    subject: str
    type: Literal["user", "service", "system"]
    actor: str = ""
    organization: str | None = None
    project: str | None = None
    service: str | None = None
    """The service that acted: it owns some tags."""

    @property
    def principal(self) -> Principal:
        return self.named("")

    def named(self, display_name: str) -> Principal:
        """Return the principal with its display name.

        The name is stored beside the input of an operation, not in it: a repeated request is recognized by an equal
        input, and an account can be renamed in between.
        """
        return Principal(
            subject=self.subject,
            type=self.type,
            actor=self.actor,
            display_name=display_name,
            organization=self.organization,
            project=self.project,
            service=self.service,
        )


def requester_of(principal: Principal) -> Requester:
    return Requester(
        subject=principal.subject,
        type=principal.type,
        actor=principal.actor,
        organization=principal.organization,
        project=principal.project,
        service=principal.service,
    )
