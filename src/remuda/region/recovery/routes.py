"""Routes of recovery, which only platform administrators have permission to call."""

from collections.abc import Callable
from functools import partial

from remuda.http.routes import AnyRoute, Route
from remuda.region.names import permission
from remuda.region.recovery import schema
from remuda.region.recovery.service import Recovery
from remuda.region.servers.rules import SERVER_VIEW
from remuda.region.servers.schema import ServerRead

_RECOVERY = "/api/v2/recovery"
_OBJECT = f"{_RECOVERY}/{{kind}}/{{id}}"
_ORPHANS = f"{_RECOVERY}/orphans"
_ORPHAN = f"{_ORPHANS}/{{orphanID}}"

_route: Callable[..., AnyRoute] = partial(
    Route, scope="everywhere", permission=permission("regions", "update"), tag="recovery", service=Recovery
)

ROUTES: list[AnyRoute] = [
    _route(
        method="POST",
        path=f"{_OBJECT}/retry",
        name="retry_object",
        summary="Reconcile an object now",
        description="The controller tries again at once. A server whose create attempts are used up, or "
        "whose rebuild failed, starts over.",
        path_type=schema.RecoverablePath,
        success=202,
        calls=Recovery.retry,
    ),
    _route(
        method="POST",
        path=f"{_OBJECT}/abandon",
        name="abandon_object",
        summary="Delete an object without its resources at the provider",
        description="For an object that is being deleted and whose resources cannot be deleted at the provider. They "
        "are listed as orphans, which only an operator deletes. Until then the address of the object stays in use.",
        path_type=schema.RecoverablePath,
        body_type=schema.AbandonWrite,
        success=202,
        calls=Recovery.abandon,
    ),
    _route(
        method="GET",
        path=_ORPHANS,
        name="list_orphans",
        summary="List the orphans: resources at providers that belong to no object",
        query_type=schema.OrphanQuery,
        response_type=list[schema.OrphanRead],
        calls=Recovery.orphans,
    ),
    _route(
        method="POST",
        path=f"{_ORPHAN}/adopt",
        name="adopt_orphan",
        summary="Create the object of a server that exists at a provider",
        description="For a server whose object was lost while its network was not. The server keeps its port, "
        "addresses and disk. Its user data, tags and SSH injection are not restored.",
        path_type=schema.OrphanPath,
        body_type=schema.AdoptWrite,
        response_type=ServerRead,
        success=201,
        view=SERVER_VIEW,
        calls=Recovery.adopt,
    ),
    _route(
        method="POST",
        path=f"{_ORPHAN}/forget",
        name="forget_orphan",
        summary="Delete the record of an orphan, or the orphan itself",
        description="If only the record is deleted, the orphan is found and listed again. An orphan that is deleted is "
        "listed until it is gone from the provider.",
        path_type=schema.OrphanPath,
        body_type=schema.ForgetWrite,
        success=202,
        calls=Recovery.forget,
    ),
    _route(
        method="POST",
        path=f"{_RECOVERY}/deletions/resume",
        name="resume_deletions",
        summary="Resume the deletion of orphans",
        description="The monitor deletes orphans whose objects were deleted, and stops if there are too many.",
        success=202,
        calls=Recovery.resume_deletions,
    ),
]
