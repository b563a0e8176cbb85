"""Why an instance is as it is, as a pure function of what is known of it.

It says how the instance stands, what keeps it, since when, who can unblock it and how; and what somebody might wonder
about: that it is off, or protected.

Instances that are gone, and whose they were.

The last thing that a controller tells of an instance, in the commit by which it goes, has its labels. As long as
anything of an incarnation is remembered so is this, for it is the youngest: so the past of an instance is judged by the
same scope as the instance was. Its id follows from its network, which never changes its project: what has had one id
has been in one place. It is kept by itself, too (`leaving`), where it is found at once; an earlier release kept it in
the timeline alone.

Who last asked for an instance to be on or off, and why one went, is found in the timeline, from the latest back.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

import msgspec

from remuda.compute.history.reasons import PowerAsked, at, broken_since, lines_of, notes, wait_of
from remuda.compute.history.schema import ExplanationRead, WaitRead
from remuda.compute.history.timeline import account
from remuda.compute.instances.controller import departures_under
from remuda.compute.instances.rules import message_of, reason_of
from remuda.compute.instances.server_lookup import is_ambiguous, sorted_out
from remuda.compute.instances.status import is_being_changed, rebuild_under_way
from remuda.compute.kinds import ComputeInstance, Protection
from remuda.compute.ports import is_deleting
from remuda.kernel.clock import yield_to_loop
from remuda.kernel.conditions import Condition, find_condition
from remuda.operations.kinds import Operation
from remuda.reconcile.lifecycle import RELEASED, is_paused
from remuda.reconcile.status import AVAILABLE, STALLED, is_behind
from remuda.region.networks.schema import NetworkRead
from remuda.region.servers.schema import ServerRead
from remuda.resources.conventions import MODIFIED, ORGANIZATION, PROJECT, REGION, network_of
from remuda.store.logs import Entry, Log

STREAM = "timeline"
"""The log stream of what happened."""

_PAGE = 100
_MOST_PAGES = 20
_MOST_OF_KNOWN = 500
"""Of an instance that is or was there: each create of its name that is refused leaves three entries."""
_POWER = {"Started", "Stopped", "Rebooted", "Replacing", "MadeAgain"}
"""What says whether it is to be on: what people ask for, and another server in its server's place, which runs."""
_ENDS = {"DeletionRequested", "NetworkDeleted", "Undone"}
"""Why an instance goes."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneInstance:
    """An instance that was there."""

    organization: str
    project: str
    region: str
    uid: str
    time: datetime
    """When it went."""


@dataclass(frozen=True, slots=True)
class End:
    """Why an instance went."""

    event: str
    actor: str
    """Who asked for it, if somebody did."""


class _Said(msgspec.Struct, frozen=True):
    event: str = ""
    uid: str = ""
    actor: str = ""
    labels: Mapping[str, str] = {}


_decode = msgspec.json.Decoder(_Said).decode


async def find_gone(log: Log, subject: str) -> GoneInstance | None:
    """Return the last instance of an id that is gone, if one is remembered."""
    kept = await log.read_back(STREAM, departures_under(subject), limit=1)
    return _gone(kept.entries[0]) if kept.entries else await _latest(log, subject, _gone)


async def find_power_asked(log: Log, subject: str, uid: str) -> PowerAsked | None:
    """Return who last asked for this incarnation of an instance to be on or off, if anybody did.

    Who asked for it to be off before it got another server did not ask that of this one.
    """
    return await _latest(log, subject, partial(_power_asked, uid=uid), most_pages=_MOST_OF_KNOWN)


async def find_end(log: Log, subject: str, uid: str) -> End | None:
    """Return why this incarnation of an instance went, if that is remembered."""
    return await _latest(log, subject, partial(_end, uid=uid), most_pages=_MOST_OF_KNOWN)


async def _latest(
    log: Log, subject: str, read: Callable[[Entry], _T | None], *, most_pages: int = _MOST_PAGES
) -> _T | None:
    """Return what is read from the latest entry that has it."""
    before = None
    for _ in range(most_pages):
        page = await log.read_back(STREAM, subject, before=before, limit=_PAGE)
        found = next((each for each in map(read, page.entries) if each is not None), None)
        if found is not None or page.next is None:
            return found
        before = page.next
        await yield_to_loop()
    return None


def _power_asked(entry: Entry, uid: str) -> PowerAsked | None:
    said = _decode(entry.data)
    if said.event not in _POWER or said.uid != uid:
        return None
    return PowerAsked(stopped=said.event == "Stopped", actor=said.actor or "somebody", time=entry.time)


def _end(entry: Entry, uid: str) -> End | None:
    said = _decode(entry.data)
    return End(said.event, said.actor) if said.event in _ENDS and said.uid == uid else None


def _gone(entry: Entry) -> GoneInstance | None:
    said = _decode(entry.data)
    organization, project = said.labels.get(ORGANIZATION), said.labels.get(PROJECT)
    if said.event != RELEASED or organization is None or project is None:
        return None
    region = said.labels.get(REGION, "")
    return GoneInstance(organization=organization, project=project, region=region, uid=said.uid, time=entry.time)


_USUAL = {"", "Provisioning", "Deprovisioning", "Pending"}
"""What an instance says while its server may have the better word."""
_SEEN = {"AmbiguousServer", "NetworkDeleting", "NetworkGone", "Paused"}
"""What is told by what is seen now, and not by what was said of it before."""
_SWIFT = timedelta(minutes=5)
"""Within which a controller looks at what is new, if it runs at all."""
_OVERDUE = "It should have moved by now: tell whoever runs the platform."


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What there is to know of an instance."""

    instance: ComputeInstance
    servers: Sequence[ServerRead] | None
    """Those that name it; None if region did not answer."""
    network: NetworkRead | None
    """Nothing if it is gone, or if region did not answer."""
    operations: Sequence[Operation] = ()
    policy: Protection | None = None
    """What its project demands, if anything."""
    power: PowerAsked | None = None
    """Who last asked for it to be on or off, as far back as was looked."""
    now: datetime

    @property
    def standing(self) -> Sequence[ServerRead]:
        """The servers that may be its own, but for those that are being deleted."""
        return sorted_out(self.instance, self.servers or ()).standing

    @property
    def server(self) -> ServerRead | None:
        """Its server, if it is there and clear which it is."""
        return self.standing[0] if self.standing and not is_ambiguous(self.instance, self.standing) else None


