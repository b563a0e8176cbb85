"""What is asked of whoever keeps the accounts: identity, in this process or in another.

Who pays for what is made.

That is whom the caller's credentials name, if they name all of it: an organization, and a project of it. Otherwise it
is whoever it is made for. What is charged is read from an object's labels later on, so what no label can hold names
nobody.
"""

from dataclasses import dataclass
from typing import Protocol

from remuda.access.principal import Principal
from remuda.kernel.errors import Conflict
from remuda.kernel.ids import is_id


class Late(Conflict):
    """Raised when what something costs was changed, or given back, in a later turn than the one this was read in."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A project, and the organization it is in."""

    organization: str
    project: str


@dataclass(frozen=True, slots=True)
class Amount:
    """How much of a kind of quota."""

    kind: str
    committed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What something of ours costs whom. The operation that made it names the allocation."""

    payer: Place
    operation: str
    kind: str
    """The qualified plural of what it is for."""
    id: str
    amounts: tuple[Amount, ...]
    turn: int = 0
    """In which turn of what it is for that was read (`in_hand`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSeen:
    """A project as it stands now."""

    place: Place
    is_marked: bool = False
    """It is being deleted."""


class Ledger(Protocol):
    """Knows projects, and what is held for them.

    Everything may be repeated, and raises Unavailable if nobody can say.
    """

    async def has_project(self, organization: str, project: str) -> bool:
        """Tell whether an organization has a project."""
        ...

    async def allocate(self, charge: Charge, payer: Principal | None = None) -> None:
        """Hold what something costs, or raise Forbidden if that exceeds a quota. `payer` is who asked, if one did.

        Raise Late if it was held before, and changed or given back for good in a later turn.
        """
        ...

    async def confirm(self, charge: Charge) -> bool:
        """Say that it is there; tell whether what it costs is held. If not, it has to be allocated again."""
        ...

    async def change(self, charge: Charge) -> None:
        """Hold what it costs now, or raise Forbidden if that exceeds a quota.

        Raise Late if it was changed in a later turn.
        """
        ...

    async def release(self, charge: Charge, *, for_good: bool = False) -> None:
        """Hold nothing any more; what is not held is fine.

        If it is `for_good`, whoever has seen its owner in this turn or an earlier one is late from now on.
        """
        ...


def paying_for(principal: Principal, place: Place) -> Principal:
    """Return the caller as the one who pays for something new at a place."""
    if is_id(principal.organization or "") and is_id(principal.project or ""):
        return principal
    return principal.paying(place.organization, place.project)
