"""The room's routes. Only platform administrators have the right to them.

The room's handlers: each asks the service and renders what it says.
"""

from remuda.http.responses import Collection, Shown
from remuda.http.routes import AnyRoute, Call, Nothing, Route
from remuda.region.kinds.orphans import Orphan
from remuda.region.names import permission
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


_RECOVERY = "/api/v2/recovery"
_OBJECT = f"{_RECOVERY}/{{kind}}/{{id}}"
_ORPHANS = f"{_RECOVERY}/orphans"
_ORPHAN = f"{_ORPHANS}/{{orphanID}}"
_TAG = "recovery"


def routes() -> list[AnyRoute]:
    """Return all of them."""
    return [*_objects(), *_orphans()]


def _objects() -> list[AnyRoute]:
    return [
        Route(
            method="POST",
            path=f"{_OBJECT}/retry",
            name="retry_object",
            summary="Have an object looked at now",
            scope="everywhere",
            permission=permission("regions", "update"),
            path_type=wire.RecoverablePath,
            success=202,
            tag=_TAG,
            description="Its controller tries again at once. A server that could not be brought up so many times, or "
            "whose rebuild failed, begins anew.",
            handler=retry,
        ),
        Route(
            method="POST",
            path=f"{_OBJECT}/abandon",
            name="abandon_object",
            summary="Let an object go without what it has at its provider",
            scope="everywhere",
            permission=permission("regions", "update"),
            path_type=wire.RecoverablePath,
            body_type=wire.AbandonWrite,
            success=202,
            tag=_TAG,
            description="For what is being deleted, and cannot be removed at its provider. What is left there is "
            "listed as an orphan, which nobody but an operator removes. Its address stays taken for as long.",
            handler=abandon,
        ),
    ]


def _orphans() -> list[AnyRoute]:
    return [
        Route(
            method="GET",
            path=_ORPHANS,
            name="list_orphans",
            summary="List what providers have of ours that is nobody's",
            scope="everywhere",
            permission=permission("regions", "update"),
            query_type=wire.OrphanQuery,
            answer_type=list[wire.OrphanRead],
            tag=_TAG,
            handler=list_orphans,
        ),
        Route(
            method="POST",
            path=f"{_ORPHAN}/adopt",
            name="adopt_orphan",
            summary="Make a server at a provider an object again",
            scope="everywhere",
            permission=permission("regions", "update"),
            path_type=wire.OrphanPath,
            body_type=wire.AdoptWrite,
            answer_type=ServerRead,
            success=201,
            tag=_TAG,
            description="For a server whose object was lost while its network was not. It keeps its port, addresses "
            "and disk. Its user data, tags and SSH injection are not known any more.",
            handler=adopt,
        ),
        Route(
            method="POST",
            path=f"{_ORPHAN}/forget",
            name="forget_orphan",
            summary="Drop the record of an orphan, or remove the orphan",
            scope="everywhere",
            permission=permission("regions", "update"),
            path_type=wire.OrphanPath,
            body_type=wire.ForgetWrite,
            success=202,
            tag=_TAG,
            description="An orphan that stays at its provider is found again. One that is removed is listed until it "
            "is gone.",
            handler=forget,
        ),
        Route(
            method="POST",
            path=f"{_RECOVERY}/removals/release",
            name="release_removals",
            summary="Let orphans be removed again",
            scope="everywhere",
            permission=permission("regions", "update"),
            success=202,
            tag=_TAG,
            description="The monitor removes orphans whose objects were deleted, and stops if there are too many.",
            handler=release,
        ),
    ]
