"""Audit: one record for each request of a known caller that may change something.

It says which component was asked, by whom, for what, where, about which object, and how it ended; never what was sent.
Failures are recorded like successes, from the moment that the caller is known and within its rate: a body that cannot
be understood, too. Reads are not recorded.

A service hands `witness` to the write that carries the request out, and the record is in that write's commit: neither
is kept without the other. Where no write took it, or the request failed after all, `finish` keeps a record with the
status before the answer goes out; if it cannot be kept, there is no such answer. An answer that is given again, under
its idempotency key, has a record that says `replayed`: nothing was done for it.

Public routes know no caller. Whoever serves one keeps records of what matters there, such as a login, with
`audit_record`: in the commit of what it makes, or appended to the log where it makes nothing.

The records are in the log stream `audit`. Their subject is `organization/<id>`, so that an organization can read its
own: that of the object written, else that of the path, else the one that pays, else the caller's only one. What belongs
to none has the subject `system`, and so has what a stranger asked of an organization: nobody writes into the records of
others, or begins those of an organization that may not exist. What is done to the whole system, on a route of the scope
`everywhere`, is not the business of where its administrator happens to be a member: it is the object's or the path's
organization's, or else the system's.
"""

from collections.abc import Mapping, Sequence

import msgspec
import structlog

from remuda.access.principal import Principal
from remuda.kernel.errors import RemudaError
from remuda.store.logs import Log, Record
from remuda.version import release

STREAM = "audit"
"""The log stream of the records."""

SYSTEM = "system"
"""The subject of records that belong to no organization."""

_OUR_FAILURE = 500
_REFUSED = 400


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """Who was asked."""

    name: str
    version: str


class Actor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who asked: whose credentials, for whom it was done, and which service acted."""

    subject: str
    actor: str = ""
    service: str | None = None


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was asked for: the method and the path as the route table has it."""

    verb: str
    route: str
    action: str = ""
    """What is done to the object, where the path ends in it, such as `stop`; elsewhere the method says it."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What it was about: the plural, as paths have it, and the id, empty where nothing has one yet."""

    type: str
    id: str = ""


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """How it ended; `replayed` if nothing was done for it."""

    status: int
    replayed: bool = False


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record, as it is stored."""

    component: Component
    actor: Actor
    operation: Operation
    scope: Mapping[str, str]
    """The parameters of the path, and the organization and project that pay."""
    resource: Target
    result: Result
    trace_id: str


class Audit:
    """The record of one request."""

    def __init__(
        self,
        log: Log,
        *,
        component: Component,
        principal: Principal,
        operation: Operation,
        path: Mapping[str, str],
        success: int,
        trace_id: str,
        is_everywhere: bool = False,
    ) -> None:
        """Take the parameters of the path as `path`, and as `success` the status of the request if it succeeds.

        `is_everywhere` says that the route is of the scope `everywhere`.
        """
        self._log, self._success, self._is_everywhere = log, success, is_everywhere
        self._component, self._operation, self._path, self._trace_id = component, operation, path, trace_id
        self._principal = principal
        self._is_witnessed = False
        self._written_in: str | None = None
        """The organization of the object that was written."""

    def witness(self, plural: str, name: str, *, organization: str | None = None) -> Sequence[Record]:
        """Return the record of a success, for the commit of the write that carries the request out."""
        self._is_witnessed, self._written_in = True, organization
        return (self._record(Result(self._success), Target(type=plural, id=name)),)

    async def finish(self, status: int, target: Target | None = None, *, replayed: bool = False) -> None:
        """Keep a record of how the request ended, unless its write has done so."""
        if self._is_witnessed and status < _REFUSED:
            return
        about = target or audited_target(self._operation, self._path)
        record = self._record(Result(status, replayed), about)
        try:
            await self._log.append([record])
        except RemudaError as error:
            if status < _OUR_FAILURE:
                raise
            # What failed the request may well be what fails the log: the operator's log is what is left.
            structlog.get_logger().error("audit record not kept", record=bytes(record.data).decode(), cause=error.code)

    def _record(self, result: Result, target: Target) -> Record:
        who = self._principal
        paying = {"organization": who.organization, "project": who.project}
        record = AuditRecord(
            component=self._component,
            actor=Actor(subject=who.subject, actor=who.actor, service=who.service),
            operation=self._operation,
            scope={**self._path, **{name: value for name, value in paying.items() if value is not None}},
            resource=target,
            result=result,
            trace_id=self._trace_id,
        )
        return _stored(record, self._subject())

    def _subject(self) -> str:
        """Return whose record it is. The principal is as its credentials say: a path names whom it likes."""
        who = self._principal
        named = self._path.get("organizationID")
        if self._written_in is None and named is not None and not _has_to_do_with(who, named):
            return SYSTEM
        return subject_of_organization(self._written_in or named or self._of_caller())

    def _of_caller(self) -> str | None:
        who = self._principal
        if self._is_everywhere:
            return None
        only = who.organizations[0] if len(who.organizations) == 1 else None
        return who.organization or only


def audit_record(
    *,
    component: str,
    actor: Actor,
    operation: Operation,
    resource: Target,
    status: int,
    trace_id: str,
    organization: str | None = None,
    scope: Mapping[str, str] | None = None,
) -> Record:
    """Return the record of an event that is no write of a known caller: a login, a session that ends, a token issued.

    `operation` is what happened, such as `Operation(verb="LOGIN", route="/oauth2/v2/login")`; `status` is how it ended,
    as HTTP would say it. It goes to the records of the organization, or to the system's if none is named: name one only
    where the actor belongs there. Like every record it must hold nothing that somebody typed, and no secret.
    """
    record = AuditRecord(
        component=Component(name=component, version=release()),
        actor=actor,
        operation=operation,
        scope=scope or {},
        resource=resource,
        result=Result(status),
        trace_id=trace_id,
    )
    return _stored(record, subject_of_organization(organization))


def subject_of_organization(organization: str | None) -> str:
    """Return the subject of an organization's records, or of those that belong to none."""
    return SYSTEM if organization is None else f"organization/{organization}"


def _stored(record: AuditRecord, subject: str) -> Record:
    return Record(stream=STREAM, subject=subject, data=msgspec.Raw(msgspec.json.encode(record)))


def _has_to_do_with(who: Principal, organization: str) -> bool:
    known = (who.organization, *who.organizations, *who.access.organizations)
    return bool(who.access.everywhere) or organization in known


def audited_target(operation: Operation, path: Mapping[str, str]) -> Target:
    """Return what a request is about as far as its path tells: the last `/plural/{id}`, or the last plural alone.

    An action at its end is none. Of two parameters in a row the first says of which kind the object is.
    """
    plural, name = "", ""
    for segment in operation.route.removesuffix(f"/{operation.action}").strip("/").split("/"):
        if segment.startswith("{"):
            plural, name = name or plural, path.get(segment[1:-1], "")
        else:
            plural, name = segment, ""
    return Target(type=plural, id=name)
