"""Authorities as they are stored and read. What may be their key is in `rules`."""

from remuda.access.principal import Principal
from remuda.http.responses import tagged
from remuda.region.authorities.rules import authority_key
from remuda.region.authorities.schema import AuthorityCreate, AuthorityRead, AuthoritySpecWire
from remuda.region.kinds.authorities import SSHCertificateAuthority, SSHCertificateAuthoritySpec
from remuda.resources.conventions import API_VERSION, IN_CARE, ORGANIZATION, PROJECT, SECOND
from remuda.resources.metadata import check_tags, new_metadata, read_project_metadata, stored_tags, writable_metadata
from remuda.resources.schema import MetadataWrite
from remuda.resources.tags import own_tags


def check_new(wanted: AuthorityCreate, by: Principal) -> None:
    """Refuse what no authority can be, and tags that are not the caller's to give."""
    authority_key(wanted.spec.public_key)
    check_tags(wanted.metadata.tags)
    own_tags(stored_tags(wanted.metadata), by)


def new_authority(authority: str, wanted: AuthorityCreate, by: Principal, *, operation: str) -> SSHCertificateAuthority:
    """Return an authority as it is stored; what is wanted was checked before."""
    where = {
        ORGANIZATION: wanted.spec.organization_id,
        PROJECT: wanted.spec.project_id,
        API_VERSION: SECOND,
    }
    return SSHCertificateAuthority(
        metadata=new_metadata(authority, wanted.metadata, by, labels=where, finalizers=(IN_CARE,)),
        spec=SSHCertificateAuthoritySpec(
            public_key=authority_key(wanted.spec.public_key), operation=operation, tags=stored_tags(wanted.metadata)
        ),
    )


def writable_authority(authority: SSHCertificateAuthority) -> MetadataWrite:
    """Return what can tell one state of an authority from another: its key never changes."""
    return writable_metadata(authority.metadata, authority.spec.tags)


def read_authority(authority: SSHCertificateAuthority) -> AuthorityRead:
    """Return an authority as clients read it: it is ready at once, whatever its controller has to say of it."""
    return AuthorityRead(
        metadata=read_project_metadata(authority.metadata, authority.spec.tags),
        spec=AuthoritySpecWire(public_key=authority.spec.public_key),
    )


AUTHORITY_VIEW = tagged(read_authority, writable_authority)
"""An authority as JSON, with its tag."""
