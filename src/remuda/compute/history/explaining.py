"""Why an instance is as it is, as a pure function of what is known of it.

It says how the instance stands, what it waits for, since when, who can unblock it and how; and what somebody might
wonder about: that it is protected, or that it is another at its provider than it was made.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from remuda.compute.history.reasons import reason_of
from remuda.compute.history.wire import ExplanationRead, WaitRead
from remuda.compute.kinds.instances import ComputeInstance, Protection
from remuda.compute.ports import NetworkSeen, ServerSeen
from remuda.kernel.conditions import Condition, find_condition
from remuda.operations.kinds import Operation
from remuda.reconcile.lifecycle import is_paused
from remuda.reconcile.status import AVAILABLE, STALLED, is_behind
from remuda.resources.regional import network_of

__all__ = ["Known", "explain", "explain_gone"]

_USUAL = {"", "Provisioning", "Deprovisioning", "Pending"}
"""What an instance says while its server may have the better word."""
_SEEN = {"AmbiguousServer", "NetworkDeleting", "NetworkGone", "Paused"}
"""What is told by what is seen now, and not by what was said of it before."""
_OVERDUE = "It should have moved by now: tell whoever runs the platform."


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What there is to know of an instance."""

    instance: ComputeInstance
    servers: Sequence[ServerSeen] | None
    """Those that say that they are its own; None if region did not answer."""
    network: NetworkSeen | None
    """Nothing if it is gone, or if region did not answer."""
    operations: Sequence[Operation] = ()
    policy: Protection | None = None
    """What its project demands, if anything."""
    now: datetime


def explain(known: Known) -> ExplanationRead:
    """Say why an instance is as it is."""
    waits = tuple(_waits(known))
    state, standing = _standing(known, is_waiting=bool(waits))
    return ExplanationRead(
        state=state,
        sentences=(standing, *(line for wait in waits for line in _lines(wait)), *_notes(known)),
        waits=waits,
        asked_at=known.now,
        incarnation=known.instance.uid,
    )


def explain_gone(*, since: datetime, now: datetime, incarnation: str) -> ExplanationRead:
    """Say of an instance that it is no more."""
    sentence = f"It is gone since {_at(since)}: somebody asked for its deletion, or its network went."
    return ExplanationRead(state="gone", sentences=(sentence,), asked_at=now, incarnation=incarnation)


def _standing(known: Known, *, is_waiting: bool) -> tuple[str, str]:
    """Return how an instance stands, for programs and for people."""
    instance = known.instance
    deleted = instance.metadata.deletion_timestamp
    available = find_condition(instance.status.conditions, AVAILABLE)
    power = instance.status.power_state
    if deleted is not None:
        return "deleting", f"It is being deleted since {_at(deleted)}."
    if is_paused(instance):
        return "paused", "It is paused: nothing is done to it, whatever is asked of it."
    if available is None:
        return "pending", "It was asked for, and nothing was done yet."
    if is_behind(instance, instance.status.conditions):
        return "changing", "It is not yet what it was last asked to be: that was not looked at yet."
    if available.status == "True":
        running = f", and {power.lower()}" if power else ""
        return "provisioned", f"It is as it was asked to be{running}{'' if is_waiting else ': it waits for nothing'}."
    return "waiting", f"It is not as it was asked to be: {_clause(available.message)}."


def _waits(known: Known) -> Iterator[WaitRead]:
    """Yield what an instance waits for, what matters most first."""
    instance = known.instance
    yield from _operations(known)
    if is_paused(instance) and not instance.is_marked:
        yield _wait("Paused")
        return
    if known.servers is None:
        yield _wait("RegionUnreachable", since=known.now)
    elif len(known.servers) > 1:
        yield _wait("AmbiguousServer", detail=f"there are {len(known.servers)}")
    if not instance.is_marked:
        yield from _network(known)
    yield from _own(known)


def _operations(known: Known) -> Iterator[WaitRead]:
    for operation in known.operations:
        if not operation.is_open:
            continue
        status, spec = operation.status, operation.spec
        word = "Stuck" if operation.phase == "stuck" else "OperationOpen"
        detail = f"{spec.saga}, of {spec.actor}, is {operation.phase}"
        if status.error is not None:
            detail += f" because of this: {_clause(status.error.sentence)}"
        yield _wait(word, since=operation.metadata.creation_timestamp, detail=detail, next_try=status.next_try)