def explain(known: Known) -> ExplanationRead:
    """Say why an instance is as it is."""
    waits = tuple(_waits(known))
    state, standing = _standing(known, waits)
    return ExplanationRead(
        state=state,
        sentences=(
            standing,
            *(line for wait in waits for line in lines_of(wait)),
            *notes(known.instance, known.power, known.policy),
        ),
        waits=waits,
        asked_at=known.now,
        incarnation=known.instance.uid,
    )


def explain_gone(gone: GoneInstance, end: End | None, *, now: datetime) -> ExplanationRead:
    """Say of an instance that it is no more, and why."""
    sentence = f"It is gone, since {at(gone.time)}: {_why_gone(end)}."
    return ExplanationRead(state="gone", sentences=(sentence,), asked_at=now, incarnation=gone.uid)


def _why_gone(end: End | None) -> str:
    match end:
        case End("DeletionRequested"):
            return f"{account(end.actor)} asked for its deletion"
        case End("NetworkDeleted"):
            return "its network was deleted, and took it along"
        case End("Undone"):
            return "the operation that made it was taken back"
        case _:
            return "why is not remembered"


def _standing(known: Known, waits: Sequence[WaitRead]) -> tuple[str, str]:
    """Return how an instance stands, for programs and for people."""
    instance = known.instance
    deleted = instance.metadata.deletion_timestamp
    available = find_condition(instance.status.conditions, AVAILABLE)
    if deleted is not None:
        return "deleting", f"It is being deleted: that was asked for at {at(deleted)}."
    if is_paused(instance):
        return "paused", "It is paused: nothing is done to it, whatever is asked of it."
    if available is None:
        return "pending", "It was asked for, and nothing is known to be done yet."
    if is_behind(instance, instance.status.conditions):
        return "changing", "It was changed, and nothing is known to be done about that yet."
    if available.status != "True":
        goes_on = bool(waits) and all(wait.who == "itself" for wait in waits)
        return "waiting", f"It is not{' yet' if goes_on else ''} as it was asked to be."
    return _as_asked(instance, waits)


