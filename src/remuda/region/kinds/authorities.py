"""SSH certificate authorities as they are stored: whom servers believe when somebody shows a certificate."""

from remuda.kernel.tags import Tag
from remuda.region.kinds.common import UNIKORN_GROUP, VERSION
from remuda.resources.conventions import LifecycleStatus, nonempty
from remuda.store.kinds import Index, Kind
from remuda.store.objects import Resource, StoredStruct


class SSHCertificateAuthoritySpec(StoredStruct, frozen=True):
    """Which key signs the certificates."""

    public_key: str
    """One line, as in `authorized_keys`, without options."""
    operation: str = ""
    """The operation that made it."""
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class SSHCertificateAuthority(Resource, frozen=True):
    """An authority of a project, of no region. It is ready at once; its status only says what keeps one that goes."""

    spec: SSHCertificateAuthoritySpec
    status: LifecycleStatus = LifecycleStatus()


AUTHORITY = Kind(
    type=SSHCertificateAuthority,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="sshcertificateauthorities",
    indexes=(Index(name="operation", values=lambda authority: nonempty(authority.spec.operation)),),
    columns={"Display name": ".metadata.labels.unikorn-cloud\\.org/name"},
)
"""Authorities, found by their labels, and by the operation that made them. Servers that were made with one keep it."""
