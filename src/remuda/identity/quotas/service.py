"""Quotas as a port: what can be asked about limits and allocations, over HTTP or in the same process.

An allocation is named after its operation: the caller's Idempotency-Key, or else the request. Whoever gave a key has
recorded it, comes back with it, and confirms; whoever gave none is a client that knows nothing of confirming, so what
it takes is confirmed as it is taken. To clients a released allocation is gone: it is not found, but to release it again
is fine, it can be renewed, and it stays in the usage.

A project that is being deleted keeps its allocations until they are released, and everything here works in it.
"""

from dataclasses import dataclass

from remuda.access.checks import allow_in_organization, allow_in_project
from remuda.access.context import Context
from remuda.access.principal import Permission, Verb
from remuda.http.etag import check_match, etag_of
from remuda.http.replies import Collection
from remuda.identity.kinds.quotas import ALLOCATION, QUOTA, Allocation, Limits, Quota, QuotaSpec, charge_value
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.quotas import rules, wire
from remuda.identity.quotas.heads import project_ledger
from remuda.identity.quotas.ledger import Ledger
from remuda.identity.quotas.rows import allocation_id, is_living
from remuda.kernel.clock import Clock
from remuda.kernel.errors import NotFound
from remuda.resources.labels import ORGANIZATION, PROJECT, organization_of, project_of
from remuda.resources.writing import check_state, witnessed
from remuda.store.contract import Store

__all__ = ["Limited", "Quotas", "right"]


@dataclass(frozen=True, slots=True)
class Limited:
    """Limits and what is used of them, with the tag of the limits."""

    quotas: wire.QuotasRead
    etag: str


