"""Reasons for which an instance is not provisioned: message, who can resolve it, and remedy.

A test reads the controllers of compute and of region's servers and fails on a reason that is missing here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from remuda.compute.history.schema import Resolver, WaitRead
from remuda.compute.history.timeline import named_actor
from remuda.compute.instances.convergence import POLL_S
from remuda.compute.instances.status import DRIFTED
from remuda.compute.kinds import ComputeInstance, Protection
from remuda.kernel.conditions import Condition, find_condition, find_true
from remuda.reconcile.ports import ControllerSettings
from remuda.reconcile.status import STALLED

_CONTROLLER = ControllerSettings()
_SOON_S = int(POLL_S)
_BLOCKED_S = round(_CONTROLLER.blocked_within_s[1])
_BACKED_OFF_S = int(_CONTROLLER.backoff.longest_s)
_UNKNOWN_S = 0


@dataclass(frozen=True, slots=True)
class Reason:
    """The texts of a reason, and the longest time between two attempts to resolve it."""

    text: str
    """A sentence without a full stop: the details follow."""
    resolver: Resolver
    remedy: str
    retry_within_s: int = _BLOCKED_S
    """Zero if nothing is retried, or if the time is not known."""


WAIT = "Wait."
"""Remedy of a reason that needs no action."""
_UNKNOWN = Reason("The controller reported an unknown reason", "operator", "Contact the operator.", _BACKED_OFF_S)

REASONS: Mapping[str, Reason] = {
    "Pending": Reason("The controller has not reconciled the instance yet", "controller", WAIT, _UNKNOWN_S),
    "Provisioning": Reason("The server is being created", "controller", WAIT, _SOON_S),
    "Changed": Reason("The server is being updated", "controller", WAIT, _SOON_S),
    "Deprovisioning": Reason("The resources of the instance are being deleted", "controller", WAIT, _SOON_S),
    "Rebuilding": Reason("The server is being rebuilt or replaced", "controller", WAIT, _SOON_S),
    "OperationRunning": Reason("An operation on the instance is running", "controller", WAIT),
    "DependencyNotReady": Reason(
        "A resource that the instance needs is not ready",
        "controller",
        "If this takes long, check its network and its security groups.",
    ),
    "QuotaExceeded": Reason(
        "The quota of the project or organization is exhausted",
        "user",
        "Delete unused resources or request more quota: for the project from an administrator of the organization, "
        "for the organization from the operator.",
    ),
    "NoCapacity": Reason(
        "The region has no capacity for this flavor",
        "user",
        "Wait, select another flavor, or create the instance in another region.",
        _BACKED_OFF_S,
    ),
    "AddressesExhausted": Reason(
        "The network has no free address",
        "user",
        "Delete unused resources on the network, or create the instance on another network.",
    ),
    "PublicAddressesExhausted": Reason(
        "There is no free public address",
        "operator",
        "Remove the public address from the spec, or ask the operator to add public addresses.",
        _BACKED_OFF_S,
    ),
    "AddressTaken": Reason(
        "Another resource has the address of the instance at the provider",
        "operator",
        "Ask the operator to remove that resource.",
        _BACKED_OFF_S,
    ),
    "ProviderRejected": Reason(
        "The provider rejects the server", "user", "Select a flavor and an image that are offered.", _BACKED_OFF_S
    ),
    "ProviderUnavailable": Reason(
        "The provider of the region does not respond", "operator", "If this lasts, contact the operator.", _BACKED_OFF_S
    ),
    "DependencyNotFound": Reason(
        "A resource that the spec names does not exist", "user", "Name an existing resource, or delete the instance."
    ),
    "Errored": Reason(
        "The instance failed and does not recover without a change",
        "user",
        "Rebuild the instance, which loses the data on the root disk, or select another image. If that does not help, "
        "contact the operator.",
        _BACKED_OFF_S,
    ),
    "LabelsDamaged": Reason(
        "Another program has changed the labels of the instance",
        "operator",
        "Ask the operator to restore the labels. Until then the instance is neither updated nor deleted.",
    ),
    "ServerFailed": Reason(
        "The server failed at the provider after it ran, and was not replaced",
        "user",
        "Rebuild the instance, which loses the data on the root disk. If the data is needed, contact the operator "
        "first.",
        _UNKNOWN_S,
    ),
    "InUse": Reason(
        "Another resource uses the instance", "user", "Delete that resource, or remove its reference to the instance."
    ),
    "HasChildren": Reason("Objects that the instance owns are being deleted first", "controller", WAIT),
    "MassDeletion": Reason(
        "Deletion is paused", "operator", "Ask the operator to find the cause and to resume deletion."
    ),
    "AmbiguousServer": Reason(
        "It is not clear which server belongs to the instance, so none is changed",
        "operator",
        "Ask the operator to delete the servers that do not belong to it.",
    ),
    "NetworkDeleting": Reason(
        "The network is being deleted, and the instance with it",
        "controller",
        "If the instance is needed, create it on another network.",
    ),
    "NetworkNotFound": Reason(
        "The network does not exist", "user", "Delete the instance, and create it on another network.", _UNKNOWN_S
    ),
    "ServerMissing": Reason(
        "The server disappeared from the provider",
        "controller",
        "When its absence is confirmed, it is created again, and the data on its root disk is lost.",
        _UNKNOWN_S,
    ),
    "ServerDeleting": Reason("Another server must be deleted before a new one is created", "controller", WAIT, _SOON_S),
    "NameTaken": Reason(
        "A server of another owner has this name on the network",
        "user",
        "Delete that server, or create the instance under another name.",
    ),
    "Paused": Reason(
        "An operator paused the instance",
        "operator",
        "Ask the operator to end the pause. Until then only a deletion is executed.",
        _UNKNOWN_S,
    ),
    "Stuck": Reason(
        "An operation on the instance failed and could not be undone",
        "operator",
        "Ask the operator to remove what prevents the undo of the operation.",
        _BACKED_OFF_S,
    ),
    "RegionUnreachable": Reason(
        "The region service does not respond, so the state of the server is unknown",
        "operator",
        "If this lasts, contact the operator.",
        _UNKNOWN_S,
    ),
}


_RESOLVERS: dict[Resolver, str] = {
    "controller": "No action is needed.",
    "user": "A user who may update the instance can resolve this.",
    "operator": "An operator of the platform can resolve this.",
}


def wait_of(
    reason: str, *, since: datetime | None = None, detail: str = "", next_try: datetime | None = None
) -> WaitRead:
    """Return the description of a wait; `detail` is the message of the condition or operation behind it."""
    known = REASONS.get(reason, _UNKNOWN)
    began = f" (since {format_time(since)})" if since is not None else ""
    detail = clause(detail)
    more = f": {detail}" if _without_article(detail) not in known.text.lower() else ""
    return WaitRead(
        reason=reason,
        message=f"{known.text}{began}{more}.",
        since=since,
        next_attempt=next_try,
        retry_interval=known.retry_within_s,
        resolved_by=known.resolver,
        remedy=known.remedy,
    )


def _without_article(text: str) -> str:
    return text.lower().removeprefix("its ").removeprefix("the ").removeprefix("a ")


def messages_of(wait: WaitRead) -> Iterator[str]:
    yield wait.message
    if wait.next_attempt is not None:
        yield f"The next attempt is at {format_time(wait.next_attempt)}."
    elif wait.resolved_by != "controller" and wait.retry_interval:
        yield f"The controller retries when something changes, and at least every {wait.retry_interval} seconds."
    yield _RESOLVERS[wait.resolved_by] if wait.remedy == WAIT else f"{_RESOLVERS[wait.resolved_by]} {wait.remedy}"


def format_time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def clause(text: str) -> str:
    """Return a sentence as a part of another."""
    return text.strip().rstrip(".")


@dataclass(frozen=True, slots=True)
class PowerRequest:
    """The last request to start or stop an instance."""

    is_stop: bool
    actor: str
    time: datetime
    actor_name: str = ""


def notes(instance: ComputeInstance, power: PowerRequest | None, policy: Protection | None) -> Iterator[str]:
    """Yield sentences about the state of an instance that block nothing: stopped, unhealthy, drifted, protected."""
    stalled = find_true(instance.status.conditions, STALLED)
    if stalled is not None:
        since = format_time(stalled.last_transition_time)
        yield f"The instance has made no progress since {since}."
    yield from _unhealthy(instance)
    yield from _drifted(instance)
    if instance.is_deleting:
        return
    if instance.status.power_state == "Stopped":
        yield _stopped(power)
    yield from _protected(instance.spec.protection, policy or Protection())


def server_failure(instance: ComputeInstance) -> Condition | None:
    """Return the condition that reports the failure of a server that ran before, or None."""
    healthy = find_condition(instance.status.conditions, "Healthy")
    has_failed = healthy is not None and (healthy.status, healthy.reason) == ("False", "Errored")
    return healthy if has_failed else None


def _unhealthy(instance: ComputeInstance) -> Iterator[str]:
    healthy = find_condition(instance.status.conditions, "Healthy")
    if healthy is not None and healthy.status == "False" and server_failure(instance) is None:
        detail = clause(healthy.message)
        since = format_time(healthy.last_transition_time)
        yield f"The instance is not healthy (since {since}){': ' if detail else ''}{detail}."


def _drifted(instance: ComputeInstance) -> Iterator[str]:
    drifted = find_true(instance.status.conditions, DRIFTED)
    if drifted is not None:
        yield (
            f"The server was changed at the provider (since {format_time(drifted.last_transition_time)}): "
            f"{clause(drifted.message)}. Remuda does not revert this. To replace the server, select another flavor or "
            "image; the data on its root disk is lost."
        )


def _stopped(power: PowerRequest | None) -> str:
    if power is not None and power.is_stop:
        by = f"{named_actor(power.actor, power.actor_name)} at {format_time(power.time)}"
        return f"The instance was stopped by {by}. Start it to run it again."
    return (
        "The instance was stopped without a request to Remuda: from inside, or at the provider. Start it to run it "
        "again."
    )


def _protected(own: Protection, policy: Protection) -> Iterator[str]:
    if own.deletion:
        yield "The instance is protected from deletion. Remove the protection before you delete it."
    elif policy.deletion:
        yield "The policy of the project protects the instance from deletion. Change the policy before you delete it."
    if own.plan or policy.plan:
        subject = "The instance" if own.plan else "The policy of the project"
        yield f"{subject} requires a plan: an update that destroys data has to carry the hash of its plan."
