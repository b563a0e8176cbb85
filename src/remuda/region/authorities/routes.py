"""The room's routes."""

from remuda.http.routes import AnyRoute, Route
from remuda.region.authorities import handlers
from remuda.region.authorities import schema as wire
from remuda.region.permissions import permission
from remuda.resources.query import ProjectQuery

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
            handler=handlers.list_all,
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
            handler=handlers.create,
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
            handler=handlers.get,
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
            handler=handlers.delete,
        ),
    ]
