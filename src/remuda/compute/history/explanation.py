"""Explanation of the state of an instance: a pure function of what is known about it.

For a deleted instance it is derived from the tombstone that the controller wrote with the deletion: the labels in it
also decide which callers may read the history.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

import msgspec

from remuda.compute.history.reasons import PowerRequest, format_time, messages_of, notes, server_failure, wait_of
from remuda.compute.history.schema import ExplanationRead, WaitRead
from remuda.compute.history.timeline import named_actor
from remuda.compute.instances.controller import tombstone_subject
from remuda.compute.instances.rules import message_of, reason_of
from remuda.compute.instances.server_lookup import classified, is_ambiguous
from remuda.compute.instances.status import current_rebuild, is_being_changed
from remuda.compute.kinds import ComputeInstance, Protection
from remuda.compute.ports import is_deleting
from remuda.kernel.clock import yield_to_loop
from remuda.kernel.conditions import Condition, find_condition
from remuda.operations.kinds import Operation
from remuda.reconcile.lifecycle import FINALIZER_REMOVED, is_paused
from remuda.reconcile.status import AVAILABLE, STALLED, is_behind
from remuda.region.networks.schema import NetworkRead
from remuda.region.servers.schema import ServerRead
from remuda.resources.conventions import MODIFIED, ORGANIZATION, PROJECT, REGION, network_of
from remuda.store.logs import TIMELINE, Entry, Log

_PAGE = 100
_MAX_PAGES = 20
_MAX_PAGES_OF_KNOWN = 500
"""For an instance that exists or existed: each create that is rejected because of its name leaves three entries."""
_POWER_EVENTS = {"Started", "Stopped", "Rebooted", "Replacing", "ServerRecreated"}
"""Events that decide whether an instance should run: requests, and a new server, which runs."""
_DELETION_EVENTS = {"DeletionRequested", "NetworkDeleted", "CreateRolledBack"}

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """A deleted instance."""

    organization: str
    project: str
    region: str
    uid: str
    time: datetime


@dataclass(frozen=True, slots=True)
class DeletionCause:
    """The event that caused the deletion of an instance."""

    event: str
    actor: str
    """The user or service that requested it, if there was a request."""
    actor_name: str = ""


class _EventData(msgspec.Struct, frozen=True, rename="camel"):
    event: str = ""
    uid: str = ""
    actor: str = ""
    actor_name: str = ""
    labels: Mapping[str, str] = {}


_decode = msgspec.json.Decoder(_EventData).decode


async def find_tombstone(log: Log, subject: str) -> Tombstone | None:
    """Return the tombstone of the last deleted instance of an id, if it is still stored."""
    kept = await log.read_back(TIMELINE, tombstone_subject(subject), limit=1)
    return _tombstone(kept.entries[0]) if kept.entries else await _latest(log, subject, _tombstone)


async def find_power_request(log: Log, subject: str, uid: str) -> PowerRequest | None:
    """Return the last request to start or stop the present server of this incarnation, if there was one."""
    return await _latest(log, subject, partial(_power_request, uid=uid), most_pages=_MAX_PAGES_OF_KNOWN)


async def find_deletion_cause(log: Log, subject: str, uid: str) -> DeletionCause | None:
    """Return the cause of the deletion of this incarnation of an instance, if it is still stored."""
    return await _latest(log, subject, partial(_deletion_cause, uid=uid), most_pages=_MAX_PAGES_OF_KNOWN)


async def _latest(
    log: Log, subject: str, read: Callable[[Entry], _T | None], *, most_pages: int = _MAX_PAGES
) -> _T | None:
    """Return the result of `read` for the latest entry that has one."""
    before = None
    for _ in range(most_pages):
        page = await log.read_back(TIMELINE, subject, before=before, limit=_PAGE)
        found = next((each for each in map(read, page.entries) if each is not None), None)
        if found is not None or page.next is None:
            return found
        before = page.next
        await yield_to_loop()
    return None


def _power_request(entry: Entry, uid: str) -> PowerRequest | None:
    data = _decode(entry.data)
    if data.event not in _POWER_EVENTS or data.uid != uid:
        return None
    is_stop = data.event == "Stopped"
    return PowerRequest(is_stop=is_stop, actor=data.actor, actor_name=data.actor_name, time=entry.time)


def _deletion_cause(entry: Entry, uid: str) -> DeletionCause | None:
    data = _decode(entry.data)
    if data.event not in _DELETION_EVENTS or data.uid != uid:
        return None
    return DeletionCause(data.event, data.actor, data.actor_name)


def _tombstone(entry: Entry) -> Tombstone | None:
    data = _decode(entry.data)
    organization, project = data.labels.get(ORGANIZATION), data.labels.get(PROJECT)
    if data.event != FINALIZER_REMOVED or organization is None or project is None:
        return None
    region = data.labels.get(REGION, "")
    return Tombstone(organization=organization, project=project, region=region, uid=data.uid, time=entry.time)


_GENERAL = {"", "Provisioning", "Deprovisioning", "Pending"}
"""Reasons of an instance beside which its server may have a more exact one."""
_OBSERVED_NOW = {"AmbiguousServer", "NetworkDeleting", "NetworkNotFound", "Paused"}
"""Reasons that are derived from the present servers and network instead of the stored condition."""
_FIRST_RECONCILE = timedelta(minutes=5)
"""The time within which a running controller reconciles a new instance."""
_OVERDUE = "This takes longer than expected. Contact the operator."


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationInput:
    """Everything that an explanation is derived from."""

    instance: ComputeInstance
    servers: Sequence[ServerRead] | None
    """The servers that name the instance; None if region does not respond."""
    network: NetworkRead | None
    """None if it does not exist, or if region does not respond."""
    operations: Sequence[Operation] = ()
    policy: Protection | None = None
    power: PowerRequest | None = None
    """The last request to start or stop the instance."""
    now: datetime

    @property
    def active_servers(self) -> Sequence[ServerRead]:
        """The servers that may belong to the instance, without those that are being deleted."""
        return classified(self.instance, self.servers or ()).candidates

    @property
    def server(self) -> ServerRead | None:
        """The server of the instance, if there is one and it is clear which one."""
        active = self.active_servers
        return active[0] if active and not is_ambiguous(self.instance, active) else None


def explain(known: ExplanationInput) -> ExplanationRead:
    waits = tuple(_waits(known))
    state, message = _state(known, waits)
    return ExplanationRead(
        state=state,
        messages=(
            message,
            *(line for wait in waits for line in messages_of(wait)),
            *notes(known.instance, known.power, known.policy),
        ),
        waiting_for=waits,
        observed_at=known.now,
        incarnation=known.instance.uid,
    )


def explain_deleted(tombstone: Tombstone, cause: DeletionCause | None, *, now: datetime) -> ExplanationRead:
    message = f"The instance was deleted at {format_time(tombstone.time)}: {_why_deleted(cause)}."
    return ExplanationRead(state="deleted", messages=(message,), observed_at=now, incarnation=tombstone.uid)


def _why_deleted(cause: DeletionCause | None) -> str:
    match cause:
        case DeletionCause("DeletionRequested"):
            return f"deletion was requested by {named_actor(cause.actor, cause.actor_name)}"
        case DeletionCause("NetworkDeleted"):
            return "its network was deleted"
        case DeletionCause("CreateRolledBack"):
            return "its create operation was rolled back"
        case _:
            return "the cause is not recorded"


def _state(known: ExplanationInput, waits: Sequence[WaitRead]) -> tuple[str, str]:
    """Return the state of an instance, for programs and for users."""
    instance = known.instance
    deleted = instance.metadata.deletion_timestamp
    available = find_condition(instance.status.conditions, AVAILABLE)
    if deleted is not None:
        return "deleting", f"The instance is being deleted. Deletion was requested at {format_time(deleted)}."
    if is_paused(instance):
        return "paused", "The instance is paused. Updates are stored and not applied."
    if available is None:
        return "pending", "The instance was requested, and the controller has not started yet."
    if is_behind(instance, instance.status.conditions):
        return "changing", "The instance was updated, and the controller has not started yet."
    if available.status != "True":
        is_progressing = bool(waits) and all(wait.resolved_by == "controller" for wait in waits)
        return "waiting", f"The instance is not provisioned{' yet' if is_progressing else ''}."
    return _available_state(instance, waits)


def _available_state(instance: ComputeInstance, waits: Sequence[WaitRead]) -> tuple[str, str]:
    if any(wait.reason == "ServerFailed" for wait in waits):
        return "failed", "The instance was provisioned, and its server failed."
    power = instance.status.power_state
    return "provisioned", f"The instance is provisioned{f' and {power.lower()}' if power and power != 'Error' else ''}."


def _waits(known: ExplanationInput) -> Iterator[WaitRead]:
    """Yield what an instance waits for, the most important first."""
    instance = known.instance
    yield from _operations(known)
    if is_paused(instance) and not instance.is_deleting:
        yield wait_of("Paused")
        return
    if known.servers is None:
        yield wait_of("RegionUnreachable")
    elif is_ambiguous(instance, known.active_servers):
        yield wait_of("AmbiguousServer", detail=_count(known.active_servers))
    if not instance.is_deleting:
        yield from _network(known)
    yield from _server(known)


def _count(servers: Sequence[ServerRead]) -> str:
    return f"there are {len(servers)}" if len(servers) > 1 else "the instance is linked to another one"


def _operations(known: ExplanationInput) -> Iterator[WaitRead]:
    for operation in known.operations:
        if not operation.is_open:
            continue
        status, spec = operation.status, operation.spec
        reason = "Stuck" if operation.phase == "stuck" else "OperationRunning"
        detail = f"{spec.saga}, requested by {named_actor(spec.actor, spec.actor_name)}, is {operation.phase}"
        if status.error is not None:
            detail += f" after this error: {status.error.message}"
        yield wait_of(reason, since=operation.metadata.creation_timestamp, detail=detail, next_try=status.next_attempt)


def _network(known: ExplanationInput) -> Iterator[WaitRead]:
    if known.servers is None:
        return
    if known.network is None:
        yield wait_of("NetworkNotFound", detail=f"its id is {network_of(known.instance)}")
    elif is_deleting(known.network):
        yield wait_of("NetworkDeleting", detail=f"its name is {known.network.metadata.name}")


def _server(known: ExplanationInput) -> Iterator[WaitRead]:
    """Yield the reason of the controller, or of the server if that is more exact; or what was observed since then."""
    instance, conditions = known.instance, known.instance.status.conditions
    reason, message, since = _reported(known)
    server = known.server
    if reason in _GENERAL and server is not None and server.metadata.provisioning_status != "provisioned":
        reason, message = reason_of(server) or reason, message_of(server) or message
        reason = "Changed" if reason == "Provisioning" and is_being_changed(instance, server) else reason
    if reason and reason not in _OBSERVED_NOW:
        yield _overdue(wait_of(reason, since=since, detail=message), find_condition(conditions, STALLED), known.now)
    elif not reason and known.servers == [] and instance.status.has_server:
        yield wait_of("ServerMissing")
    elif not reason and (failure := server_failure(instance)) is not None:
        yield wait_of("ServerFailed", since=failure.last_transition_time, detail=failure.message)


def _overdue(wait: WaitRead, stalled: Condition | None, now: datetime) -> WaitRead:
    """Return a wait; one that should have ended without an action is the operator's to resolve."""
    has_stalled = stalled is not None and stalled.status == "True"
    is_ignored = wait.reason == "Pending" and wait.since is not None and now - wait.since > _FIRST_RECONCILE
    if wait.resolved_by != "controller" or not (has_stalled or is_ignored):
        return wait
    return msgspec.structs.replace(wait, resolved_by="operator", remedy=_OVERDUE)


def _reported(known: ExplanationInput) -> tuple[str, str, datetime | None]:
    """Return reason, message and time of what the controller waits for; an empty reason if it waits for nothing."""
    instance = known.instance
    available = find_condition(instance.status.conditions, AVAILABLE)
    deleted = instance.metadata.deletion_timestamp
    if available is None or is_behind(instance, instance.status.conditions):
        return ("Deprovisioning" if deleted else "Pending"), "", deleted or _requested_at(instance)
    if available.status == "True" and deleted is None:
        return "", "", None
    reason = available.reason if available.status != "True" else "Deprovisioning"
    rebuild = current_rebuild(instance) if reason == "Rebuilding" else None
    message = available.message if rebuild is None else rebuild.message
    return reason, message, deleted or available.last_transition_time


def _requested_at(instance: ComputeInstance) -> datetime | None:
    """Return the time of the request for the present spec."""
    changed = instance.metadata.annotations.get(MODIFIED)
    try:
        return instance.metadata.creation_timestamp if changed is None else datetime.fromisoformat(changed)
    except ValueError:  # another program wrote the annotation
        return None
