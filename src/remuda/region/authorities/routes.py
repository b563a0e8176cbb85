"""Routes of SSH certificate authorities."""

from functools import partial

from remuda.http.crud import crud
from remuda.region.authorities import rules, schema
from remuda.region.authorities.service import Authorities
from remuda.region.names import permission
from remuda.resources.query import ProjectQuery

AUTHORITIES = "/api/v2/sshcertificateauthorities"

ROUTES = crud(
    Authorities,
    path=AUTHORITIES,
    item=schema.AuthorityPath,
    name="ssh_certificate_authority",
    names="ssh_certificate_authorities",
    noun="an SSH certificate authority",
    plural_noun="SSH certificate authorities",
    permission=partial(permission, "sshcertificateauthorities:v2"),
    view=rules.AUTHORITY_VIEW,
    query=ProjectQuery,
    create=schema.AuthorityCreate,
    read=schema.AuthorityRead,
    descriptions={
        "create": "Servers that are created with the authority accept the certificates that its key has signed.",
        "delete": "An authority that a server was created with cannot be deleted.",
    },
)
