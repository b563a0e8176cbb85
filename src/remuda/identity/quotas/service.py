"""Services of quotas: the limits of organizations and projects, and the allocations that are counted against them.

Every method takes the context of the call, checks the caller's permissions itself and has at most one effect.

An allocation is named after its operation: the caller's Idempotency-Key, or else the request. A caller that sent a key
has recorded it, comes back with it and confirms the allocation. A caller that sent none does not know of confirming, so
its allocation is confirmed when it is made. For clients a released allocation does not exist: reading it responds 404,
but releasing it again succeeds, it can be renewed, and it stays in the usage, even after its project and its
organization were deleted.

A project that is being deleted keeps its allocations until they are released, and every method here works in it.

Usage belongs to an organization, and each allocation in it to a project: a caller who may not read that project sees
neither the allocation nor its creator. The usage of a deleted project is for callers who may read all projects.
"""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from remuda.access.checks import allow_in_organization, allow_in_project, is_allowed_in_project
from remuda.access.principal import Context, Principal
from remuda.http.responses import Collection, Rendered, Viewed, check_if_match, etag_of
from remuda.identity.kinds.quotas import ALLOCATION, QUOTA, Allocation, Quota, QuotaSpec, charge_value
from remuda.identity.kinds.quotas import Limits as StoredLimits
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.names import permission
from remuda.identity.quotas import rules
from remuda.identity.quotas import schema as wire
from remuda.identity.quotas.allocation_state import charging, is_living, was_held
from remuda.identity.quotas.ledger import Ledger
from remuda.identity.quotas.quota_state import project_ledger
from remuda.kernel.clock import Clock
from remuda.kernel.errors import NotFound
from remuda.resources.conventions import ORGANIZATION, PROJECT, project_of
from remuda.resources.crud import audit_records, check_state, exists, get_in
from remuda.store.contract import Store

Judge = Callable[[Allocation], bool]

