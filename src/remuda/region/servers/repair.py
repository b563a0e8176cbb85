"""What is done about a server that is there, but not as it should be: it never came up, or is to have another image.

Each step is written down before the provider is asked, so that whoever comes back after a crash goes on from there.
"""

from msgspec.structs import replace

from remuda.kernel.errors import NotFound
from remuda.providers.contract.common import WrongState
from remuda.providers.contract.servers import CloudServer, CloudServers, CloudServerState
from remuda.quota.reservation import RECHECK_S
from remuda.reconcile.lifecycle import Outcome
from remuda.reconcile.results import Blocked, Done, ReconcileContext, Requeue
from remuda.region.catalogue.provider_registry import RegionProvider, need
from remuda.region.kinds.servers import Rebuild, ReplacementStatus, Server

_QUIET: frozenset[CloudServerState] = frozenset({"running", "stopped", "suspended", "failed"})


def with_status(server: Server, **changes: object) -> Server:
    """Return a server with some of its status replaced."""
    return replace(server, status=replace(server.status, **changes))


async def retry_create(
    server: Server, found: CloudServer, servers: CloudServers, run: ReconcileContext, *, attempts: int
) -> Outcome[Server]:
    """Remove what could not be brought up, after that was counted; when it is gone, it is made again.

    Until then it may be seen, and is not counted a second time.
    """
    status = server.status
    if status.provider_create_retrying:
        run.acted = True
        await servers.remove_server(found.handle)
        cleared = with_status(server, phase="Pending")
        return Outcome(Requeue(RECHECK_S, message="it failed to come up and is made again"), cleared)
    failures = min(status.provider_create_failures + 1, attempts)
    if failures >= attempts:
        given_up = with_status(server, provider_create_failures=failures)
        is_new = status.provider_create_failures < failures
        entries = [run.event(server, "GivenUp", fault=found.fault, failures=failures)] if is_new else []
        why = f"it could not be brought up: {found.fault or 'nobody says why'}"
        return Outcome(Blocked("Errored", why), given_up, entries)
    counted = with_status(server, provider_create_failures=failures, provider_create_retrying=True)
    entry = run.event(server, "CreateFailed", fault=found.fault, failures=failures)
    return Outcome(Requeue(0, message="it failed to come up and is made again"), counted, [entry])


async def rebuild(
    server: Server, found: CloudServer, cloud: RegionProvider, run: ReconcileContext, *, user_data: bytes
) -> Outcome[Server]:
    """Put the wanted image in the place of what is there, and see it through. It starts with this user data."""
    target, marker = server.spec.image.id, server.status.rebuild
    if marker is None or marker.target_image_id != target:
        if found.state == "rebuilding":
            return Outcome(Requeue(cloud.wait_s, message="another rebuild has to end first"), server)
        armed = with_status(server, rebuild=Rebuild(target_image_id=target, state="Initiated"))
        return Outcome(Requeue(0, message="about to be rebuilt"), armed)
    if marker.state == "Initiated":
        return await _begin(server, found, cloud, run, user_data)
    return _follow(server, marker, found, cloud, run)


async def _begin(
    server: Server, found: CloudServer, cloud: RegionProvider, run: ReconcileContext, user_data: bytes
) -> Outcome[Server]:
    target = server.spec.image.id
    marker = Rebuild(target_image_id=target, state="Rebuilding")
    if found.image == target and found.state != "failed":  # it was begun, and that was not written down: not again
        return _follow(with_status(server, rebuild=marker), marker, found, cloud, run)
    try:
        await need(cloud.provider.servers).rebuild_server(found.handle, target, user_data)
    except WrongState:
        return Outcome(Requeue(RECHECK_S, message="it cannot be rebuilt in its current state"), server)
    except NotFound:  # it was there a moment ago, or a read was old
        return Outcome(Requeue(RECHECK_S, message="it is not where it was, looking for it once more"), server)
    begun = with_status(server, rebuild=marker, phase="Building")
    entry = run.event(server, "Rebuilding", image=target)
    return Outcome(Requeue(cloud.wait_s, message="being rebuilt"), begun, [entry])


def _follow(
    server: Server, marker: Rebuild, found: CloudServer, cloud: RegionProvider, run: ReconcileContext
) -> Outcome[Server]:
    """See what became of a rebuild. That it failed is seen twice: what was read may be from before it began."""
    target, sought = marker.target_image_id, (found.handle, marker.target_image_id)
    if marker.state == "Rebuilding" and found.state not in _QUIET:
        cloud.absences.clear(sought)
        return Outcome(Requeue(cloud.wait_s, message="being rebuilt"), server)
    if found.state != "failed" and found.image == target:
        cloud.absences.clear(sought)
        done = with_status(server, rebuild=None, applied_image_id=target)
        return Outcome(Done(), done, [run.event(server, "Rebuilt", image=target)])
    if marker.state != "Failed" and not cloud.absences.record_missing(sought):
        return Outcome(Requeue(cloud.absences.delay_s, message="looking what became of its rebuild"), server)
    cloud.absences.clear(sought)
    failed = with_status(server, rebuild=replace(marker, state="Failed"))
    return Outcome(Blocked("Errored", "the rebuild failed: select another image or replace the server"), failed)


def settled_result(found: CloudServer) -> Done | None:
    """Tell whether nothing more comes of a server by itself; one that broke after it ran is shown, and left alone."""
    has_broken = found.state == "failed" and found.launched is not None
    return Done() if has_broken or found.state in {"running", "stopped", "suspended"} else None


def with_recreation_counted(seen: Server, before: Server, turn: ReplacementStatus) -> Server:
    """Return a server with one more making counted, if another one is in its place that nobody had asked for.

    It follows from what is written down, so whoever made it need not have come to say so.
    """
    was, status = before.status.provider_id, seen.status
    is_meant = turn.done < turn.counter or before.status.provider_create_retrying
    if is_meant or was in {"", status.provider_id}:
        return seen
    return with_status(seen, remade=status.remade + 1)


def completed_replacement(turn: ReplacementStatus) -> ReplacementStatus:
    """Return a replacement that has taken place."""
    return replace(turn, done=turn.counter, cleared=0)
