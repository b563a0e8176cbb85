"""The history room's routes.

The history room's handlers: each asks the service and renders what it says.
"""

from typing import Any

import msgspec

from remuda.compute.history import schema as wire
from remuda.compute.history.schema import EventRead, ExplanationRead, OperationRead
from remuda.compute.history.service import READ, History
from remuda.compute.names import INSTANCE, InstancePath
from remuda.http.pagination import page_headers
from remuda.http.responses import Collection, Rendered
from remuda.http.routes import AnyRoute, Call, ListQuery, Nothing, PageQuery, Route
from remuda.operations.kinds import Operation


async def list_timeline(history: History, call: Call[InstancePath, PageQuery, Nothing]) -> Rendered[list[EventRead]]:
    page = await history.timeline(call.context, call.path.instance, call.query)
    return Rendered(msgspec.json.encode(page.events), headers=page_headers(call.query, page.next))


async def list_operations(
    history: History, call: Call[InstancePath, ListQuery, Nothing]
) -> Collection[Operation, list[OperationRead]]:
    return await history.list_operations(call.context, call.path.instance)


async def explain_instance(history: History, call: Call[InstancePath, Nothing, Nothing]) -> ExplanationRead:
    """Say why an instance is as it is."""
    return await history.explain(call.context, call.path.instance)


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
            handler=list_timeline,
        ),
        _route(
            path=f"{INSTANCE}/operations",
            name="list_instance_operations",
            summary="List what was done to an instance all or not at all, and what came of it",
            description=f"By id, as every list. {_KEPT}",
            query_type=ListQuery,
            answer_type=list[wire.OperationRead],
            handler=list_operations,
        ),
        _route(
            path=f"{INSTANCE}/explain",
            name="explain_instance",
            summary="Say why an instance is as it is: what it waits for, since when, and who can unblock it",
            answer_type=wire.ExplanationRead,
            handler=explain_instance,
        ),
    ]


def _route(**told: Any) -> AnyRoute:
    return Route(method="GET", scope="project", permission=READ, path_type=InstancePath, tag="instances", **told)
