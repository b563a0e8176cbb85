"""SSH certificate authorities as they are stored."""

from remuda.kernel.tags import Tag
from remuda.region.kinds.common import UNIKORN_GROUP, VERSION
from remuda.resources.conventions import PROJECT, LifecycleStatus, nonempty
from remuda.store.kinds import Index, Kind
from remuda.store.objects import Resource, StoredStruct


class SSHCertificateAuthoritySpec(StoredStruct, frozen=True):
    """Desired state of an authority."""

    public_key: str
    """Line for `authorized_keys`, without options."""
    operation: str = ""
    pause: bool = False
    tags: tuple[Tag, ...] = ()


class SSHCertificateAuthority(Resource, frozen=True):
    """Authority of a project whose certificates servers accept. Its status has only deletion blockers."""

    spec: SSHCertificateAuthoritySpec
    status: LifecycleStatus = LifecycleStatus()


AUTHORITY = Kind(
    type=SSHCertificateAuthority,
    group=UNIKORN_GROUP,
    version=VERSION,
    plural="sshcertificateauthorities",
    counted_in=PROJECT,
    indexes=(Index(name="operation", values=lambda authority: nonempty(authority.spec.operation)),),
    columns={"Display name": ".metadata.labels.unikorn-cloud\\.org/name"},
)
"""Indexed by labels and operation. Servers reference it."""
