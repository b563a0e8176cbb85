"""Audit: one record for each write request of an authenticated caller.

A record names the component, the caller, the operation, the scope, the object and the outcome, never what was sent.
Failures are recorded like successes, from the moment that the caller is known and within its rate limit. The context's
`audit` hook returns the record of a success for the transaction that executes the request. If no write took it, or the
request failed afterwards, `finish` stores a record with the status before the response is sent; if that fails, the
request fails. A response that is replayed under its idempotency key has a record that says `replayed`. On public routes
a service records what matters, such as a login, with `audit_record`.

Records are in the log stream `audit`. Their subject is `organization/<id>`: that of the written object, else that of
the path, else the paying one, else the caller's only one; otherwise it is `system`. So it is for requests of outsiders,
who must not write into another organization's audit log. On a route of the scope `everywhere` only the organization of
the object or of the path counts.
"""

from collections.abc import Mapping, Sequence

import msgspec
import structlog

from remuda.access.principal import Principal
from remuda.kernel.errors import RemudaError
from remuda.store.logs import Log, Record
from remuda.version import release

STREAM = "audit"

SYSTEM = "system"
"""Subject of records that belong to no organization."""

_SERVER_ERROR = 500
_FIRST_ERROR = 400


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """Component that handled the request."""

    name: str
    version: str


class Actor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Caller: the subject of the credentials, the actor that it acts for, and the service that acted."""

    subject: str
    actor: str = ""
    service: str | None = None


class AuditOperation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Requested operation: the method and the path template."""

    method: str
    route: str
    action: str = ""
    """Action on the object, if the path ends in one, such as `stop`; otherwise the method says it."""


class AuditTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Object of a request: the plural, as in paths, and the id, which is empty if there is none yet."""

    type: str
    id: str = ""


class AuditResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """Outcome of a request; `replayed` if nothing was executed for it."""

    status: int
    replayed: bool = False


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record, as it is stored."""

    component: Component
    actor: Actor
    operation: AuditOperation
    scope: Mapping[str, str]
    """Path parameters, and the paying organization and project."""
    resource: AuditTarget
    result: AuditResult
    trace_id: str


class Audit:
    """Audit of one request."""

    def __init__(
        self,
        log: Log,
        *,
        component: Component,
        principal: Principal,
        operation: AuditOperation,
        path: Mapping[str, str],
        success: int,
        trace_id: str,
        is_everywhere: bool = False,
    ) -> None:
        """Take the path parameters as `path`, and the status of a successful request as `success`."""
        self._log, self._success, self._is_everywhere = log, success, is_everywhere
        self._component, self._operation, self._path, self._trace_id = component, operation, path, trace_id
        self._principal = principal
        self._is_recorded = False
        self._written_in: str | None = None

    def record_success(self, plural: str, name: str, *, organization: str | None = None) -> Sequence[Record]:
        """Return the record of a success, for the transaction that executes the request."""
        self._is_recorded, self._written_in = True, organization
        return (self._record(AuditResult(self._success), AuditTarget(type=plural, id=name)),)

    async def finish(self, status: int, target: AuditTarget | None = None, *, replayed: bool = False) -> None:
        """Store a record of the outcome, unless the write's transaction did so."""
        if self._is_recorded and status < _FIRST_ERROR:
            return
        about = target or audited_target(self._operation, self._path)
        record = self._record(AuditResult(status, replayed), about)
        try:
            await self._log.append([record])
        except RemudaError as error:
            if status < _SERVER_ERROR:
                raise
            # The failure of the request may also be that of the log: the operator's log is what is left.
            structlog.get_logger().error(
                "audit record not stored", record=bytes(record.data).decode(), cause=error.code
            )

    def _record(self, result: AuditResult, target: AuditTarget) -> Record:
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
        """Return the subject of the record. The principal is authenticated, but a path may name any organization."""
        who = self._principal
        named = self._path.get("organizationID")
        if self._written_in is None and named is not None and not _belongs_to(who, named):
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
    operation: AuditOperation,
    resource: AuditTarget,
    status: int,
    trace_id: str,
    organization: str | None = None,
    scope: Mapping[str, str] | None = None,
) -> Record:
    """Return the record of an event that is not a write of an authenticated caller, such as a login or an issued token.

    `operation` names the event, such as `AuditOperation(verb="LOGIN", route="/oauth2/v2/login")`; `status` is its
    outcome as an HTTP status. The record goes to the named organization, or to the system if none is named: name one
    only if the actor belongs to it. Like every record it must contain no user input and no secret.
    """
    record = AuditRecord(
        component=Component(name=component, version=release()),
        actor=actor,
        operation=operation,
        scope=scope or {},
        resource=resource,
        result=AuditResult(status),
        trace_id=trace_id,
    )
    return _stored(record, subject_of_organization(organization))


def subject_of_organization(organization: str | None) -> str:
    """Return the subject of an organization's records, or of those that belong to none."""
    return SYSTEM if organization is None else f"organization/{organization}"


def _stored(record: AuditRecord, subject: str) -> Record:
    return Record(stream=STREAM, subject=subject, data=msgspec.Raw(msgspec.json.encode(record)))


def _belongs_to(who: Principal, organization: str) -> bool:
    known = (who.organization, *who.organizations, *who.closed, *who.access.organizations)
    return bool(who.access.everywhere) or organization in known


def audited_target(operation: AuditOperation, path: Mapping[str, str]) -> AuditTarget:
    """Return the object of a request as far as its path tells: the last `/plural/{id}`, or the last plural alone.

    An action at the end does not count. Of two parameters in a row the first is the object's type.
    """
    plural, name = "", ""
    for segment in operation.route.removesuffix(f"/{operation.action}").strip("/").split("/"):
        if segment.startswith("{"):
            plural, name = name or plural, path.get(segment[1:-1], "")
        else:
            plural, name = segment, ""
    return AuditTarget(type=plural, id=name)
