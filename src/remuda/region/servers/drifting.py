"""Drift: a server at the provider that has become another than it was made, without our doing.

It is said in the condition `Drifted`, and nothing comes of it: whoever resized a server by hand had a reason. While we
put something else there ourselves, by a replacement or a rebuild, nothing is said.
"""

from datetime import datetime

from msgspec.structs import replace

from remuda.kernel.conditions import Condition, find_condition, set_condition
from remuda.providers.contract.servers import Server as CloudServer
from remuda.region.kinds.server_parts import Replacement
from remuda.region.kinds.servers import Server
from remuda.region.kinds.standing import DRIFTED


def with_drift(server: Server, found: CloudServer, now: datetime) -> Server:
    """Return a server that says how it has drifted, or that it no longer has; one that never did says nothing."""
    if _is_being_changed(server, found):
        return server
    differences = _differences(server, found)
    if not differences and find_condition(server.status.conditions, DRIFTED) is None:
        return server
    condition = Condition(
        type=DRIFTED,
        status="True" if differences else "False",
        reason="ChangedAtProvider" if differences else "AsMade",
        message=", ".join(differences) or "it is what it was made",
        last_transition_time=now.replace(microsecond=0),
    )
    conditions = set_condition(server.status.conditions, condition)
    return replace(server, status=replace(server.status, conditions=conditions))


def _is_being_changed(server: Server, found: CloudServer) -> bool:
    status = server.status
    turn = status.replacement or Replacement()
    is_replaced = not turn.done == turn.counter == server.spec.replacement
    is_rebuilt = status.rebuild is not None or status.applied_image_id not in {"", server.spec.image.id}
    return is_replaced or is_rebuilt or found.state == "rebuilding"


def _differences(server: Server, found: CloudServer) -> list[str]:
    differences, made_of = [], server.status.applied_image_id
    if found.flavor != server.spec.flavor_id:
        differences.append(f"its flavor is {found.flavor}")
    if made_of and found.image != made_of:
        differences.append(f"its image is {found.image}")
    return differences
