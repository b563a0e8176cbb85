"""Routes of suspensions."""

from remuda.http.routes import AnyRoute, Route
from remuda.http.schema import ListQuery
from remuda.identity.suspensions.schema import SuspensionPath, SuspensionRead, SuspensionWrite
from remuda.identity.suspensions.service import READ, UPDATE, Suspensions

PATH = "/api/v1/suspensions"

ROUTES: list[AnyRoute] = [
    Route(
        method="GET",
        path=PATH,
        name="list_suspensions",
        summary="List or watch the suspended persons",
        scope="everywhere",
        permission=READ,
        query_type=ListQuery,
        response_type=list[SuspensionRead],
        service=Suspensions,
        calls=Suspensions.list,
    ),
    Route(
        method="POST",
        path=PATH,
        name="create_suspension",
        summary="Suspend a person everywhere and end all sessions",
        description="From now on nothing that acts as the person is accepted: logins, tokens, browsers, watches and "
        "tokens of external issuers, in every organization. Memberships stay as they are. A repeated request changes "
        "nothing, but ends sessions that are left.",
        scope="everywhere",
        permission=UPDATE,
        body_type=SuspensionWrite,
        response_type=SuspensionRead,
        success=201,
        service=Suspensions,
        calls=Suspensions.create,
    ),
    Route(
        method="DELETE",
        path=f"{PATH}/{{suspensionID}}",
        name="delete_suspension",
        summary="Resume a suspended person",
        description="The person can log in again. Earlier sessions stay ended.",
        scope="everywhere",
        permission=UPDATE,
        path_type=SuspensionPath,
        success=204,
        service=Suspensions,
        calls=Suspensions.delete,
    ),
]
