"""What somebody might wonder about an instance that keeps it from nothing: it is off, ill, drifted or protected."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from remuda.compute.history.timeline import account
from remuda.compute.history.wording import at, clause
from remuda.compute.instances.status import DRIFTED
from remuda.compute.kinds.instances import ComputeInstance, Protection
from remuda.kernel.conditions import Condition, find_condition
from remuda.reconcile.status import STALLED


@dataclass(frozen=True, slots=True)
class PowerAsked:
    """Who last asked for an instance to be on or off."""

    stopped: bool
    actor: str
    time: datetime


def notes(instance: ComputeInstance, power: PowerAsked | None, policy: Protection | None) -> Iterator[str]:
    """Yield what there is to note, each in a sentence."""
    stalled = find_condition(instance.status.conditions, STALLED)
    if stalled is not None and stalled.status == "True":
        yield f"It has not moved since {at(stalled.last_transition_time)}, which is too long: somebody should look."
    yield from _ill(instance)
    yield from _drifted(instance)
    if instance.is_marked:
        return
    if instance.status.power_state == "Stopped":
        yield _off(power)
    yield from _protected(instance.spec.protection, policy or Protection())


def broken_since(instance: ComputeInstance) -> Condition | None:
    """Return what is said of the server of an instance that ran and then broke; nothing, if it did not."""
    healthy = find_condition(instance.status.conditions, "Healthy")
    has_broken = healthy is not None and (healthy.status, healthy.reason) == ("False", "Errored")
    return healthy if has_broken else None


def _ill(instance: ComputeInstance) -> Iterator[str]:
    healthy = find_condition(instance.status.conditions, "Healthy")
    if healthy is not None and healthy.status == "False" and broken_since(instance) is None:
        how = clause(healthy.message)
        yield f"It is not healthy (since {at(healthy.last_transition_time)}){': ' if how else ''}{how}."


def _drifted(instance: ComputeInstance) -> Iterator[str]:
    drifted = find_condition(instance.status.conditions, DRIFTED)
    if drifted is not None and drifted.status == "True":
        yield (
            f"At its provider it is not what it was made any more (since {at(drifted.last_transition_time)}): "
            f"{clause(drifted.message)}. It is left so, since somebody did that there: give it another flavor or image "
            "to have it made anew, which loses its disk."
        )


def _off(power: PowerAsked | None) -> str:
    if power is not None and power.stopped:
        return f"It is off because {account(power.actor)} asked for that at {at(power.time)}: start it to have it run."
    return (
        "Nobody asked here for it to be off: it was shut down from inside, or at its provider. Start it to have it run."
    )


def _protected(own: Protection, policy: Protection) -> Iterator[str]:
    if own.deletion:
        yield "It is protected from deletion: whoever may change it has to lift that before it can be deleted."
    elif policy.deletion:
        yield "Its project protects it from deletion: whoever may change the project has to lift that first."
    if own.plan or policy.plan:
        whose = "It" if own.plan else "Its project"
        yield f"{whose} demands a plan: a change that destroys something has to carry the hash of its plan."
