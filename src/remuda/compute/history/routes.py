"""The history room's routes."""

from typing import Any

from remuda.compute.history import handlers
from remuda.compute.history import schema as wire
from remuda.compute.history.service import READ
from remuda.compute.names import INSTANCE, InstancePath
from remuda.http.routes import AnyRoute, ListQuery, PageQuery, Route

_KEPT = "It is there for as long as it is remembered, also after the instance has gone."


def routes() -> list[AnyRoute]:
    """Return all of them, with paths below where compute is mounted."""
    return [
        _route(
            path=f"{INSTANCE}/timeline",
            name="list_instance_timeline",
            summary="List what happened to an instance, and what caused it",
            description=f"The latest first, 100 unless `limit` says otherwise. {_KEPT} Of several instances that have "
            "had one id, each event says which it means.",
            query_type=PageQuery,
            answer_type=list[wire.EventRead],
            handler=handlers.list_timeline,
        ),
        _route(
            path=f"{INSTANCE}/operations",
            name="list_instance_operations",
            summary="List what was done to an instance all or not at all, and what came of it",
            description=f"By id, as every list. {_KEPT}",
            query_type=ListQuery,
            answer_type=list[wire.OperationRead],
            handler=handlers.list_operations,
        ),
        _route(
            path=f"{INSTANCE}/explain",
            name="explain_instance",
            summary="Say why an instance is as it is: what it waits for, since when, and who can unblock it",
            answer_type=wire.ExplanationRead,
            handler=handlers.explain_instance,
        ),
    ]


def _route(**told: Any) -> AnyRoute:
    return Route(method="GET", scope="project", permission=READ, path_type=InstancePath, tag="instances", **told)
