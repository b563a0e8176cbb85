"""What takes more than one effect: to make an authority. Its project is told first, so that it cannot go unnoticed."""

import msgspec

from remuda.access.principal import Requester
from remuda.operations.saga import Work
from remuda.quota.sagas import CreatePorts, create_saga
from remuda.region.authorities.rules import new_authority
from remuda.region.authorities.schema import AuthorityCreate
from remuda.region.kinds.authorities import AUTHORITY, SSHCertificateAuthority


class NewAuthority(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed to make an authority."""

    authority: str
    """Its id."""
    wanted: AuthorityCreate
    by: Requester


def reference_of(operation: str) -> str:
    """Return by what an authority keeps its project.

    It is named after the operation that made it, which has its id, unless an earlier attempt at it was undone.
    """
    return f"{AUTHORITY.qualified}/{operation}"


async def _build(_: CreatePorts, work: Work[NewAuthority]) -> SSHCertificateAuthority:
    new = work.input
    return new_authority(new.authority, new.wanted, new.by.principal, operation=work.id)


CREATE_AUTHORITY = create_saga(
    "sshcertificateauthority.create",
    AUTHORITY,
    NewAuthority,
    id_of=lambda new: new.authority,
    create_step="make-authority",
    build=_build,
    reference=reference_of,
    rechecks_project=False,
)
"""Creates an authority."""

SAGAS = (CREATE_AUTHORITY,)
