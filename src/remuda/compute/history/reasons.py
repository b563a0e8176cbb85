"""Every reason that an instance or its server can give for not being as it was asked to be.

Each tells what is the matter, who can do something about it, and what. A test walks the controllers of compute and of
region's servers, and fails on a reason that is not here.

How what keeps an instance is said: what is the matter and since when, then who can unblock it, and how.

What somebody might wonder about an instance that keeps it from nothing: it is off, ill, drifted or protected.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from remuda.compute.history.schema import WaitRead, Who
from remuda.compute.history.timeline import account
from remuda.compute.instances.convergence import NET_S
from remuda.compute.instances.status import DRIFTED
from remuda.compute.kinds import ComputeInstance, Protection
from remuda.kernel.conditions import Condition, find_condition
from remuda.reconcile.ports import ControllerSettings
from remuda.reconcile.status import STALLED

_CONTROL = ControllerSettings()
_SOON_S = int(NET_S)
_NOW_AND_THEN_S = round(_CONTROL.blocked_within_s[1])
_BACKED_OFF_S = int(_CONTROL.backoff.longest_s)
_UNTOLD_S = 0


@dataclass(frozen=True, slots=True)
class Reason:
    """What is behind a word."""

    says: str
    """What is the matter: a sentence without its end, since what else is known of it follows."""
    who: Who
    remedy: str
    retry_within_s: int = _NOW_AND_THEN_S
    """How long it is between two tries at most: what region does is looked at every few seconds, what waits for others
    about each minute, and what failed after a pause that grows to minutes. Nought, where nothing is tried, or nobody
    can say when."""


PATIENCE = "Wait."
"""What to do about what goes on by itself."""
_UNFORESEEN = Reason("Something has to be mended", "operator", "Tell whoever runs the platform.", _BACKED_OFF_S)

REASONS: Mapping[str, Reason] = {
    "Pending": Reason("It waits for its controller to look at it", "itself", PATIENCE, _UNTOLD_S),
    "Provisioning": Reason("Its server is being made", "itself", PATIENCE, _SOON_S),
    "Changed": Reason("Its server is becoming what it was last asked to be", "itself", PATIENCE, _SOON_S),
    "Deprovisioning": Reason("What it had is being removed", "itself", PATIENCE, _SOON_S),
    "Rebuilding": Reason("Its server is being made anew", "itself", PATIENCE, _SOON_S),
    "OperationRunning": Reason("An operation that makes or changes it is under way", "itself", PATIENCE),
    "DependencyNotReady": Reason(
        "It waits for what it needs to be made",
        "itself",
        "Wait; if that takes long, look at its network and its security groups.",
    ),
    "QuotaExceeded": Reason(
        "It waits for room in the quota of its project or organization",
        "user",
        "Delete something that is not needed, or have the quota raised: a project's by an administrator of its "
        "organization, and an organization's by whoever runs the platform.",
    ),
    "NoCapacity": Reason(
        "It waits for room in its region for its flavor",
        "user",
        "Wait for room, choose another flavor, or make the instance in another region.",
        _BACKED_OFF_S,
    ),
    "AddressesExhausted": Reason(
        "It waits for a free address on its network",
        "user",
        "Delete something on the network, or make the instance on another one.",
    ),
    "PublicAddressesExhausted": Reason(
        "It waits for a free public address",
        "operator",
        "Do without a public address, or ask whoever runs the platform for more of them.",
        _BACKED_OFF_S,
    ),
    "AddressTaken": Reason(
        "It waits for its address, which something else has at its provider",
        "operator",
        "Have whoever runs the platform remove what has the address there.",
        _BACKED_OFF_S,
    ),
    "ProviderRejected": Reason(
        "Its provider does not make its server any more",
        "user",
        "Choose a flavor and an image that are offered now.",
        _BACKED_OFF_S,
    ),
    "DependencyNotFound": Reason(
        "Something that it names is gone",
        "user",
        "Name one that is there, or delete the instance.",
    ),
    "Errored": Reason(
        "It has failed, and does not recover by itself",
        "user",
        "Change the instance, by another image for example, or delete it and make it again; if that does not help, "
        "tell whoever runs the platform.",
        _BACKED_OFF_S,
    ),
    "ServerFailed": Reason(
        "Its server broke at its provider after it had run, and is left as it is",
        "user",
        "Give it another image or flavor, which makes its server anew and loses its disk, or delete it and make it "
        "again; if its disk is needed, ask whoever runs the platform first.",
        _UNTOLD_S,
    ),
    "InUse": Reason("It waits for what uses it to let go of it", "user", "Delete what uses it, or end that use."),
    "HasChildren": Reason("It waits for what belongs to it to go", "itself", PATIENCE),
    "MassDeletion": Reason(
        "Too much would be removed at once that nobody asked to remove, so nothing more is",
        "operator",
        "Have whoever runs the platform look why that is, and release it.",
    ),
    "AmbiguousServer": Reason(
        "It is not clear which server is its own, so nothing is done to any",
        "operator",
        "Have whoever runs the platform delete the servers that are not its own.",
    ),
    "NetworkDeleting": Reason(
        "Its network is being deleted, and takes it along",
        "itself",
        "If it is still needed, make it on another network.",
    ),
    "NetworkGone": Reason(
        "Its network is gone",
        "user",
        "Delete the instance, and make it on another network.",
        _UNTOLD_S,
    ),
    "ServerVanished": Reason(
        "Its server is gone, and nobody here asked for that",
        "itself",
        "Wait: it is looked for once more and then made again, and what was on its disk is lost.",
        _UNTOLD_S,
    ),
    "ServerDeleting": Reason("It waits for a server to go, before another is made", "itself", PATIENCE, _SOON_S),
    "NameTaken": Reason(
        "A server that is not its own has its name on its network",
        "user",
        "Delete that server, or make the instance under another name.",
    ),
    "Paused": Reason(
        "It waits for somebody to take back the pause",
        "operator",
        "Have whoever runs the platform take back the pause: until then nothing is done to it, but deleting it.",
        _UNTOLD_S,
    ),
    "Stuck": Reason(
        "An operation that makes or changes it failed, and could not be taken back",
        "operator",
        "Have whoever runs the platform look at the operation, and mend what keeps it from being undone.",
        _BACKED_OFF_S,
    ),
    "RegionUnreachable": Reason(
        "Region does not answer, so nobody can say how its server is",
        "operator",
        "Wait; if it lasts, tell whoever runs the platform.",
        _UNTOLD_S,
    ),
}
"""All of them, by their words."""


def reason_of(word: str) -> Reason:
    """Return what is behind a word; of one that nobody thought of, that somebody has to look."""
    return REASONS.get(word, _UNFORESEEN)


_WHO: dict[Who, str] = {
    "itself": "Nobody has to unblock it: it goes on by itself.",
    "user": "Whoever may change the instance can unblock it.",
    "operator": "It takes an operator to unblock it.",
}


def wait_of(
    word: str, *, since: datetime | None = None, detail: str = "", next_try: datetime | None = None
) -> WaitRead:
    """Return what there is to know of something that keeps an instance; `detail` is what is known beyond the word."""
    behind = reason_of(word)
    began = f" (since {at(since)})" if since is not None else ""
    detail = clause(detail)
    more = f": {detail}" if detail and detail.lower() not in behind.says.lower() else ""
    return WaitRead(
        reason=word,
        sentence=f"{behind.says}{began}{more}.",
        since=since,
        next_try=next_try,
        retry_within=behind.retry_within_s,
        who=behind.who,
        remedy=behind.remedy,
    )


def lines_of(wait: WaitRead) -> Iterator[str]:
    """Yield all of it, for people."""
    yield wait.sentence
    if wait.next_try is not None:
        yield f"It is tried again at {at(wait.next_try)}."
    elif wait.who != "itself" and wait.retry_within:
        yield f"It is looked at again as soon as something changes, and at least every {wait.retry_within} seconds."
    yield _WHO[wait.who] if wait.remedy == PATIENCE else f"{_WHO[wait.who]} {wait.remedy}"


def at(moment: datetime) -> str:
    """Return a moment as people read it."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def clause(text: str) -> str:
    """Return a sentence as a part of another."""
    return text.strip().rstrip(".")


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
    if instance.is_deleting:
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
