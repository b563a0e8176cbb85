"""Services of quotas: the limits of organizations and projects, and the allocations that are counted against them.

An allocation is named after its operation: the caller's Idempotency-Key, or else the request. A caller that sent a key
confirms the allocation; without a key it is confirmed from the start. For clients a released allocation does not exist:
reading it responds 404, but releasing it again succeeds, it can be renewed, and it stays in the usage, even after its
project and its organization were deleted. A project that is being deleted keeps its allocations until they are
released.

Each allocation in the usage of an organization belongs to a project: a caller who may not read that project sees
neither the allocation nor its creator. The usage of a deleted project is for callers who may read all projects.
"""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from remuda.access.checks import is_allowed_in_project, require_in_organization, require_in_project
from remuda.access.principal import Context, Principal, Verb
from remuda.http.responses import Collection, Rendered, check_if_match, etag_of
from remuda.identity.kinds.quotas import ALLOCATION, QUOTA, Allocation, Quota, QuotaSpec, charge_value
from remuda.identity.kinds.quotas import Limits as StoredLimits
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.names import permission
from remuda.identity.quotas import rules, schema
from remuda.identity.quotas.allocation_state import is_active, uses_kind, was_active
from remuda.identity.quotas.ledger import Ledger
from remuda.identity.quotas.quota_state import limits_in
from remuda.kernel.clock import Clock
from remuda.kernel.errors import NotFound
from remuda.resources.conventions import ORGANIZATION, PROJECT, project_of
from remuda.resources.crud import audit_records, check_state, exists, get_in
from remuda.store.contract import Store

Filter = Callable[[Allocation], bool]

