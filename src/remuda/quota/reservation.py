"""What the controllers of everything that costs something have in common: when to begin.

What an operation made is left alone until that operation is done. What was not charged for yet is confirmed first.
"""

from typing import Any

from msgspec.structs import replace

from remuda.access.principal import Principal
from remuda.kernel.clock import Clock
from remuda.kernel.conditions import Condition, find_condition, set_condition
from remuda.kernel.errors import Forbidden, NotFound, Unavailable
from remuda.operations.kinds import OPEN_PHASES, Operation, Phase
from remuda.quota.ports import Charge, Late, Ledger, Place
from remuda.reconcile.lifecycle import Outcome
from remuda.reconcile.results import Again, Blocked, Done, Result, Run
from remuda.resources import conventions as labels
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.objects import Resource, ResourceT

CHARGED = "Charged"
"""The condition that says that what an object costs is held for good."""
SOON_S = 0.5
"""When to look again at what somebody else is doing, if nothing tells by itself."""


OPERATION_OPEN = Blocked("OperationOpen", "the operation that makes it has not ended", patience_s=2.0)
"""Why an object is left alone for now. Controllers meet every new object before its operation has ended."""


async def begins(store: Store, resource: ResourceT, operation: str, run: Run) -> Result | Outcome[ResourceT] | None:
    """Return why nothing is made of an object yet, or None if all is well with the operation that made it.

    What an operation has made and then taken back is deleted, should it still be there.
    """
    phase = await _phase(store, operation)
    if phase == "undone":
        log = [run.entry(resource, "Undone")]
        try:
            marked = await store.delete(type(resource), resource.name, uid=resource.uid, log=log)
        except NotFound:
            return Done()  # it went meanwhile
        return Outcome(Again(0, "Deprovisioning", "the operation that made it was undone"), marked or resource)
    return None if phase == "done" else OPERATION_OPEN


async def is_being_made(store: Store, operation: str) -> bool:
    """Tell whether the operation that makes an object has not ended."""
    return await _phase(store, operation) in OPEN_PHASES


async def _phase(store: Store, operation: str) -> Phase:
    """Return how an operation stands; one that nobody remembers is long done."""
    found = await find(store, Operation, operation) if operation else None
    return "done" if found is None else found.phase


def payer_of(resource: Resource) -> Place:
    """Return who pays for an object: whom its labels name, or where it is."""
    found = resource.metadata.labels
    organization = found.get(labels.PAYING_ORGANIZATION)
    if organization is None:
        return Place(found[labels.ORGANIZATION], found[labels.PROJECT])
    return Place(organization, found.get(labels.PAYING_PROJECT, found[labels.PROJECT]))


def is_charged(resource: Resource) -> bool:
    """Tell whether what an object costs is known to be held."""
    found = find_condition(_conditions(resource), CHARGED)
    return found is not None and found.status == "True"


def is_provisioned(resource: Resource) -> bool:
    """Tell whether an object is as it is wanted, as far as its controller has said."""
    found = find_condition(_conditions(resource), "Available")
    return found is not None and found.status == "True"


async def hold(ledger: Ledger, charge: Charge, payer: Principal) -> None:
    """Hold what is about to be made. Whoever comes with the operation of something that is gone has to try again."""
    try:
        await ledger.allocate(charge, payer)
    except Late:
        raise Unavailable("What this operation held was given back for good: try again.") from None


async def settle_charge(ledger: Ledger, charge: Charge) -> Result | None:
    """Confirm what an object costs, or hold it again; return what keeps it from that, or None."""
    try:
        if not await ledger.confirm(charge):
            await ledger.allocate(charge)
            if not await ledger.confirm(charge):
                return Again(SOON_S, message="what it costs is being held")
    except Forbidden:
        return Blocked("QuotaExceeded", "its organization or project may not have another")
    return None


def with_charged(resource: ResourceT, clock: Clock) -> ResourceT:
    """Return an object that says that what it costs is held."""
    charged = Condition(
        type=CHARGED,
        status="True",
        reason="Confirmed",
        message="what it costs is held",
        last_transition_time=clock.now().replace(microsecond=0),
    )
    status: Any = resource.status  # type: ignore[attr-defined]  # every kind with a controller has one
    changed = replace(status, conditions=set_condition(status.conditions, charged))
    return replace(resource, status=changed)


def _conditions(resource: Resource) -> tuple[Condition, ...]:
    return resource.status.conditions  # type: ignore[attr-defined,no-any-return]  # as above
