"""SSH certificate authorities: the service that the API's routes call.

Every method takes the context of the call, checks the caller's permissions itself, and has at most one effect, or runs
an operation. An authority belongs to its project and to no region, and never changes.
"""

from dataclasses import dataclass

from remuda.access.checks import allow_new_in_project
from remuda.access.principal import Context, Permission, requester_of
from remuda.http.responses import Collection
from remuda.operations.service import Operations
from remuda.quota.ports import ProjectRef, payer_principal
from remuda.region.authorities.rules import AUTHORITY_VIEW, check_new, writable_authority
from remuda.region.authorities.sagas import CREATE_AUTHORITY, NewAuthority
from remuda.region.authorities.schema import AuthorityCreate, AuthorityRead
from remuda.region.deletion import reject_if_used
from remuda.region.kinds.authorities import AUTHORITY, SSHCertificateAuthority
from remuda.region.names import permission
from remuda.region.ports import IdentityPort
from remuda.resources.crud import audit_records, request_deletion, retry_on_conflict
from remuda.resources.query import ProjectQuery, allow_for, allow_naming, filters_of
from remuda.store.contract import Store

_ENDPOINT = "sshcertificateauthorities:v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorities:
    """SSH certificate authorities of all projects."""

    store: Store
    identity: IdentityPort
    operations: Operations

    async def list(
        self, context: Context, query: ProjectQuery
    ) -> Collection[SSHCertificateAuthority, list[AuthorityRead]]:
        """Return the authorities that the caller may see."""
        right, filters = permission(_ENDPOINT, "read"), filters_of(query, is_versioned=False)
        await allow_naming(context.principal, right, filters, exists=self.identity.has_project)
        return Collection(
            store=self.store,
            kind=SSHCertificateAuthority,
            view=AUTHORITY_VIEW,
            labels=filters.labels(),
            visible=filters.visible(context.principal, right, lambda authority: authority.spec.tags),
        )

    async def create(self, context: Context, body: AuthorityCreate) -> SSHCertificateAuthority:
        spec, principal = body.spec, context.principal
        place = ProjectRef(spec.organization_id, spec.project_id)
        right = permission(_ENDPOINT, "create")
        await allow_new_in_project(
            principal, right, place.organization, place.project, exists=self.identity.has_project
        )
        check_new(body, principal)
        done = await self.operations.run(
            CREATE_AUTHORITY,
            id=context.operation,
            actor=principal.actor_name,
            input=NewAuthority(
                authority=context.operation, wanted=body, by=requester_of(payer_principal(principal, place))
            ),
            trace_id=context.trace_id,
            log=context.audit(AUTHORITY.plural, context.operation, organization=spec.organization_id),
        )
        return await self.store.get(SSHCertificateAuthority, done.spec.subject)

    async def get(self, context: Context, authority: str) -> SSHCertificateAuthority:
        return await self._authority(context, permission(_ENDPOINT, "read"), authority)

    async def delete(self, context: Context, authority: str) -> None:
        """Delete an authority that no server was created with."""

        async def delete() -> None:
            found = await self._authority(context, permission(_ENDPOINT, "delete"), authority)
            if not found.is_deleting:
                await reject_if_used(self.store, found, "SSH certificate authority is in use and cannot be deleted")
            log = audit_records(context, AUTHORITY.plural, found)
            await request_deletion(self.store, context, found, writable_authority(found), log, unused=True)

        await retry_on_conflict(delete)

    async def _authority(self, context: Context, right: Permission, authority: str) -> SSHCertificateAuthority:
        """Return an authority that the caller may read and do this to, whichever API created it."""
        found = await self.store.get(SSHCertificateAuthority, authority)
        allow_for(context.principal, permission(_ENDPOINT, "read"), found)
        allow_for(context.principal, right, found)
        return found
