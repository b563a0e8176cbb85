"""The principal: whoever stands behind a request, with the rights that hold for it.

Rights are an access list in three tiers. A right held globally holds in every organization, and one held in an
organization holds in all its projects; nothing denies. A service that acts for somebody (`service` is set) has its own
rights, or, impersonating, only those that both have.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

import msgspec

Verb = Literal["create", "read", "update", "delete"]
"""What can be done to an endpoint."""


class Permission(msgspec.Struct, frozen=True, cache_hash=True):
    """The right to do something to everything behind an endpoint name, such as `compute:instances`.

    Every request asks whether it is in a set: a struct is made, hashed and compared in a tenth of a dataclass's time.
    """

    endpoint: str
    verb: Verb


@dataclass(frozen=True, slots=True)
class OrganizationAccess:
    """What is allowed in one organization, and beyond that in some of its projects."""

    permissions: frozenset[Permission] = frozenset()
    projects: Mapping[str, frozenset[Permission]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AccessList:
    """Everything a principal may do."""

    everywhere: frozenset[Permission] = frozenset()
    organizations: Mapping[str, OrganizationAccess] = field(default_factory=dict)


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks. A struct, because every request makes several that differ a little."""

    subject: str
    """Whose credentials they are: a user's e-mail address, a service account's id, a service's name."""
    type: Literal["user", "service", "system"]
    access: AccessList = AccessList()
    actor: str = ""
    """For whom it is done and who is audited, where that is not the subject."""
    organization: str | None = None
    """The organization that pays, if it is known before the request is read."""
    project: str | None = None
    """The project that pays, likewise."""
    organizations: tuple[str, ...] = ()
    """Where the subject is a member."""
    service: str | None = None
    """The service that acts, if one acts for somebody else; or the operator at the machine who took a user's name."""
    expires: datetime | None = None
    """When the credentials end."""
    issuer: str = ""
    """Who says that it is the subject, letter by letter; empty means us."""
    vouched_by: str | None = None
    """The one organization that vouches for the subject, and where alone it is known; None means no such limit."""

    @property
    def who(self) -> str:
        """Who is to be named as the cause: the actor, or else the subject."""
        return self.actor or self.subject

    @property
    def caller(self) -> str:
        """Who is told apart from all others: who it is and, where a service acts for that one, which service."""
        return self.who if self.service is None else f"{self.service} for {self.who}"

    def paying(self, organization: str | None, project: str | None) -> "Principal":
        """Return the same one, with this organization and project as those that pay."""
        return msgspec.structs.replace(self, organization=organization, project=project)


ANONYMOUS = Principal(subject="", type="user")
"""Nobody in particular: the caller of a public route."""


def both(one: AccessList, other: AccessList) -> AccessList:
    """Return what both lists allow: no more than either, and only in organizations and projects that both reach."""
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
    my_reach, their_reach = one.everywhere | mine.permissions, other.everywhere | theirs.permissions
    projects = {
        project: (my_reach | mine.projects.get(project, frozenset()))
        & (their_reach | theirs.projects.get(project, frozenset()))
        for project in mine.projects.keys() | theirs.projects.keys()
        if (my_reach or project in mine.projects) and (their_reach or project in theirs.projects)
    }
    return OrganizationAccess(permissions=my_reach & their_reach, projects=projects)
