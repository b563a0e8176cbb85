"""The room's routes.

The room's handlers: each asks the service and renders what it says.
"""

from remuda.http.responses import Collection, Rendered, Shown, untag
from remuda.http.routes import AnyRoute, Call, Nothing, Route
from remuda.region.authorities import schema as wire
from remuda.region.authorities.rules import AUTHORITY_VIEW
from remuda.region.authorities.service import Authorities
from remuda.region.kinds.authorities import SSHCertificateAuthority
from remuda.region.names import permission
from remuda.resources.query import ProjectQuery


async def list_all(
    authorities: Authorities, call: Call[Nothing, ProjectQuery, Nothing]
) -> Collection[SSHCertificateAuthority, list[wire.AuthorityRead]]:
    return await authorities.list(call.context, call.query)


async def create(
    authorities: Authorities, call: Call[Nothing, Nothing, wire.AuthorityCreate]
) -> Shown[wire.AuthorityRead]:
    return Shown(AUTHORITY_VIEW, await authorities.create(call.context, call.body))


async def get(
    authorities: Authorities, call: Call[wire.AuthorityPath, Nothing, Nothing]
) -> Rendered[wire.AuthorityRead]:
    found = await authorities.get(call.context, call.path.authority)
    return untag(await authorities.store.get_view(SSHCertificateAuthority, found.name, AUTHORITY_VIEW))


async def delete(authorities: Authorities, call: Call[wire.AuthorityPath, Nothing, Nothing]) -> None:
    """Give an authority up."""
    await authorities.delete(call.context, call.path.authority)


AUTHORITIES = "/api/v2/sshcertificateauthorities"
"""All authorities."""
_AUTHORITY = f"{AUTHORITIES}/{{sshCertificateAuthorityID}}"


def routes() -> list[AnyRoute]:
    """Return all of them."""
    return [
        Route(
            method="GET",
            path=AUTHORITIES,
            name="list_ssh_certificate_authorities",
            summary="List the SSH certificate authorities that the caller may see",
            scope="project",
            permission=permission("sshcertificateauthorities:v2", "read"),
            query_type=ProjectQuery,
            answer_type=list[wire.AuthorityRead],
            handler=list_all,
        ),
        Route(
            method="POST",
            path=AUTHORITIES,
            name="create_ssh_certificate_authority",
            summary="Make an SSH certificate authority",
            description="Servers that are made with it believe the certificates that its key has signed.",
            scope="project",
            permission=permission("sshcertificateauthorities:v2", "create"),
            body_type=wire.AuthorityCreate,
            answer_type=wire.AuthorityRead,
            success=201,
            errors=(404,),
            handler=create,
        ),
        Route(
            method="GET",
            path=_AUTHORITY,
            name="get_ssh_certificate_authority",
            summary="Read an SSH certificate authority",
            scope="project",
            permission=permission("sshcertificateauthorities:v2", "read"),
            path_type=wire.AuthorityPath,
            answer_type=wire.AuthorityRead,
            handler=get,
        ),
        Route(
            method="DELETE",
            path=_AUTHORITY,
            name="delete_ssh_certificate_authority",
            summary="Give an SSH certificate authority up",
            description="While there is a server that was made with it, it stays.",
            scope="project",
            permission=permission("sshcertificateauthorities:v2", "delete"),
            path_type=wire.AuthorityPath,
            success=202,
            is_conditional=True,
            handler=delete,
        ),
    ]
