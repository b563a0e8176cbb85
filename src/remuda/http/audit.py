"""Audit: one record for each write request of an authenticated caller, and for each read of a secret.

A record names the component, the caller, the operation, the scope, the object and the outcome, never what was sent.
Failures are recorded like successes, from the moment that the caller is known and within its rate limit. The context's
`audit` hook returns the record of a success for the transaction that executes the request. If no write took it, or the
request failed afterwards, `finish` stores a record with the status before the response is sent; if that fails, the
request fails. A response that is replayed under its idempotency key has a record that says `replayed`. On public routes
a service records what matters, such as a login, with `audit_record`. A read is audited if its route serves nothing but
a secret, such as a private key.

Records are in the log stream `audit`. Their subject is `organization/<id>` or `system`. A request about an object that
exists is recorded in the organization of that object, for every caller: of the object that the path names, else
of the network that the body names. Any other is recorded in the organization that path or body name, if the caller has
access to it, else in the paying one, else in the caller's only one, else in `system`. On a route of the scope
`everywhere` the last two do not count.

A caller without access to the organization of the object is refused, and recorded twice: there, and where the request
would be recorded if the object did not exist, so that no log shows which ids exist elsewhere. The record in the
organization of the object contains nothing that such a caller has written or chosen, as it can the trace id and the
name of an account: only who it was, by id, the operation and the object.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated

import msgspec
import structlog

from remuda.access.principal import Principal
from remuda.kernel.errors import RemudaError
from remuda.store.logs import Log, Receipt, Record
from remuda.version import release

STREAM = "audit"

SYSTEM = "system"
"""Subject of records that belong to no organization."""

FindOwner = Callable[[Mapping[str, str]], Awaitable[str | None]]
"""Returns the organization of the object that parameters of a path name, or None if there is no such object."""

_ORGANIZATION = "organizationID"
_SERVER_ERROR = 500
_FIRST_ERROR = 400


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """Component that handled the request."""

    name: Annotated[str, msgspec.Meta(description="Name of the service.")]
    version: Annotated[str, msgspec.Meta(description="Release of the service.")]


class Actor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Caller: the subject of the credentials, the actor that it acts for, and the service that acted."""

    subject: Annotated[str, msgspec.Meta(description="Subject of the credentials.")]
    actor: Annotated[str, msgspec.Meta(description="Actor that the subject acts for.")] = ""
    service: Annotated[str | None, msgspec.Meta(description="Service that made the request.")] = None
    name: Annotated[
        str, msgspec.Meta(description="Name of the actor, or else of the subject, if that is a service account.")
    ] = ""


class AuditOperation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Requested operation: the method and the path template."""

    method: Annotated[str, msgspec.Meta(description="Method of the request.")]
    route: Annotated[str, msgspec.Meta(description="Path template of the request.")]
    action: Annotated[str, msgspec.Meta(description="Action on the object, such as stop.")] = ""


class AuditTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Object of a request: the plural, as in paths, and the id, which is empty if there is none yet."""

    type: Annotated[str, msgspec.Meta(description="Plural of the object, as in paths.")]
    id: Annotated[str, msgspec.Meta(description="Id of the object; empty if none was created.")] = ""


class AuditResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """Outcome of a request; `replayed` if nothing was executed for it."""

    status: Annotated[int, msgspec.Meta(description="Status of the response.")]
    replayed: Annotated[
        bool,
        msgspec.Meta(
            description="Whether it was the stored response to an earlier request with the same Idempotency-Key."
        ),
    ] = False


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
    """Trace of the request, which its caller may have chosen; empty in the record of an outsider."""


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
        owners: Mapping[str, FindOwner] | None = None,
    ) -> None:
        """Take the path parameters as `path`, the status of a successful request as `success`, and the owners.

        `owners` has a function for each parameter, of paths and bodies, that names an object.
        """
        self._log, self._success, self._is_everywhere = log, success, is_everywhere
        self._component, self._operation, self._path, self._trace_id = component, operation, path, trace_id
        self._principal, self._owners = principal, owners or {}
        self._body: Mapping[str, str] = {}
        self._receipts: list[Receipt] = []
        self._written_in: str | None = None

    def note_body(self, named: Mapping[str, str]) -> None:
        """Note the objects that the body names as those to which a new one belongs, by the names of parameters."""
        self._body = named

    def record_success(self, plural: str, name: str, *, organization: str | None = None) -> Sequence[Record]:
        """Return the record of a success, for the transaction that executes the request."""
        self._written_in = organization
        found = self._organization_without_object() if organization is None else organization
        record = self._record(AuditResult(self._success), AuditTarget(type=plural, id=name), found)
        self._receipts.append(Receipt())
        return (msgspec.structs.replace(record, receipt=self._receipts[-1]),)

    async def finish(self, status: int, target: AuditTarget | None = None, *, replayed: bool = False) -> None:
        """Store a record of the outcome, unless the write's transaction did so."""
        if status < _FIRST_ERROR and any(receipt.is_taken for receipt in self._receipts):
            return
        records = await self._records(AuditResult(status, replayed), target)
        try:
            await self._log.append(records)
        except RemudaError as error:
            if status < _SERVER_ERROR:
                raise
            # The failure of the request may also be that of the log: the operator's log is what is left.
            structlog.get_logger().error(
                "audit record not stored", record=bytes(records[0].data).decode(), cause=error.code
            )

    async def _records(self, result: AuditResult, target: AuditTarget | None) -> Sequence[Record]:
        about, who = target or audited_target(self._operation, self._path), self._principal
        if self._written_in is not None:
            return [self._record(result, about, self._written_in)]
        named, owner = await self._owner()
        usual = await self._existing_organization()
        if owner is None:
            return [self._record(result, about, usual)]
        if not has_access(who, owner):
            return [self._record_of_outsider(result, named, owner), self._record(result, about, usual)]
        is_elsewhere = self._path.get(_ORGANIZATION, owner) != owner
        return [self._record(result, about, each) for each in ((owner, usual) if is_elsewhere else (owner,))]

    def _record(self, result: AuditResult, target: AuditTarget, organization: str | None) -> Record:
        who = self._principal
        paying = {"organization": who.organization, "project": who.project}
        scope = {**self._path, **{name: value for name, value in paying.items() if value is not None}}
        return self._stored(result, target, scope, organization, trace_id=self._trace_id, name=who.display_name)

    def _record_of_outsider(self, result: AuditResult, named: str, organization: str) -> Record:
        """Return the record for the owner of an object, without what the caller can choose."""
        if named not in self._path:
            return self._stored(result, audited_target(self._operation, {}), {}, organization, trace_id="", name="")
        before, parameter, _ = self._operation.route.partition(f"{{{named}}}")
        target = _target_in(before + parameter, self._path)
        return self._stored(result, target, {named: target.id}, organization, trace_id="", name="")

    def _stored(
        self,
        result: AuditResult,
        target: AuditTarget,
        scope: Mapping[str, str],
        organization: str | None,
        *,
        trace_id: str,
        name: str,
    ) -> Record:
        who = self._principal
        record = AuditRecord(
            component=self._component,
            actor=Actor(subject=who.subject, actor=who.actor, service=who.service, name=name),
            operation=self._operation,
            scope=scope,
            resource=target,
            result=result,
            trace_id=trace_id,
        )
        return _stored(record, subject_of_organization(organization))

    async def _owner(self) -> tuple[str, str | None]:
        """Return the parameter that names the object of the request, and the organization of that object."""
        given, named = self._path, self._object_parameter()
        if named is None:
            given = self._body
            named = next((name for name in given if name in self._owners and name != _ORGANIZATION), None)
        return ("", None) if named is None else (named, await _found_by(self._owners[named], given))

    def _object_parameter(self) -> str | None:
        """Return the last path parameter that names an object; none if the request creates one."""
        operation = self._operation
        if operation.method == "POST" and not operation.action:
            return None
        return next((name for name in reversed(tuple(self._path)) if name in self._owners), None)

    def _organization_without_object(self) -> str | None:
        """Return the organization of a request about no object. A path or body may name any organization."""
        who = self._principal
        named = self._path.get(_ORGANIZATION) or self._body.get(_ORGANIZATION)
        if named is not None:
            return named if has_access(who, named) else None
        if self._is_everywhere:
            return None
        only = who.organizations[0] if len(who.organizations) == 1 else None
        return who.organization or only

    async def _existing_organization(self) -> str | None:
        """Return the same, or None if no such organization exists, as far as this service knows."""
        named, find = self._organization_without_object(), self._owners.get(_ORGANIZATION)
        return named if named is None or find is None else await _found_by(find, {_ORGANIZATION: named})


async def _found_by(find: FindOwner, named: Mapping[str, str]) -> str | None:
    try:
        return await find(named)
    except RemudaError:  # it cannot be read now
        return None


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


def has_access(who: Principal, organization: str) -> bool:
    """Return whether a caller belongs to an organization or has permissions everywhere."""
    known = (who.organization, *who.organizations, *who.closed, *who.access.organizations)
    return bool(who.access.everywhere) or organization in known


def audited_target(operation: AuditOperation, path: Mapping[str, str]) -> AuditTarget:
    """Return the object of a request as far as its path tells: the last `/plural/{id}`, or the last plural alone.

    An action at the end does not count. Of two parameters in a row the first is the object's type.
    """
    return _target_in(operation.route.removesuffix(f"/{operation.action}"), path)


def _target_in(route: str, path: Mapping[str, str]) -> AuditTarget:
    plural, name = "", ""
    for segment in route.strip("/").split("/"):
        if segment.startswith("{"):
            plural, name = name or plural, path.get(segment[1:-1], "")
        else:
            plural, name = segment, ""
    return AuditTarget(type=plural, id=name)