def right(endpoint: str, verb: Verb) -> Permission:
    """Return a right that this room asks for."""
    return Permission(f"identity:{endpoint}", verb)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """The room."""

    store: Store
    clock: Clock
    ledger: Ledger

    # Limits.

    async def limits(self, context: Context, organization: str) -> Limited:
        """Return what an organization may have, and what it has."""
        allow_in_organization(context.principal, right("quotas", "read"), organization)
        spec, uid = await self._head(organization)
        quotas = rules.read_quotas(spec, await self.ledger.kinds.all())
        return Limited(quotas, _etag(uid, spec.quotas))

    async def set_limits(self, context: Context, organization: str, wanted: wire.QuotasWrite) -> Limited:
        """Replace the limits of an organization. A kind that is left out falls back to what everybody has."""
        allow_in_organization(context.principal, right("quotas", "update"), organization)
        await self.store.get(Organization, organization)
        catalogue, kinds = await self.ledger.kinds.all(), [quota.kind for quota in wanted.quotas]
        rules.check_quotas(wanted, catalogue)
        head = await self.ledger.set_limits(
            organization,
            rules.stored_limits(wanted),
            check=lambda head: _check_limits(context, head, head.spec.quotas),
            log=context.witness(QUOTA.plural, organization, organization=organization),
        )
        return Limited(rules.read_quotas(head.spec, catalogue, only=kinds), _etag(head.uid, head.spec.quotas))

    async def project_limits(self, context: Context, organization: str, project: str) -> Limited:
        """Return what a project may have, and what it has."""
        allow_in_organization(context.principal, right("quotas", "read"), organization)
        await self._project(organization, project)
        spec, uid = await self._head(organization)
        quotas = rules.read_project_quotas(spec, project, await self.ledger.kinds.all())
        return Limited(quotas, _etag(uid, project_ledger(spec, project).quotas))

    async def set_project_limits(
        self, context: Context, organization: str, project: str, wanted: wire.QuotasWrite
    ) -> Limited:
        """Replace the limits of a project. A kind that is left out has none but its organization's.

        Whoever may change all projects of an organization divides what that one has. A limit above the organization's
        is stored and limits nothing: it is there for when the organization gets more.
        """
        allow_in_organization(context.principal, right("projects", "update"), organization)
        await self._project(organization, project)
        catalogue, kinds = await self.ledger.kinds.all(), [quota.kind for quota in wanted.quotas]
        rules.check_quotas(wanted, catalogue)
        head = await self.ledger.set_project_limits(
            organization,
            project,
            rules.stored_limits(wanted),
            check=lambda head: _check_limits(context, head, project_ledger(head.spec, project).quotas),
            log=context.witness(QUOTA.plural, organization, organization=organization),
        )
        quotas = rules.read_project_quotas(head.spec, project, catalogue, only=kinds)
        return Limited(quotas, _etag(head.uid, project_ledger(head.spec, project).quotas))

    # Allocations.

    async def allocate(
        self, context: Context, organization: str, project: str, wanted: wire.AllocationWrite
    ) -> Allocation:
        """Hold something for somebody, if there is room for it."""
        allow_in_project(context.principal, right("allocations", "create"), organization, project)
        await self._project(organization, project)
        rules.check_allocation(wanted)
        row = rules.new_allocation(
            allocation_id(context.principal.subject, context.key or context.operation),
            organization,
            project,
            wanted,
            context.principal,
            life="confirmed" if context.key is None else "unconfirmed",
        )
        return await self.ledger.take(row, log=witnessed(context, ALLOCATION.plural, row))

    async def get(self, context: Context, organization: str, project: str, allocation: str) -> Allocation:
        """Return an allocation that holds something."""
        allow_in_project(context.principal, right("allocations", "read"), organization, project)
        return await self._living(organization, project, allocation)

    async def confirm(self, context: Context, organization: str, project: str, allocation: str) -> Allocation:
        """Say that what an allocation is for is there."""
        allow_in_project(context.principal, right("allocations", "update"), organization, project)
        row = await self._living(organization, project, allocation)
        return await self.ledger.confirm(row.name, log=witnessed(context, ALLOCATION.plural, row))

    async def renew(self, context: Context, organization: str, project: str, allocation: str) -> Allocation:
        """Hold again what was released, if there is room for it; it has to be confirmed anew."""
        allow_in_project(context.principal, right("allocations", "create"), organization, project)
        row = await self._row(organization, project, allocation)
        return await self.ledger.renew(row.name, log=witnessed(context, ALLOCATION.plural, row))

    async def change(
        self, context: Context, organization: str, project: str, allocation: str, wanted: wire.AllocationWrite
    ) -> Allocation:
        """Hold something else instead, if there is room for it."""
        who, now = context.principal, self.clock.now()
        allow_in_project(who, right("allocations", "update"), organization, project)
        row = await self._living(organization, project, allocation)
        rules.check_allocation(wanted)
        rules.check_same_owner(row, wanted)
        return await self.ledger.change(
            row.name,
            lambda row: rules.changed_allocation(row, wanted, who, now),
            check=lambda row: check_state(context, row, rules.writable_allocation(row)),
            log=witnessed(context, ALLOCATION.plural, row),
        )

    async def release(self, context: Context, organization: str, project: str, allocation: str) -> None:
        """Hold nothing any more. Twice is fine."""
        allow_in_project(context.principal, right("allocations", "delete"), organization, project)
        row = await self._row(organization, project, allocation)
        await self.ledger.release(
            row.name,
            check=lambda row: check_state(context, row, rules.writable_allocation(row)),
            log=witnessed(context, ALLOCATION.plural, row) if is_living(row) else (),
        )

    async def usage(
        self, context: Context, organization: str, query: wire.UsageQuery
    ) -> Collection[Allocation, list[wire.AllocationRead]]:
        """Return who uses what since when: now, or at some time of the past."""
        allow_in_organization(context.principal, right("quotas", "read"), organization)
        rules.check_period(query)
        await self.store.get(Organization, organization)
        if query.project is not None:
            await self._project(organization, query.project)
        labels = {ORGANIZATION: organization} | ({} if query.project is None else {PROJECT: query.project})
        since, until = (query.since, query.until) if query.at is None else (query.at, query.at)
        is_past = since is not None or until is not None
        by_kind = None if query.kind is None else ("charge", charge_value(organization, query.kind))
        living = None if is_past else ("living", query.project or organization)
        return Collection(
            store=self.store,
            kind=Allocation,
            view=rules.ALLOCATION_VIEW,
            labels=labels,
            index=by_kind or living,
            visible=(lambda row: rules.was_held(row, since, until)) if is_past else is_living if by_kind else None,
        )

    async def _head(self, organization: str) -> tuple[QuotaSpec, str]:
        """Return what a head says, or would if there were one."""
        head = await self.ledger.heads.find(organization)
        if head is not None:
            return head.spec, head.uid
        await self.store.get(Organization, organization)
        return QuotaSpec(), ""

    async def _project(self, organization: str, project: str) -> None:
        found = await self.store.get(Project, project)
        if organization_of(found) != organization:
            raise NotFound("Project", project)

    async def _row(self, organization: str, project: str, allocation: str) -> Allocation:
        row = await self.store.get(Allocation, allocation)
        if (organization_of(row), project_of(row)) != (organization, project):
            raise NotFound("Allocation", allocation)
        return row

    async def _living(self, organization: str, project: str, allocation: str) -> Allocation:
        row = await self._row(organization, project, allocation)
        if not is_living(row):
            raise NotFound("Allocation", allocation)
        return row


def _etag(uid: str, limits: Limits) -> str:
    return etag_of(uid, rules.writable_limits(limits))


def _check_limits(context: Context, head: Quota, limits: Limits) -> None:
    check_match(context, _etag(head.uid, limits), kind="Quota", name=head.name)
