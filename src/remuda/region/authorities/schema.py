"""Schema of SSH certificate authorities."""

from typing import Annotated

import msgspec

from remuda.http.schema import Id, Parameters, Wire
from remuda.resources.schema import MetadataWrite, OrganizationId, ProjectId, ProjectMetadataRead


class AuthoritySpecWire(Wire, frozen=True):
    """The key whose certificates servers accept."""

    public_key: Annotated[
        str,
        msgspec.Meta(
            description="One line, as in `authorized_keys`, without options.",
            examples=[
                "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMYc1FzVzTzDpRy0I5O4xCg5n9m1oqC1jLcTkmZ9Mq2b ca@example.com"
            ],
        ),
    ]


class AuthorityCreateSpec(AuthoritySpecWire, frozen=True, kw_only=True):
    """The spec of a new authority."""

    organization_id: OrganizationId
    project_id: ProjectId


class AuthorityCreate(Wire, frozen=True):
    """The request to create an authority."""

    metadata: MetadataWrite
    spec: AuthorityCreateSpec


class AuthorityRead(Wire, frozen=True):
    """An authority."""

    metadata: ProjectMetadataRead
    spec: AuthoritySpecWire


class AuthorityPath(Parameters, frozen=True, rename={"authority": "sshCertificateAuthorityID"}):
    """The path of an authority."""

    authority: Annotated[Id, msgspec.Meta(description="Id of the SSH certificate authority.")]
