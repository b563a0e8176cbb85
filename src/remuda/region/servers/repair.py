"""Repair of a server that exists at the provider: retry of a failed create, and rebuild from an image.

Each step is stored before the provider is called, so that the controller continues from there after a crash. A rebuild
is sent with the number of requested rebuilds, which the provider reports with the image: the two tell whether it was
accepted, also if the image is the same as before.
"""

from msgspec.structs import replace

from remuda.kernel.errors import NotFound
from remuda.providers.contract.common import WrongState
from remuda.providers.contract.servers import CloudServer, CloudServers, CloudServerState
from remuda.reconcile.lifecycle import Outcome
from remuda.reconcile.results import RECHECK_S, Blocked, Done, ReconcileContext, Requeue
from remuda.region.catalogue.provider_registry import RegionProvider, require
from remuda.region.kinds.servers import Rebuild, ReplacementStatus, Server

_RETRYING = "the server did not start and is being created again"
_REBUILDING = "the server is being rebuilt"
_IDLE: frozenset[CloudServerState] = frozenset({"running", "stopped", "suspended", "failed"})


def with_status(server: Server, **changes: object) -> Server:
    return replace(server, status=replace(server.status, **changes))


async def retry_create(
    server: Server, found: CloudServer, servers: CloudServers, context: ReconcileContext, *, attempts: int
) -> Outcome[Server]:
    """Count a failed start once, and delete the server; when it is gone, it is created again."""
    status = server.status
    if status.provider_create_retrying:
        context.acted = True
        await servers.remove_server(found.handle)
        return Outcome(Requeue(RECHECK_S, message=_RETRYING), with_status(server, phase="Pending"))
    failures = min(status.provider_create_failures + 1, attempts)
    if failures >= attempts:
        failed = with_status(server, provider_create_failures=failures)
        is_new = status.provider_create_failures < failures
        events = [context.event(server, "AttemptsExhausted", fault=found.fault, failures=failures)] if is_new else []
        message = f"the server could not be started: {found.fault or 'the provider reports no cause'}"
        return Outcome(Blocked("Errored", message), failed, events)
    counted = with_status(server, provider_create_failures=failures, provider_create_retrying=True)
    event = context.event(server, "CreateFailed", fault=found.fault, failures=failures)
    return Outcome(Requeue(0, message=_RETRYING), counted, [event])


async def rebuild(
    server: Server, found: CloudServer, cloud: RegionProvider, context: ReconcileContext, *, user_data: bytes
) -> Outcome[Server]:
    """Rebuild a server with the desired image and this user data, step by step."""
    desired, marker = Rebuild(server.spec.image.id, "Initiated", server.spec.rebuilds), server.status.rebuild
    if marker is None or replace(marker, state="Initiated") != desired:
        if found.state == "rebuilding":
            return Outcome(Requeue(cloud.wait_s, message="another rebuild is still running"), server)
        return Outcome(Requeue(0, message=_REBUILDING), with_status(server, rebuild=desired))
    if marker.state == "Initiated":
        return await _start_rebuild(server, marker, found, cloud, context, user_data)
    return _check_rebuild(server, marker, found, cloud, context)


async def _start_rebuild(
    server: Server,
    initiated: Rebuild,
    found: CloudServer,
    cloud: RegionProvider,
    context: ReconcileContext,
    user_data: bytes,
) -> Outcome[Server]:
    target, marker = initiated.target_image_id, replace(initiated, state="Rebuilding")
    if _is_accepted(marker, found) and found.state != "failed":  # it was started, and that was not stored
        return _check_rebuild(with_status(server, rebuild=marker), marker, found, cloud, context)
    try:
        await require(cloud.provider.servers).rebuild_server(found.handle, target, user_data, marker.number)
    except WrongState:
        return Outcome(Requeue(RECHECK_S, message="the server cannot be rebuilt in its current state"), server)
    except NotFound:  # it has just disappeared, or the read was stale
        return Outcome(Requeue(RECHECK_S, message="the server disappeared from the provider"), server)
    started = with_status(server, rebuild=marker, phase="Building")
    event = context.event(server, "Rebuilding", image=target)
    return Outcome(Requeue(cloud.wait_s, message=_REBUILDING), started, [event])


def _is_accepted(marker: Rebuild, found: CloudServer) -> bool:
    """Return whether the provider reports the image and the number that a rebuild was sent with."""
    return (found.image, found.rebuilds) == (marker.target_image_id, marker.number)


def _check_rebuild(
    server: Server, marker: Rebuild, found: CloudServer, cloud: RegionProvider, context: ReconcileContext
) -> Outcome[Server]:
    """Check the result of a rebuild; confirm a failure by a second read, since the first one may be stale."""
    target, key = marker.target_image_id, (found.handle, marker.target_image_id, marker.number)
    if marker.state == "Rebuilding" and found.state not in _IDLE:
        cloud.absence.clear(key)
        return Outcome(Requeue(cloud.wait_s, message=_REBUILDING), server)
    if found.state != "failed" and _is_accepted(marker, found):
        cloud.absence.clear(key)
        done = with_status(server, rebuild=None, applied_image_id=target, applied_rebuilds=marker.number)
        return Outcome(Done(), done, [context.event(server, "Rebuilt", image=target)])
    if marker.state != "Failed" and not cloud.absence.record_missing(key):
        return Outcome(Requeue(cloud.absence.delay_s, message="confirming that the rebuild failed"), server)
    cloud.absence.clear(key)
    failed = with_status(server, rebuild=replace(marker, state="Failed"))
    return Outcome(Blocked("Errored", "the rebuild failed: rebuild it again or select another image"), failed)


def settled_result(found: CloudServer) -> Done | None:
    """Return Done if a server does not change by itself; one that failed after it ran is reported and left alone."""
    failed_later = found.state == "failed" and found.launched is not None
    return Done() if failed_later or found.state in {"running", "stopped", "suspended"} else None


def with_recreation_counted(updated: Server, before: Server, replacement: ReplacementStatus) -> Server:
    """Return a server with one more recreation counted, if its id at the provider changed without a request."""
    previous, status = before.status.provider_id, updated.status
    is_requested = replacement.completed < replacement.started or before.status.provider_create_retrying
    if is_requested or previous in {"", status.provider_id}:
        return updated
    return with_status(updated, recreations=status.recreations + 1)


def completed_replacement(replacement: ReplacementStatus) -> ReplacementStatus:
    return replace(replacement, completed=replacement.started, predecessors_deleted=0)
