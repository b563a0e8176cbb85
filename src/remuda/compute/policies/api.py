"""The room's routes."""

from remuda.compute.policies import handlers
from remuda.compute.policies.service import MAY_READ, MAY_WRITE
from remuda.compute.policies.wire import PolicyPath, PolicyWire
from remuda.http.routes import AnyRoute, Route

_POLICY = "/api/v2/organizations/{organizationID}/projects/{projectID}/policy"


def routes() -> list[AnyRoute]:
    """Return all of them."""
    return [
        Route(
            method="GET",
            path=_POLICY,
            name="get_project_policy",
            summary="Read what a project demands of its instances",
            scope="project",
            permission=MAY_READ,
            path_type=PolicyPath,
            answer_type=PolicyWire,
            handler=handlers.get,
        ),
        Route(
            method="PUT",
            path=_POLICY,
            name="update_project_policy",
            summary="Set what a project demands of its instances",
            description="It holds at once, for every instance of the project. What is left out is not demanded.",
            scope="organization",
            permission=MAY_WRITE,
            path_type=PolicyPath,
            body_type=PolicyWire,
            answer_type=PolicyWire,
            is_conditional=True,
            handler=handlers.put,
        ),
    ]
