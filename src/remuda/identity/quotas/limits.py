"""How much organizations and projects may have."""

from dataclasses import dataclass

from remuda.access.checks import allow_in_organization, allow_in_project
from remuda.access.principal import Context
from remuda.http.responses import check_match, etag_of
from remuda.identity.kinds.quotas import QUOTA, Quota, QuotaSpec
from remuda.identity.kinds.quotas import Limits as StoredLimits
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.permissions import permission
from remuda.identity.quotas import rules
from remuda.identity.quotas import schema as wire
from remuda.identity.quotas.ledger import Ledger
from remuda.identity.quotas.quota_state import project_ledger
from remuda.resources.crud import get_in
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True)
class Limited:
    """Limits and what is used of them, with the tag of the limits."""

    quotas: wire.QuotasRead
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What can be asked of limits."""

    store: Store
    ledger: Ledger

    async def of_organization(self, context: Context, organization: str) -> Limited:
        """Return what an organization may have, and what it has."""
        allow_in_organization(context.principal, permission("quotas", "read"), organization)
        spec = await self._head(organization)
        quotas = rules.read_quotas(spec, await self.ledger.kinds.all())
        return Limited(quotas, _etag(organization, spec.quotas))

    async def set_for_organization(self, context: Context, organization: str, wanted: wire.QuotasWrite) -> Limited:
        """Replace the limits of an organization. A kind that is left out falls back to what everybody has."""
        allow_in_organization(context.principal, permission("quotas", "update"), organization)
        await self.store.get(Organization, organization)
        catalogue, kinds = await self.ledger.kinds.all(), [quota.kind for quota in wanted.quotas]
        rules.check_quotas(wanted, catalogue)
        head = await self.ledger.set_limits(
            organization,
            None,
            rules.stored_limits(wanted),
            check=lambda head: _check_limits(context, head, head.spec.quotas),
            log=context.witness(QUOTA.plural, organization, organization=organization),
        )
        return Limited(rules.read_quotas(head.spec, catalogue, only=kinds), _etag(organization, head.spec.quotas))

    async def of_project(self, context: Context, organization: str, project: str) -> Limited:
        """Return what a project may have, and what it has, to who may read the project, too."""
        allow_in_organization(context.principal, permission("quotas", "read"), organization)
        allow_in_project(context.principal, permission("projects", "read"), organization, project)
        await get_in(self.store, Project, project, organization)
        spec = await self._head(organization)
        quotas = rules.read_project_quotas(spec, project, await self.ledger.kinds.all())
        return Limited(quotas, _etag(organization, project_ledger(spec, project).quotas))

    async def set_for_project(
        self, context: Context, organization: str, project: str, wanted: wire.QuotasWrite
    ) -> Limited:
        """Replace the limits of a project. A kind that is left out has none but its organization's.

        Whoever may change all projects of an organization divides what that one has. A limit above the organization's
        is stored and limits nothing: it is there for when the organization gets more.
        """
        allow_in_organization(context.principal, permission("projects", "update"), organization)
        await get_in(self.store, Project, project, organization)
        catalogue, kinds = await self.ledger.kinds.all(), [quota.kind for quota in wanted.quotas]
        rules.check_quotas(wanted, catalogue)
        head = await self.ledger.set_limits(
            organization,
            project,
            rules.stored_limits(wanted),
            check=lambda head: _check_limits(context, head, project_ledger(head.spec, project).quotas),
            log=context.witness(QUOTA.plural, organization, organization=organization),
        )
        quotas = rules.read_project_quotas(head.spec, project, catalogue, only=kinds)
        return Limited(quotas, _etag(organization, project_ledger(head.spec, project).quotas))

    async def _head(self, organization: str) -> QuotaSpec:
        """Return what a head says, or would if there were one."""
        head = await self.ledger.heads.find(organization)
        if head is not None:
            return head.spec
        await self.store.get(Organization, organization)
        return QuotaSpec()


def _etag(organization: str, limits: StoredLimits) -> str:
    """Tag limits by the organization, which is there once, and not by the head, which only the first write makes."""
    return etag_of(organization, rules.writable_limits(limits))


def _check_limits(context: Context, head: Quota, limits: StoredLimits) -> None:
    check_match(context, _etag(head.name, limits), kind="Quota", name=head.name)
