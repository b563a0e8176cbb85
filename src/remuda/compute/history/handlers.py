"""The history room's handlers: each asks the service and renders what it says."""

import msgspec

from remuda.compute.history.schema import EventRead, ExplanationRead, OperationRead
from remuda.compute.history.service import History
from remuda.compute.names import InstancePath
from remuda.http.pagination import page_headers
from remuda.http.responses import Collection, Rendered
from remuda.http.routes import Call, ListQuery, Nothing, PageQuery
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
