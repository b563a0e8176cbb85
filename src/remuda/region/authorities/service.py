"""SSH certificate authorities: the service that the API's routes call."""

from dataclasses import dataclass

from remuda.access.principal import Context, requester_of
from remuda.operations.service import Operations
from remuda.quota.ports import ProjectRef, payer_principal
from remuda.region.authorities.rules import AUTHORITY_VIEW, check_new
from remuda.region.authorities.sagas import CREATE_AUTHORITY, NewAuthority
from remuda.region.authorities.schema import AuthorityCreate, AuthorityRead
from remuda.region.kinds.authorities import AUTHORITY, SSHCertificateAuthority
from remuda.resources.service import ProjectResourceService


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorities(ProjectResourceService[SSHCertificateAuthority, AuthorityRead]):
    """SSH certificate authorities. An authority belongs to its project and to no region, and never changes."""

    kind, endpoint, view = AUTHORITY, "region:sshcertificateauthorities:v2", AUTHORITY_VIEW
    noun, is_versioned, is_kept_in_use = "SSH certificate authority", False, True

    operations: Operations

    async def create(self, context: Context, body: AuthorityCreate) -> SSHCertificateAuthority:
        project = ProjectRef(body.spec.organization_id, body.spec.project_id)
        await self.authorize_create(context, project.organization, project.project)
        check_new(body, context.principal)
        payer = payer_principal(context.principal, project)
        new = NewAuthority(authority=context.operation, requested=body, requester=requester_of(payer))
        return await self.run_create(context, self.operations, CREATE_AUTHORITY, new, organization=project.organization)
