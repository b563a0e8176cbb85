"""Compute's matrix: every operation, as the reference (section 2) and our issue say it should be, written by hand.

It imports nothing from the code that it validates. Some operations have several rows: a change that is only planned, one
that is not the plan that was agreed to, and a deletion of what is protected are asked for in the same way.

Where we differ from the reference, on purpose:

* To start, stop, reboot or snapshot an instance, to open its console or to have its private key takes the right to
  update it: to read is not to act.
* The past of an instance that is gone is for who might have read it; for everybody else it never was.
* Who may read the instances of a project may know its policy; to set it is for who may change projects.
* What has stopped because too much would go is released by those who run the platform.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.kit.proofs.authorization.matrix import Right, Row

Values = Mapping[str, str]
Sort = Literal["open", "organization", "filter", "create", "object", "past", "policy", "everywhere"]
"""Whose right counts: nobody's, one in the organization of the path, one for each filter, one in the place that the
body names, one in that of the instance, the same also if it is gone, one in the project of the path, or one everywhere."""
State = Literal["running", "stopped", "protected"]
"""How the instance is that a request is about."""

STANDARD = "11111111-1111-1111-1111-111111111111"
DEBIAN = "b1f0c0de-0003-4000-8000-000000000003"
ANOTHER_PLAN = "0" * 32
READ: Right = ("compute:instances", "read")
PROTECTED = "The instance is protected from deletion"


@dataclass(frozen=True, kw_only=True)
class ComputeRow(Row):
    """One operation, or one way to ask for it."""

    sort: Sort
    label: str
    first: Right | None = None
    """What is asked for before the right that the operation is named for."""
    state: State = "running"
    query: Sequence[tuple[str, str]] = ()
    declares: int = 0
    """The status that the route promises, where those who may ask for it here come to another."""


def _instance(values: Values) -> Any:
    where = {"organizationId": values["organizationID"], "projectId": values["projectID"]}
    spec = {**where, "networkId": values["networkID"], "flavorId": STANDARD, "imageId": DEBIAN}
    return {"metadata": {"name": values["name"]}, "spec": spec}


def _change(values: Values) -> Any:
    tags = [{"name": "changed", "value": values["name"]}]
    return {"metadata": {"name": values["kept"], "tags": tags}, "spec": {"flavorId": STANDARD, "imageId": DEBIAN}}


def _snapshot(values: Values) -> Any:
    return {"metadata": {"name": values["name"]}}


def _policy(values: Values) -> Any:
    return {"plan": int(values["name"][1:]) % 2 == 0}


_SCOPES = {"open": "authenticated", "organization": "organization", "everywhere": "everywhere"}


def _row(method: str, path: str, operation: str, sort: Sort, held: str, success: int = 200, **rest: Any) -> ComputeRow:
    endpoint, verb = held.split()
    return ComputeRow(
        **{
            "operation": operation,
            "label": operation,
            "method": method,
            "path": path,
            "sort": sort,
            "right": (endpoint, verb),
            "success": success,
            "scope": _SCOPES.get(sort, "project"),
            "names": "filter" if sort == "filter" else "object",
            **rest,
        }
    )


def _open(path: str, operation: str, scope: str = "authenticated") -> ComputeRow:
    return ComputeRow(operation=operation, label=operation, method="GET", path=path, sort="open", scope=scope)  # type: ignore[arg-type]  # it is one of them


_REGIONS = "/api/v1/organizations/{organizationID}/regions"
_REGION = _REGIONS + "/{regionID}"
_INSTANCES = "/api/v2/instances"
_INSTANCE = _INSTANCES + "/{instanceID}"
_POLICY = "/api/v2/organizations/{organizationID}/projects/{projectID}/policy"


def _on(method: str, verb: str, operation: str, held: str, success: int, **rest: Any) -> ComputeRow:
    path = f"{_INSTANCE}/{verb}".rstrip("/")
    named = f"compute:instances {held}"
    return _row(method, path, operation, "object", named, success, first=READ, thing="instanceID", **rest)


def _past(verb: str, operation: str) -> ComputeRow:
    return _row("GET", f"{_INSTANCE}/{verb}", operation, "past", "compute:instances read", thing="instanceID")


# fmt: off
# ruff: noqa: E501  a table is read line by line
CATALOGUE = (
    _row("GET", _REGIONS, "list_regions", "organization", "compute:regions read"),
    _row("GET", f"{_REGION}/flavors", "list_flavors", "organization", "compute:flavors read"),
    _row("GET", f"{_REGION}/images", "list_images", "organization", "compute:images read"),
    _open("/api/version", "read_version"),
    _open("/.well-known/openid-protected-resource", "read_protected_resource", scope="public"),
)
INSTANCES = (
    _row("GET", _INSTANCES, "list_instances", "filter", "compute:instances read"),
    _row("POST", _INSTANCES, "create_instance", "create", "compute:instances create", 201, thing="networkID", body=_instance),
    _on("GET", "", "get_instance", "read", 200),
    _on("DELETE", "", "delete_instance", "delete", 202),
    _on("DELETE", "", "delete_instance", "delete", 403, declares=202, label="delete_protected_instance", state="protected"),
)
CHANGES = (
    _on("PUT", "", "update_instance", "update", 202, body=_change),
    _on("PUT", "", "update_instance", "update", 200, declares=202, label="plan_update", query=(("dryRun", "true"),), body=_change),
    _on("PUT", "", "update_instance", "update", 409, declares=202, label="update_by_another_plan", query=(("plan", ANOTHER_PLAN),), body=_change),
    _on("POST", "rebuild", "rebuild_instance", "update", 202),
    _on("POST", "rebuild", "rebuild_instance", "update", 200, declares=202, label="plan_rebuild", query=(("dryRun", "true"),)),
    _on("POST", "rebuild", "rebuild_instance", "update", 409, declares=202, label="rebuild_by_another_plan", query=(("plan", ANOTHER_PLAN),)),
)
POWER = (
    _on("POST", "start", "start_instance", "update", 202, state="stopped"),
    _on("POST", "stop", "stop_instance", "update", 202),
    _on("POST", "reboot", "reboot_instance", "update", 202),
    _on("POST", "reboot", "reboot_instance", "update", 202, label="hard_reboot_instance", query=(("hard", "true"),)),
    _on("POST", "snapshot", "snapshot_instance", "update", 201, body=_snapshot),
)
ACCESS = (
    _on("GET", "sshkey", "get_instance_ssh_key", "update", 200),
    _on("GET", "consolesession", "open_instance_console", "update", 200),
    _on("GET", "consoleoutput", "get_instance_console_output", "read", 200),
)
HISTORY = (
    _past("timeline", "list_instance_timeline"),
    _past("operations", "list_instance_operations"),
    _past("explain", "explain_instance"),
)
POLICIES = (
    _row("GET", _POLICY, "get_project_policy", "policy", "compute:instances read"),
    _row("PUT", _POLICY, "update_project_policy", "policy", "identity:projects update", scope="organization", body=_policy),
)
RECOVERY = (
    _row("POST", "/api/v2/recovery/deletions/resume", "resume_deletions", "everywhere", "region:regions update", 202),
)
# fmt: on

RESOURCES = {
    "catalogue": CATALOGUE,
    "instances": INSTANCES,
    "changes": CHANGES,
    "power": POWER,
    "access": ACCESS,
    "history": HISTORY,
    "policies": POLICIES,
    "recovery": RECOVERY,
}
ROWS = tuple(row for rows in RESOURCES.values() for row in rows)