def _network(known: Known) -> Iterator[WaitRead]:
    if known.servers is None:
        return
    if known.network is None:
        yield _wait("NetworkGone", detail=network_of(known.instance))
    elif known.network.is_marked:
        yield _wait("NetworkDeleting", detail=known.network.name)


def _own(known: Known) -> Iterator[WaitRead]:
    """Yield what its controller says, or its server where that knows better."""
    conditions = known.instance.status.conditions
    available = find_condition(conditions, AVAILABLE)
    word, message, since = _said(known.instance, available)
    server = known.servers[0] if known.servers is not None and len(known.servers) == 1 else None
    if word in _USUAL and server is not None and server.settling not in {"provisioned", "unknown"}:
        word, message = server.reason or word, server.message or message
    if word and word not in _SEEN:
        yield _overdue(_wait(word, since=since, detail=message), find_condition(conditions, STALLED))


def _overdue(wait: WaitRead, stalled: Condition | None) -> WaitRead:
    """Return a wait that by itself did not end in time as somebody's to look at."""
    if stalled is None or stalled.status != "True" or wait.who != "itself":
        return wait
    return msgspec.structs.replace(wait, who="operator", remedy=_OVERDUE)


def _said(instance: ComputeInstance, available: Condition | None) -> tuple[str, str, datetime | None]:
    """Return what its controller waits for; no word if that is nothing."""
    deleted = instance.metadata.deletion_timestamp
    if available is None or is_behind(instance, instance.status.conditions):
        return ("Deprovisioning" if deleted else "Pending"), "", deleted or instance.metadata.creation_timestamp
    if available.status == "True" and deleted is None:
        return "", "", None
    word = available.reason if available.status != "True" else "Deprovisioning"
    return word, available.message, deleted or available.last_transition_time


def _notes(known: Known) -> Iterator[str]:
    instance = known.instance
    stalled = find_condition(instance.status.conditions, STALLED)
    healthy = find_condition(instance.status.conditions, "Healthy")
    if stalled is not None and stalled.status == "True":
        yield f"It has not moved for too long, since {_at(stalled.last_transition_time)}: somebody should look."
    if healthy is not None and healthy.status == "False":
        yield f"It is not healthy since {_at(healthy.last_transition_time)}: {_clause(healthy.message)}."
    protection = _protection(known)
    if protection.deletion:
        yield "It is protected from deletion: to delete it, take that back first."
    if protection.plan:
        yield "A change that destroys something has to carry the hash of its plan."


def _protection(known: Known) -> Protection:
    """Return what its project or its own spec protects it from."""
    own, policy = known.instance.spec.protection, known.policy or Protection()
    return Protection(deletion=own.deletion or policy.deletion, plan=own.plan or policy.plan)


def _wait(word: str, *, since: datetime | None = None, detail: str = "", next_try: datetime | None = None) -> WaitRead:
    behind = reason_of(word)
    said = f" ({_clause(detail)})" if detail else ""
    began = f" since {_at(since)}" if since is not None else ""
    return WaitRead(
        reason=word,
        sentence=f"It waits for {behind.waits_for}{said}{began}.",
        since=since,
        next_try=next_try,
        retry_within=behind.retry_within_s,
        who=behind.who,
        remedy=behind.remedy,
    )


def _lines(wait: WaitRead) -> Iterator[str]:
    yield wait.sentence
    if wait.next_try is not None:
        yield f"The next try is at {_at(wait.next_try)}."
    else:
        yield f"It is looked at again as soon as something changes, and at least every {wait.retry_within} seconds."
    yield f"Who can unblock it: {_WHO[wait.who]}. {wait.remedy}"


_WHO = {
    "itself": "nobody needs to",
    "user": "whoever may change it",
    "administrator": "an administrator of its organization",
    "operator": "whoever runs the platform",
}


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _clause(text: str) -> str:
    """Return a sentence as a part of another."""
    return text.strip().rstrip(".")