_NONE_IN_PARTICULAR = ""
"""No project's id: a right that holds there holds in all of the organization."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocations:
    """The service of allocations."""

    store: Store
    clock: Clock
    ledger: Ledger

    async def allocate(
        self, context: Context, organization: str, project: str, body: wire.AllocationWrite
    ) -> Allocation:
        """Make an allocation, if the limits allow it."""
        allow_in_project(context.principal, permission("allocations", "create"), organization, project)
        await get_in(self.store, Project, project, organization)
        rules.check_allocation(body)
        row = rules.new_allocation(
            wire.allocation_id(context.principal.subject, context.key or context.operation),
            organization,
            project,
            body,
            context.principal,
            life="confirmed" if context.key is None else "unconfirmed",
        )
        return await self.ledger.take(row, log=audit_records(context, ALLOCATION.plural, row))

    async def get(
        self, context: Context, organization: str, project: str, allocation: str
    ) -> Viewed[wire.AllocationRead]:
        """Return an allocation that was not released."""
        allow_in_project(context.principal, permission("allocations", "read"), organization, project)
        return Viewed(rules.ALLOCATION_VIEW, await self._living(organization, project, allocation))

    async def confirm(self, context: Context, organization: str, project: str, allocation: str) -> Allocation:
        """Confirm an allocation: the object that it was made for exists."""
        allow_in_project(context.principal, permission("allocations", "update"), organization, project)
        row = await self._living(organization, project, allocation)
        return await self.ledger.confirm(row.name, log=audit_records(context, ALLOCATION.plural, row))

    async def renew(
        self, context: Context, organization: str, project: str, allocation: str, *, turn: int | None = None
    ) -> Allocation:
        """Renew a released allocation, if the limits allow it. It must be confirmed anew. `turn` as in `change`."""
        allow_in_project(context.principal, permission("allocations", "create"), organization, project)
        row = await self._row(organization, project, allocation)
        return await self.ledger.renew(
            row.name,
            check=lambda row: _check(context, row, turn),
            log=audit_records(context, ALLOCATION.plural, row),
        )

    async def change(
        self,
        context: Context,
        organization: str,
        project: str,
        allocation: str,
        body: wire.AllocationWrite,
        *,
        turn: int | None = None,
    ) -> Allocation:
        """Replace the amounts, if the limits allow it and no change of a later turn was made."""
        who, now = context.principal, self.clock.now()
        allow_in_project(who, permission("allocations", "update"), organization, project)
        row = await self._living(organization, project, allocation)
        rules.check_allocation(body)
        rules.check_same_owner(row, body)
        return await self.ledger.change(
            row.name,
            lambda row: rules.changed_allocation(row, body, who, now, turn=turn),
            check=lambda row: _check(context, row, turn),
            log=audit_records(context, ALLOCATION.plural, row),
        )

    async def release(
        self, context: Context, organization: str, project: str, allocation: str, *, turn: int | None = None
    ) -> None:
        """Release an allocation, even one that was begun and never made. Releasing it twice succeeds.

        With a `turn`, it is not renewed in an earlier one.
        """
        allow_in_project(context.principal, permission("allocations", "delete"), organization, project)
        try:
            row = await self._row(organization, project, allocation)
        except NotFound:
            if not await self.ledger.take_back(organization, project, allocation):
                raise
            row = await self._row(organization, project, allocation)
        await self.ledger.release(
            row.name,
            turn=turn or 0,
            check=lambda row: check_state(context, row, rules.writable_allocation(row)),
            log=audit_records(context, ALLOCATION.plural, row) if is_living(row) else (),
        )

    async def usage(
        self, context: Context, organization: str, query: wire.UsageQuery
    ) -> Collection[Allocation, list[wire.AllocationRead]]:
        """Return the allocations that the caller may see: those of now, or of a time in the past."""
        allow_in_organization(context.principal, permission("quotas", "read"), organization)
        rules.check_period(query)
        await self._check_known(organization)
        # The rows of a project stay in the usage after it was deleted, so there is no check that it exists.
        labels = {ORGANIZATION: organization} | ({} if query.project is None else {PROJECT: query.project})
        since, until = (query.since, query.until) if query.at is None else (query.at, query.at)
        is_past = since is not None or until is not None
        of_past = None if query.kind is None else ("charge", charge_value(organization, query.kind))
        is_asked_for = (lambda row: was_held(row, since, until)) if is_past else charging(query.kind)
        return Collection(
            store=self.store,
            kind=Allocation,
            view=rules.ALLOCATION_VIEW,
            labels=labels,
            index=of_past if is_past else ("living", query.project or organization),
            visible=_shown(context.principal, organization, is_asked_for),
        )

    async def _check_known(self, organization: str) -> None:
        """Raise NotFound unless an organization exists or existed: its usage stays readable after it was deleted."""
        if await exists(self.store, Organization, organization):
            return
        used = await self.store.list_names(Allocation, labels={ORGANIZATION: organization}, limit=1)
        if not used.items:
            raise NotFound("Organization", organization)

    async def _row(self, organization: str, project: str, allocation: str) -> Allocation:
        row = await get_in(self.store, Allocation, allocation, organization)
        if project_of(row) != project:
            raise NotFound("Allocation", allocation)
        return row

    async def _living(self, organization: str, project: str, allocation: str) -> Allocation:
        row = await self._row(organization, project, allocation)
        if not is_living(row):
            raise NotFound("Allocation", allocation)
        return row


def _check(context: Context, row: Allocation, turn: int | None) -> None:
    """Raise PreconditionFailed unless a row is what the caller has read, and was not changed in a later turn."""
    check_state(context, row, rules.writable_allocation(row))
    rules.check_turn(row, turn)


def _shown(principal: Principal, organization: str, is_asked_for: Judge | None) -> Judge | None:
    """Return the filter of rows; None where all are shown, so that the list can be read from the cache."""
    right = permission("projects", "read")
    if is_allowed_in_project(principal, right, organization, _NONE_IN_PARTICULAR):
        return is_asked_for

    def is_shown(row: Allocation) -> bool:
        is_readable = is_allowed_in_project(principal, right, organization, project_of(row))
        return is_readable and (is_asked_for is None or is_asked_for(row))

    return is_shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The service of limits. Responses are tagged with the limits, and not with their usage."""

    store: Store
    ledger: Ledger

    async def of_organization(self, context: Context, organization: str) -> Rendered[wire.QuotasRead]:
        """Return the limits of an organization and their usage."""
        allow_in_organization(context.principal, permission("quotas", "read"), organization)
        spec = await self._head(organization)
        quotas = rules.read_quotas(spec, await self.ledger.kinds.all())
        return _rendered(quotas, _etag(organization, spec.quotas))

    async def set_for_organization(
        self, context: Context, organization: str, body: wire.QuotasWrite
    ) -> Rendered[wire.QuotasRead]:
        """Replace the limits of an organization. A kind that is left out falls back to its default."""
        allow_in_organization(context.principal, permission("quotas", "update"), organization)
        await self.store.get(Organization, organization)
        catalogue, kinds = await self.ledger.kinds.all(), [quota.kind for quota in body.quotas]
        rules.check_quotas(body, catalogue)
        head = await self.ledger.set_limits(
            organization,
            None,
            rules.stored_limits(body),
            check=lambda head: _check_limits(context, head, head.spec.quotas),
            log=context.audit(QUOTA.plural, organization, organization=organization),
        )
        return _rendered(rules.read_quotas(head.spec, catalogue, only=kinds), _etag(organization, head.spec.quotas))

    async def of_project(self, context: Context, organization: str, project: str) -> Rendered[wire.QuotasRead]:
        """Return the limits of a project and their usage. The caller must be allowed to read the project, too."""
        allow_in_organization(context.principal, permission("quotas", "read"), organization)
        allow_in_project(context.principal, permission("projects", "read"), organization, project)
        await get_in(self.store, Project, project, organization)
        spec = await self._head(organization)
        quotas = rules.read_project_quotas(spec, project, await self.ledger.kinds.all())
        return _rendered(quotas, _etag(organization, project_ledger(spec, project).quotas))

    async def set_for_project(
        self, context: Context, organization: str, project: str, body: wire.QuotasWrite
    ) -> Rendered[wire.QuotasRead]:
        """Replace the limits of a project. A kind that is left out is limited by its organization only.

        This needs the permission to update all projects of the organization. A limit above the organization's is stored
        and limits nothing until the organization's is raised.
        """
        allow_in_organization(context.principal, permission("projects", "update"), organization)
        await get_in(self.store, Project, project, organization)
        catalogue, kinds = await self.ledger.kinds.all(), [quota.kind for quota in body.quotas]
        rules.check_quotas(body, catalogue)
        head = await self.ledger.set_limits(
            organization,
            project,
            rules.stored_limits(body),
            check=lambda head: _check_limits(context, head, project_ledger(head.spec, project).quotas),
            log=context.audit(QUOTA.plural, organization, organization=organization),
        )
        quotas = rules.read_project_quotas(head.spec, project, catalogue, only=kinds)
        return _rendered(quotas, _etag(organization, project_ledger(head.spec, project).quotas))

    async def _head(self, organization: str) -> QuotaSpec:
        """Return the quota of an organization, or an empty one where none was written yet."""
        head = await self.ledger.heads.find(organization)
        if head is not None:
            return head.spec
        await self.store.get(Organization, organization)
        return QuotaSpec()


def _rendered(quotas: wire.QuotasRead, etag: str) -> Rendered[wire.QuotasRead]:
    return Rendered(msgspec.json.encode(quotas), etag=etag)


def _etag(organization: str, limits: StoredLimits) -> str:
    """Return the tag of limits. It names the organization, since a stored quota exists only after a first write."""
    return etag_of(organization, rules.writable_limits(limits))


def _check_limits(context: Context, head: Quota, limits: StoredLimits) -> None:
    check_if_match(context, _etag(head.name, limits), kind="Quota", name=head.name)
