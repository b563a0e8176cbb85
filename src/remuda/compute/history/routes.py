"""Routes of the history of an instance."""

from collections.abc import Callable
from functools import partial

from remuda.compute.history.schema import EventRead, ExplanationRead, OperationRead
from remuda.compute.history.service import READ, History
from remuda.compute.names import INSTANCE, InstancePath
from remuda.http.routes import AnyRoute, Route
from remuda.http.schema import ListQuery, PageQuery

_KEPT = "The list stays readable after the instance was deleted, for as long as it is kept."


_route: Callable[..., AnyRoute] = partial(
    Route, method="GET", scope="project", permission=READ, path_type=InstancePath, tag="instances", service=History
)

ROUTES = [
    _route(
        path=f"{INSTANCE}/timeline",
        name="list_instance_timeline",
        summary="List the events of an instance and their causes",
        description=f"The latest first, 100 unless `limit` is given. {_KEPT} Where several instances have had the same "
        "id, each event names the one that it belongs to.",
        query_type=PageQuery,
        response_type=list[EventRead],
        calls=History.list_timeline,
    ),
    _route(
        path=f"{INSTANCE}/operations",
        name="list_instance_operations",
        summary="List the operations on an instance and their results",
        description=f"Sorted by id, as every list. {_KEPT}",
        query_type=ListQuery,
        response_type=list[OperationRead],
        calls=History.list_operations,
    ),
    _route(
        path=f"{INSTANCE}/explain",
        name="explain_instance",
        summary="Explain the state of an instance: what it waits for, since when, and who can resolve that",
        response_type=ExplanationRead,
        calls=History.explain,
    ),
]
