"""What clients send and read of SSH certificate authorities."""

from typing import Annotated

import msgspec

from remuda.http.schema import Id, Parameters, Wire
from remuda.resources.schema import MetadataWrite, ProjectMetadataRead


class AuthoritySpecWire(Wire, frozen=True):
    """Whose certificates servers believe."""

    public_key: Annotated[str, msgspec.Meta(description="One line, as in `authorized_keys`, without options.")]


class AuthorityCreateSpec(AuthoritySpecWire, frozen=True, kw_only=True):
    """What a new authority is to be."""

    organization_id: Id
    project_id: Id


class AuthorityCreate(Wire, frozen=True):
    """An authority as it is asked for."""

    metadata: MetadataWrite
    spec: AuthorityCreateSpec


class AuthorityRead(Wire, frozen=True):
    """An authority."""

    metadata: ProjectMetadataRead
    spec: AuthoritySpecWire


class AuthorityPath(Parameters, frozen=True, rename={"authority": "sshCertificateAuthorityID"}):
    """An authority."""

    authority: Id
