"""The room's handlers: each asks the service and renders what it says."""

import msgspec

from remuda.compute.policies.service import Policies, PolicyFound
from remuda.compute.policies.wire import PolicyPath, PolicyWire
from remuda.http.responses import Rendered
from remuda.http.routes import Call, Nothing


async def get(policies: Policies, call: Call[PolicyPath, Nothing, Nothing]) -> Rendered[PolicyWire]:
    """Read a project's policy."""
    return _rendered(await policies.get(call.context, call.path.organization, call.path.project))


async def put(policies: Policies, call: Call[PolicyPath, Nothing, PolicyWire]) -> Rendered[PolicyWire]:
    """Set a project's policy."""
    return _rendered(await policies.put(call.context, call.path.organization, call.path.project, call.body))


def _rendered(found: PolicyFound) -> Rendered[PolicyWire]:
    return Rendered(msgspec.json.encode(found.policy), etag=found.etag)
