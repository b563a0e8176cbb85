"""The principal: whoever stands behind a request, with the rights that hold for it.

Rights are an access list in three tiers. A right held globally holds in every organization, and one held in an
organization holds in all its projects; nothing denies. A service that acts for somebody (`service` is set) has its own
rights, or, impersonating, only those that both have.

The context of a call: what a service needs to know besides what is asked for.

It travels with the call whether that comes over HTTP or from another service in the same process.

What an operation remembers of whoever asked for it: as much of a principal as objects are to say of it later.

An operation is stored, and rights are not: they were judged when it was asked for, and may be others when it goes on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

import msgspec

from remuda.store.logs import Record

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


class Witness(Protocol):
    """Tells the audit of a change, in the change's own commit."""

    def __call__(self, plural: str, name: str, *, organization: str | None = None) -> Sequence[Record]:
        """Return the records for a change of the object with this plural, as paths have it, and this name.

        Say which organization the object belongs to where the path does not: its audit is where the record goes.
        """
        ...


def _nobody(plural: str, name: str, *, organization: str | None = None) -> Sequence[Record]:  # noqa: ARG001  a Witness
    return ()


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, and for which request."""

    principal: Principal
    operation: str
    """The id of what this request does. Sent again under its idempotency key it is the same, so what a service names
    after it is not made twice."""
    key: str | None = None
    """The idempotency key that the caller chose, if it did. A service that calls another names its operation here."""
    trace_id: str = "0" * 32
    if_match: str | None = None
    """The state the caller has seen, as the ETag of a read."""
    witness: Witness = _nobody
    """Call it for the `log` of the write that carries the request out: neither is then kept without the other."""


class Asker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who asked, for whom, and who pays."""

    subject: str
    type: Literal["user", "service", "system"]
    actor: str = ""
    organization: str | None = None
    project: str | None = None
    service: str | None = None
    """The service that acted: some tags are its own."""

    @property
    def principal(self) -> Principal:
        """The same one, without any rights."""
        return Principal(
            subject=self.subject,
            type=self.type,
            actor=self.actor,
            organization=self.organization,
            project=self.project,
            service=self.service,
        )


def asker_of(principal: Principal) -> Asker:
    """Return what is remembered of a principal."""
    return Asker(
        subject=principal.subject,
        type=principal.type,
        actor=principal.actor,
        organization=principal.organization,
        project=principal.project,
        service=principal.service,
    )