_ANY_PROJECT = ""
"""No project's id: a permission that applies there applies in all projects of the organization."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocations:
    """Service of allocations."""

    store: Store
    clock: Clock
    ledger: Ledger

    async def allocate(
        self, context: Context, organization: str, project: str, body: schema.AllocationWrite
    ) -> Allocation:
        require_in_project(context.principal, permission("allocations", "create"), organization, project)
        await get_in(self.store, Project, project, organization)
        rules.check_allocation(body)
        found = rules.new_allocation(
            schema.allocation_id(context.principal.subject, context.key or context.operation),
            organization,
            project,
            body,
            context.principal,
            state="confirmed" if context.key is None else "unconfirmed",
        )
        return await self.ledger.reserve(found, log=audit_records(context, ALLOCATION.plural, found))

    async def get(self, context: Context, organization: str, project: str, allocation: str) -> Allocation:
        return await self._get_active(context, "read", organization, project, allocation)

    async def confirm(self, context: Context, organization: str, project: str, allocation: str) -> Allocation:
        found = await self._get_active(context, "update", organization, project, allocation)
        return await self.ledger.confirm(found.name, log=audit_records(context, ALLOCATION.plural, found))

    async def renew(
        self, context: Context, organization: str, project: str, allocation: str, *, fencing_token: int | None = None
    ) -> Allocation:
        """Renew a released allocation within the limits. It must be confirmed again. `fencing_token` as in `change`."""
        found = await self._get(context, "create", organization, project, allocation)
        return await self.ledger.renew(
            found.name,
            check=lambda found: _check(context, found, fencing_token),
            log=audit_records(context, ALLOCATION.plural, found),
        )

    async def change(
        self,
        context: Context,
        organization: str,
        project: str,
        allocation: str,
        body: schema.AllocationWrite,
        *,
        fencing_token: int | None = None,
    ) -> Allocation:
        """Replace the amounts within the limits, unless the allocation was changed with a later fencing token."""
        principal, now = context.principal, self.clock.now()
        found = await self._get_active(context, "update", organization, project, allocation)
        rules.check_allocation(body)
        rules.check_same_owner(found, body)
        return await self.ledger.update(
            found.name,
            lambda found: rules.updated_allocation(found, body, principal, now, fencing_token=fencing_token),
            check=lambda found: _check(context, found, fencing_token),
            log=audit_records(context, ALLOCATION.plural, found),
        )

    async def release(
        self, context: Context, organization: str, project: str, allocation: str, *, fencing_token: int | None = None
    ) -> None:
        """Release an allocation, created or not. Later renewals need a fencing token of at least `fencing_token`."""
        try:
            found = await self._get(context, "delete", organization, project, allocation)
        except NotFound:
            if not await self.ledger.roll_back(organization, project, allocation):
                raise
            found = await self._get(context, "delete", organization, project, allocation)
        await self.ledger.release(
            found.name,
            fencing_token=fencing_token or 0,
            check=lambda found: check_state(context, found, rules.writable_allocation(found)),
            log=audit_records(context, ALLOCATION.plural, found) if is_active(found) else (),
        )

    async def usage(
        self, context: Context, organization: str, query: schema.UsageQuery
    ) -> Collection[Allocation, list[schema.AllocationRead]]:
        """Return the allocations that the caller may see: the present ones, or those of a time in the past."""
        require_in_organization(context.principal, permission("quotas", "read"), organization)
        rules.check_period(query)
        await self._check_known(organization)
        # Usage of a project stays readable after its deletion, so there is no check that it exists.
        labels = {ORGANIZATION: organization} | ({} if query.project is None else {PROJECT: query.project})
        since, until = (query.since, query.until) if query.at is None else (query.at, query.at)
        is_past = since is not None or until is not None
        kind_index = None if query.kind is None else ("charge", charge_value(organization, query.kind))
        matches = (lambda found: was_active(found, since, until)) if is_past else uses_kind(query.kind)
        return Collection(
            store=self.store,
            kind=Allocation,
            view=rules.ALLOCATION_VIEW,
            labels=labels,
            index=kind_index if is_past else ("active", query.project or organization),
            visible=_visible(context.principal, organization, matches),
        )

    async def _check_known(self, organization: str) -> None:
        """Raise NotFound unless an organization exists or existed: its usage stays readable after its deletion."""
        if await exists(self.store, Organization, organization):
            return
        used = await self.store.list_names(Allocation, labels={ORGANIZATION: organization}, limit=1)
        if not used.items:
            raise NotFound("Organization", organization)

    async def _get(self, context: Context, verb: Verb, organization: str, project: str, allocation: str) -> Allocation:
        require_in_project(context.principal, permission("allocations", verb), organization, project)
        found = await get_in(self.store, Allocation, allocation, organization)
        if project_of(found) != project:
            raise NotFound("Allocation", allocation)
        return found

    async def _get_active(
        self, context: Context, verb: Verb, organization: str, project: str, allocation: str
    ) -> Allocation:
        found = await self._get(context, verb, organization, project, allocation)
        if not is_active(found):
            raise NotFound("Allocation", allocation)
        return found


def _check(context: Context, found: Allocation, fencing_token: int | None) -> None:
    """Raise PreconditionFailed unless If-Match holds and the allocation has no later fencing token."""
    check_state(context, found, rules.writable_allocation(found))
    rules.check_fencing_token(found, fencing_token)


def _visible(principal: Principal, organization: str, matches: Filter | None) -> Filter | None:
    """Return the filter of allocations; None if all are visible, so that the list can be read from the cache."""
    read_projects = permission("projects", "read")
    if is_allowed_in_project(principal, read_projects, organization, _ANY_PROJECT):
        return matches

    def is_visible(found: Allocation) -> bool:
        is_readable = is_allowed_in_project(principal, read_projects, organization, project_of(found))
        return is_readable and (matches is None or matches(found))

    return is_visible


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaLimits:
    """Service of limits. The ETag covers the limits, not their usage."""

    store: Store
    ledger: Ledger

    async def get(self, context: Context, organization: str, project: str | None = None) -> Rendered[schema.QuotasRead]:
        """Return the limits of an organization or a project and their usage.

        For those of a project the caller must be allowed to read the project, too.
        """
        require_in_organization(context.principal, permission("quotas", "read"), organization)
        if project is not None:
            require_in_project(context.principal, permission("projects", "read"), organization, project)
            await get_in(self.store, Project, project, organization)
        spec = await self._spec(organization)
        quotas = rules.read_quotas(spec, project, await self.ledger.kinds.all())
        return Rendered(msgspec.json.encode(quotas), etag=_etag(organization, limits_in(spec, project)))

    async def update(
        self, context: Context, organization: str, body: schema.QuotasWrite, project: str | None = None
    ) -> Rendered[schema.QuotasRead]:
        """Replace the limits of an organization or a project.

        A kind that is left out falls back to its default, or to the limit of the organization. A project's limit above
        that one is stored, but has no effect until the organization's is raised. The limits of a project need the
        permission to update all projects of the organization.
        """
        limits = rules.stored_limits(body)
        return await self._write(context, organization, project, body, lambda _: limits)

    async def patch(
        self, context: Context, organization: str, body: schema.QuotasPatch, project: str | None = None
    ) -> Rendered[schema.QuotasRead]:
        """Set or unset some limits of an organization or a project, with the permissions of `update`."""
        return await self._write(
            context, organization, project, body, lambda limits: rules.patched_limits(limits, body)
        )

    async def _write(
        self,
        context: Context,
        organization: str,
        project: str | None,
        body: schema.QuotasWrite | schema.QuotasPatch,
        change: Callable[[StoredLimits], StoredLimits],
    ) -> Rendered[schema.QuotasRead]:
        endpoint = "quotas" if project is None else "projects"
        require_in_organization(context.principal, permission(endpoint, "update"), organization)
        if project is None:
            await self.store.get(Organization, organization)
        else:
            await get_in(self.store, Project, project, organization)
        catalogue = await self.ledger.kinds.all()
        rules.check_quotas(body, catalogue)
        record = await self.ledger.set_limits(
            organization,
            project,
            change,
            check=lambda record: _check_limits(context, record, project),
            log=context.audit(QUOTA.plural, organization, organization=organization),
        )
        quotas = rules.read_quotas(record.spec, project, catalogue, only=[quota.kind for quota in body.quotas])
        return Rendered(msgspec.json.encode(quotas), etag=_etag(organization, limits_in(record.spec, project)))

    async def _spec(self, organization: str) -> QuotaSpec:
        """Return the quota record of an organization, or an empty one before its first write."""
        record = await self.ledger.writer.find(organization)
        if record is not None:
            return record.spec
        await self.store.get(Organization, organization)
        return QuotaSpec()


def _etag(organization: str, limits: StoredLimits) -> str:
    """Return the ETag of limits. It includes the organization, since the record exists only after its first write."""
    return etag_of(organization, rules.writable_limits(limits))


def _check_limits(context: Context, record: Quota, project: str | None) -> None:
    etag = _etag(record.name, limits_in(record.spec, project))
    check_if_match(context, etag, kind="Quota", name=record.name)
