"""How each operation of the livery is asked for in the same process: by a method of its port."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tests.example import wire
from tests.example.scoping import Filters
from tests.example.service import Livery
from tests.kit.proofs.authorization.transports import PortCall, Request

REFERENCE = "things.example.org/1"
"""The reference that all requests are about."""


def port_calls(livery: Livery) -> Mapping[str, PortCall]:
    """Return the call of each operation, by its name."""

    def yard(request: Request) -> tuple[str, str, str]:
        values = request.values
        return values["organizationID"], values["projectID"], values["yardID"]

    def project(request: Request) -> tuple[str, str]:
        return request.values["organizationID"], request.values["projectID"]

    def body(request: Request, kind: type[Any]) -> Any:
        return msgspec.convert(request.body, kind)

    def filters(request: Request) -> Filters:
        named = {name: tuple(value for each, value in request.query if each == name) for name, _ in request.query}
        return Filters(organizations=named.get("organizationID", ()), projects=named.get("projectID", ()))

    return {
        "list_yards": lambda context, it: livery.list_yards(context, *project(it)),
        "create_yard": lambda context, it: livery.create_yard(context, *project(it), body(it, wire.YardWrite)),
        "get_yard": lambda context, it: livery.get_yard(context, *yard(it)),
        "update_yard": lambda context, it: livery.update_yard(context, *yard(it), body(it, wire.YardWrite)),
        "delete_yard": lambda context, it: livery.delete_yard(context, *yard(it)),
        "add_yard_reference": lambda context, it: livery.add_reference(context, *yard(it), REFERENCE),
        "remove_yard_reference": lambda context, it: livery.remove_reference(context, *yard(it), REFERENCE),
        "list_mounts": lambda context, it: livery.list_mounts(context, filters(it)),
        "create_mount": lambda context, it: livery.create_mount(context, body(it, wire.MountCreate)),
        "get_mount": lambda context, it: livery.get_mount(context, it.values["mountID"]),
        "update_mount": lambda context, it: livery.update_mount(
            context, it.values["mountID"], body(it, wire.MountUpdate)
        ),
        "delete_mount": lambda context, it: livery.delete_mount(context, it.values["mountID"]),
        "brand_mount": lambda context, it: livery.brand_mount(context, it.values["mountID"]),
        "read_mount_timeline": lambda context, it: livery.timeline(context, it.values["mountID"]),
        "list_operations": lambda context, _: livery.list_operations(context),
        "retry_operation": lambda context, it: livery.retry_operation(context, it.values["operationID"]),
        "abandon_operation": lambda context, it: livery.abandon_operation(
            context, it.values["operationID"], it.body["reason"]
        ),
    }
