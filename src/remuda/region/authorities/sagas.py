"""What takes more than one effect: to make an authority. Its project is told first, so that it cannot go unnoticed."""

from dataclasses import dataclass

import msgspec

from remuda.access.principal import Requester
from remuda.kernel.errors import AlreadyExists
from remuda.operations.saga import AnyBound, Bound, Saga, Step, Work
from remuda.quota.ports import ProjectRef
from remuda.quota.sagas import roll_back_create
from remuda.region.authorities.rules import new_authority
from remuda.region.authorities.schema import AuthorityCreate
from remuda.region.kinds.authorities import AUTHORITY, SSHCertificateAuthority
from remuda.region.ports import IdentityPort
from remuda.store.contract import Store


class NewAuthority(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed to make an authority."""

    authority: str
    """Its id."""
    wanted: AuthorityCreate
    by: Requester


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorityPorts:
    """What the steps reach the world through."""

    store: Store
    identity: IdentityPort


def reference_of(operation: str) -> str:
    """Return by what an authority keeps its project.

    It is named after the operation that made it, which has its id, unless an earlier attempt at it was undone.
    """
    return f"{AUTHORITY.qualified}/{operation}"


def _place(work: Work[NewAuthority]) -> ProjectRef:
    spec = work.input.wanted.spec
    return ProjectRef(spec.organization_id, spec.project_id)


async def _refer(ports: AuthorityPorts, work: Work[NewAuthority]) -> None:
    await ports.identity.refer(_place(work), reference_of(work.id))


async def _unrefer(ports: AuthorityPorts, work: Work[NewAuthority]) -> None:
    await ports.identity.unrefer(_place(work), reference_of(work.id))


async def _make(ports: AuthorityPorts, work: Work[NewAuthority]) -> None:
    new = work.input
    made = new_authority(new.authority, new.wanted, new.by.principal, operation=work.id)
    try:
        await ports.store.create(made)
    except AlreadyExists:
        if (await ports.store.get(SSHCertificateAuthority, made.name)).spec.operation != work.id:
            raise


async def _unmake(ports: AuthorityPorts, work: Work[NewAuthority]) -> None:
    await roll_back_create(
        ports.store,
        SSHCertificateAuthority,
        work.input.authority,
        lambda authority: authority.spec.operation == work.id,
    )


CREATE_AUTHORITY: Saga[AuthorityPorts, NewAuthority] = Saga(
    name="sshcertificateauthority.create",
    input_type=NewAuthority,
    subject=lambda new: (AUTHORITY.qualified, new.authority),
    steps=(
        Step(name="keep-project", do=_refer, undo=_unrefer),
        Step(name="make-authority", do=_make, undo=_unmake),
    ),
)
"""Makes an authority."""


def bound(ports: AuthorityPorts) -> list[AnyBound]:
    """Return the sagas of this room with what they reach the world through."""
    return [Bound(CREATE_AUTHORITY, ports)]
