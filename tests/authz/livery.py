"""The livery's API as it should be: every operation, with the right it asks for and where."""

from collections.abc import Mapping
from typing import Any

from tests.kit.proofs.authorization.callers import callers
from tests.kit.proofs.authorization.matrix import Rights, Row

_YARDS = "/api/v1/organizations/{organizationID}/projects/{projectID}/yards"
_YARD = _YARDS + "/{yardID}"
_REFERENCE = _YARD + "/references/{reference}"
_MOUNTS = "/api/v2/mounts"
_MOUNT = _MOUNTS + "/{mountID}"
_OPERATION = "/api/v1/operations/{operationID}"

_VERBS = ("create", "read", "update", "delete")
TENANT: Rights = frozenset(
    (endpoint, verb) for endpoint in ("livery:yards", "livery:yards/references", "livery:mounts") for verb in _VERBS
)
OPERATOR: Rights = frozenset({("livery:operations", "read"), ("livery:operations", "update")})
CALLERS = callers(TENANT, OPERATOR)


def _yard(values: Mapping[str, str]) -> Any:
    return {"metadata": {"name": values["name"]}, "spec": {"stalls": 10}}


def _new_mount(values: Mapping[str, str]) -> Any:
    return {"metadata": {"name": values["name"]}, "spec": {"yardId": values["yardID"], "breed": "mule"}}


def _mount(_values: Mapping[str, str]) -> Any:
    return {"metadata": {"name": "bella"}, "spec": {"breed": "mule", "paddock": "north"}}


def _reason(_values: Mapping[str, str]) -> Any:
    return {"reason": "the matrix says so"}


def _row(method: str, path: str, operation: str, endpoint: str, verb: str, **rest: Any) -> Row:
    right = (f"livery:{endpoint}", verb)
    return Row(operation=operation, method=method, path=path, right=right, **{"scope": "project"} | rest)


# fmt: off
ROWS = (
    _row("GET", _YARDS, "list_yards", "yards", "read", names="place"),
    _row("POST", _YARDS, "create_yard", "yards", "create", names="place", success=202, body=_yard),
    _row("GET", _YARD, "get_yard", "yards", "read", names="place", thing="yardID"),
    _row("PUT", _YARD, "update_yard", "yards", "update", names="place", thing="yardID", body=_yard),
    _row("DELETE", _YARD, "delete_yard", "yards", "delete", names="place", thing="yardID", success=202),
    _row("PUT", _REFERENCE, "add_yard_reference", "yards/references", "create", names="place", thing="yardID", success=201),  # noqa: E501  a row is read on one line
    _row("DELETE", _REFERENCE, "remove_yard_reference", "yards/references", "delete", names="place", thing="yardID", success=204),  # noqa: E501  a row is read on one line
    _row("GET", _MOUNTS, "list_mounts", "mounts", "read", names="filter"),
    _row("POST", _MOUNTS, "create_mount", "mounts", "create", names="object", thing="yardID", success=201, body=_new_mount),  # noqa: E501  a row is read on one line
    _row("GET", _MOUNT, "get_mount", "mounts", "read", names="object", thing="mountID"),
    _row("PUT", _MOUNT, "update_mount", "mounts", "update", names="object", thing="mountID", success=202, body=_mount),
    _row("DELETE", _MOUNT, "delete_mount", "mounts", "delete", names="object", thing="mountID", success=202),
    _row("POST", f"{_MOUNT}/brand", "brand_mount", "mounts", "update", names="object", thing="mountID"),
    _row("GET", f"{_MOUNT}/timeline", "read_mount_timeline", "mounts", "read", names="object", thing="mountID"),
    _row("GET", "/api/v1/operations", "list_operations", "operations", "read", scope="everywhere"),
    _row("POST", f"{_OPERATION}/retry", "retry_operation", "operations", "update", scope="everywhere", thing="operationID"),  # noqa: E501  a row is read on one line
    _row("POST", f"{_OPERATION}/abandon", "abandon_operation", "operations", "update", scope="everywhere", thing="operationID", body=_reason),  # noqa: E501  a row is read on one line
    Row(operation="read_version", method="GET", path="/api/version", scope="authenticated"),
)
# fmt: on
