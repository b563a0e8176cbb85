"""What an instance costs. While its server has other GPUs than are wanted, that is whichever are more.

What it no longer costs is given back when its server is seen to be without them: a replacement may have to wait for
room. That is written down first, in the same write that shows it, and then the ledger is told: a wish for more in
between begins another turn, and whoever tells of less in an earlier one is late.
"""

from dataclasses import replace

import msgspec

from remuda.compute.instances.rules import charge_of
from remuda.compute.kinds.instances import ComputeInstance
from remuda.kernel.clock import Clock
from remuda.kernel.conditions import Condition, find_condition, set_condition
from remuda.kernel.errors import Conflict, NotFound
from remuda.quota.lock import turn_of
from remuda.quota.ports import Charge, Late, Ledger
from remuda.quota.reservation import CHARGED, payer_of, settle_charge
from remuda.reconcile.lifecycle import Outcome
from remuda.reconcile.results import Again, Done, Result

_LESS = "GivingBack"
_MESSAGE = "what it no longer costs is being given back"


def charged_gpus(instance: ComputeInstance) -> int:
    """Return how many GPUs an instance has, or is to have: whichever are more."""
    applied = instance.status.applied
    return max(instance.spec.gpus, 0 if applied is None else applied.gpus)


def charge_for(instance: ComputeInstance) -> Charge:
    """Return what a stored instance costs."""
    spec = instance.spec
    return charge_of(
        instance.name,
        spec.operation,
        payer_of(instance),
        gpus=charged_gpus(instance),
        is_public=spec.wants_public_ip,
        turn=turn_of(instance),
    )


def with_less(before: ComputeInstance, outcome: Outcome[ComputeInstance], clock: Clock) -> Outcome[ComputeInstance]:
    """Return an outcome that says that something is to be given back, if what it shows costs less than before."""
    if charged_gpus(before) == charged_gpus(outcome.resource):
        return outcome
    said = Condition(
        type=CHARGED,
        status="False",
        reason=_LESS,
        message=_MESSAGE,
        last_transition_time=clock.now().replace(microsecond=0),
    )
    status = outcome.resource.status
    status = msgspec.structs.replace(status, conditions=set_condition(status.conditions, said))
    result = Again(0, message=_MESSAGE) if isinstance(outcome.result, Done) else outcome.result
    return replace(outcome, result=result, resource=msgspec.structs.replace(outcome.resource, status=status))


def is_to_give_back(instance: ComputeInstance) -> bool:
    """Tell whether an instance costs less than what is held for it."""
    said = find_condition(instance.status.conditions, CHARGED)
    return said is not None and said.reason == _LESS


async def give_back(ledger: Ledger, instance: ComputeInstance) -> Result | None:
    """Hold what an instance costs and no more; return what keeps it from that. Conflict: that changes just now."""
    try:
        await ledger.change(charge_for(instance))
    except NotFound:  # nothing is held, since somebody released it: what it costs now is held instead
        return await settle_charge(ledger, charge_for(instance))
    except Late:
        raise Conflict("ComputeInstance", instance.name) from None
    return None
