"""Ports of the quota ledger, which is identity, in this process or in another.

The payer of a new resource is the organization and project of the caller's credentials, if they name both. Otherwise it
is the project of the resource. The payer is later read from the object's labels, so a value that is not a valid label
is ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from remuda.access.principal import Principal
from remuda.identity.quotas.schema import MAX_QUANTITY
from remuda.kernel.errors import Conflict
from remuda.kernel.ids import is_id
from remuda.store.kinds import Kind

MAX_AMOUNT = MAX_QUANTITY
"""Largest amount of one kind of quota."""


class StaleTokenError(Conflict):
    """Raised when an allocation was changed or released with a higher fencing token than this one."""


@dataclass(frozen=True, slots=True, order=True)
class ProjectRef:
    """A project and its organization."""

    organization: str
    project: str


@dataclass(frozen=True, slots=True)
class ChargeAmount:
    """An amount of one kind of quota."""

    kind: str
    committed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """The quota of one resource and its payer. The operation that created the resource names the allocation."""

    payer: ProjectRef
    operation: str
    kind: str
    """The qualified plural of the resource."""
    id: str
    amounts: tuple[ChargeAmount, ...]
    fencing_token: int = 0
    """The fencing token with which it was computed (`lock`)."""


def new_charge(
    kind: Kind[Any],
    resource: str,
    operation: str,
    payer: ProjectRef,
    amounts: Mapping[str, int],
    *,
    fencing_token: int = 0,
) -> Charge:
    """Return the quota of a resource; amounts of zero are left out."""
    return Charge(
        payer=payer,
        operation=operation,
        kind=kind.qualified,
        id=resource,
        amounts=tuple(ChargeAmount(name, amount) for name, amount in amounts.items() if amount),
        fencing_token=fencing_token,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatedQuota:
    """A quota allocation as the ledger has it."""

    name: str
    payer: ProjectRef
    kind: str
    """The qualified plural of the resource."""
    id: str
    amounts: frozenset[ChargeAmount]
    is_confirmed: bool
    """Whether the resource is known to exist. An unconfirmed allocation expires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectState:
    """The observed state of a project."""

    project: ProjectRef
    is_deleting: bool = False


class QuotaLedger(Protocol):
    """The quota allocations of projects, and the references that keep projects. All methods are idempotent."""

    async def has_project(self, organization: str, project: str) -> bool:
        """Return whether an organization has a project."""

    async def allocate(self, charge: Charge, payer: Principal | None = None) -> None:
        """Reserve quota, or raise Forbidden if that exceeds a limit. `payer` is the caller, if there is one.

        Raise StaleTokenError if it was changed, or released and fenced, with a higher fencing token.
        """

    async def confirm(self, charge: Charge) -> bool:
        """Confirm the allocation of a resource that exists; return False if quota has to be reserved first."""

    async def update(self, charge: Charge) -> None:
        """Update an allocation, or raise Forbidden, or StaleTokenError after a higher fencing token."""

    async def release(self, charge: Charge) -> None:
        """Release an allocation, if any. A later request of the same operation may allocate it again."""

    async def release_and_fence(self, charge: Charge) -> None:
        """Release the allocation of a deleted resource, if any, and reject later requests with this fencing token.

        A process that was suspended meanwhile has this token or an older one, so it cannot allocate the quota again.
        """

    async def add_reference(self, project: ProjectRef, reference: str) -> None:
        """Add a reference that keeps a project from being removed.

        Raise NotFound if the project does not exist, and Malformed if it is being deleted.
        """

    async def remove_reference(self, project: ProjectRef, reference: str) -> None:
        """Remove a reference from a project, if both exist."""


def payer_principal(principal: Principal, project: ProjectRef) -> Principal:
    if is_id(principal.organization or "") and is_id(principal.project or ""):
        return principal
    return principal.with_payer(project.organization, project.project)