def _as_asked(instance: ComputeInstance, waits: Sequence[WaitRead]) -> tuple[str, str]:
    if any(wait.reason == "ServerFailed" for wait in waits):
        return "broken", "It was made as it was asked to be, but its server is broken."
    power = instance.status.power_state
    running = f", and {power.lower()}" if power and power != "Error" else ""
    return "provisioned", f"It is as it was asked to be{running}{'' if waits else ': it waits for nothing'}."


def _waits(known: Known) -> Iterator[WaitRead]:
    """Yield what keeps an instance, what matters most first."""
    instance = known.instance
    yield from _operations(known)
    if is_paused(instance) and not instance.is_deleting:
        yield wait_of("Paused")
        return
    if known.servers is None:
        yield wait_of("RegionUnreachable")
    elif is_ambiguous(instance, known.standing):
        yield wait_of("AmbiguousServer", detail=_how_many(known.standing))
    if not instance.is_deleting:
        yield from _network(known)
    yield from _own(known)


def _how_many(standing: Sequence[ServerRead]) -> str:
    return f"there are {len(standing)}" if len(standing) > 1 else "there is one, and it is linked to another"


def _operations(known: Known) -> Iterator[WaitRead]:
    for operation in known.operations:
        if not operation.is_open:
            continue
        status, spec = operation.status, operation.spec
        word = "Stuck" if operation.phase == "stuck" else "OperationOpen"
        detail = f"{spec.saga}, of {account(spec.actor)}, is {operation.phase}"
        if status.error is not None:
            detail += f" because of this: {status.error.message}"
        yield wait_of(word, since=operation.metadata.creation_timestamp, detail=detail, next_try=status.next_attempt)


def _network(known: Known) -> Iterator[WaitRead]:
    if known.servers is None:
        return
    if known.network is None:
        yield wait_of("NetworkGone", detail=f"its id was {network_of(known.instance)}")
    elif is_deleting(known.network):
        yield wait_of("NetworkDeleting", detail=f"it is called {known.network.metadata.name}")


def _own(known: Known) -> Iterator[WaitRead]:
    """Yield what its controller says, or its server where that knows better; or what the controller has yet to see."""
    instance, conditions = known.instance, known.instance.status.conditions
    word, message, since = _said(known)
    server = known.server
    if word in _USUAL and server is not None and server.metadata.provisioning_status != "provisioned":
        word, message = reason_of(server) or word, message_of(server) or message
        word = "Changed" if word == "Provisioning" and is_being_changed(instance, server) else word
    if word and word not in _SEEN:
        yield _overdue(wait_of(word, since=since, detail=message), find_condition(conditions, STALLED), known.now)
    elif not word and known.servers == [] and instance.status.has_server:
        yield wait_of("ServerVanished")
    elif not word and (broken := broken_since(instance)) is not None:
        yield wait_of("ServerFailed", since=broken.last_transition_time, detail=broken.message)


def _overdue(wait: WaitRead, stalled: Condition | None, now: datetime) -> WaitRead:
    """Return a wait that by itself did not end in time as somebody's to look at."""
    has_stalled = stalled is not None and stalled.status == "True"
    is_unseen = wait.reason == "Pending" and wait.since is not None and now - wait.since > _SWIFT
    if wait.who != "itself" or not (has_stalled or is_unseen):
        return wait
    return msgspec.structs.replace(wait, who="operator", remedy=_OVERDUE)


def _said(known: Known) -> tuple[str, str, datetime | None]:
    """Return what its controller waits for; no word if that is nothing."""
    instance = known.instance
    available = find_condition(instance.status.conditions, AVAILABLE)
    deleted = instance.metadata.deletion_timestamp
    if available is None or is_behind(instance, instance.status.conditions):
        return ("Deprovisioning" if deleted else "Pending"), "", deleted or _asked_at(instance)
    if available.status == "True" and deleted is None:
        return "", "", None
    word = available.reason if available.status != "True" else "Deprovisioning"
    rebuild = rebuild_under_way(instance) if word == "Rebuilding" else None
    message = available.message if rebuild is None else rebuild.message
    return word, message, deleted or available.last_transition_time


def _asked_at(instance: ComputeInstance) -> datetime | None:
    """Return when what is wanted of an instance was last asked for."""
    changed = instance.metadata.annotations.get(MODIFIED)
    try:
        return instance.metadata.creation_timestamp if changed is None else datetime.fromisoformat(changed)
    except ValueError:  # written by somebody else
        return None
