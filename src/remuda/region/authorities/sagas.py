"""Saga that creates an authority."""

import msgspec

from remuda.access.principal import Requester
from remuda.operations.saga import Work
from remuda.quota.sagas import QuotaPorts, create_saga
from remuda.region.authorities.rules import new_authority, reference_of
from remuda.region.authorities.schema import AuthorityCreate
from remuda.region.kinds.authorities import AUTHORITY, SSHCertificateAuthority


class NewAuthority(msgspec.Struct, frozen=True, kw_only=True):
    """The input: an authority to create."""

    authority: str
    requested: AuthorityCreate
    requester: Requester


async def _build(_: QuotaPorts, work: Work[NewAuthority]) -> SSHCertificateAuthority:
    new = work.input
    return new_authority(new.authority, new.requested, new.requester.named(work.actor_name), operation=work.id)


CREATE_AUTHORITY = create_saga(
    "sshcertificateauthority.create",
    AUTHORITY,
    NewAuthority,
    id_of=lambda new: new.authority,
    create_step="create-authority",
    build=_build,
    reference=reference_of,
)

SAGAS = (CREATE_AUTHORITY,)
