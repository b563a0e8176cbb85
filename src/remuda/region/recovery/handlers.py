"""The room's handlers: each asks the service and renders what it says."""

from remuda.http.responses import Collection, Shown
from remuda.http.routes import Call, Nothing
from remuda.region.kinds.orphans import Orphan
from remuda.region.recovery import schema as wire
from remuda.region.recovery.service import Recovery
from remuda.region.servers.rules import SERVER_VIEW
from remuda.region.servers.schema import ServerRead


async def list_orphans(
    recovery: Recovery, call: Call[Nothing, wire.OrphanQuery, Nothing]
) -> Collection[Orphan, list[wire.OrphanRead]]:
    return await recovery.orphans(call.context, call.query)


async def retry(recovery: Recovery, call: Call[wire.RecoverablePath, Nothing, Nothing]) -> None:
    """Have an object looked at now."""
    await recovery.retry(call.context, call.path.sort, call.path.id)


async def abandon(recovery: Recovery, call: Call[wire.RecoverablePath, Nothing, wire.AbandonWrite]) -> None:
    """Let an object go without what it has at its provider."""
    await recovery.abandon(call.context, call.path.sort, call.path.id, call.body.reason)


async def adopt(recovery: Recovery, call: Call[wire.OrphanPath, Nothing, wire.AdoptWrite]) -> Shown[ServerRead]:
    """Make a server at a provider an object again."""
    return Shown(SERVER_VIEW, await recovery.adopt(call.context, call.path.orphan, call.body))


async def forget(recovery: Recovery, call: Call[wire.OrphanPath, Nothing, wire.ForgetWrite]) -> None:
    """Drop the record of an orphan, or remove the orphan."""
    await recovery.forget(call.context, call.path.orphan, remove=call.body.remove)


async def release(recovery: Recovery, call: Call[Nothing, Nothing, Nothing]) -> None:
    """Let the monitor remove orphans again."""
    await recovery.release(call.context)
