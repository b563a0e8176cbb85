"""Lends real things to generated requests of compute, so that they are not all about what is not there."""

from typing import Any

from schemathesis import Case

from tests.fuzz.compute_target import GONE, INSTANCE, STOPPED, ComputeTarget
from tests.fuzz.lender import Lender
from tests.kit.compute.environment import JAMMY
from tests.kit.region.environment import NORTH, STANDARD

_LEFT_OUT = frozenset({"networking", "sshCertificateAuthorityId", "userData"})
"""What would have to fit something else that is made up, too."""
_NEED_RUNNING = frozenset({"stop_instance", "reboot_instance", "open_instance_console", "snapshot_instance"})
_OF_THE_PAST = frozenset({"list_instance_timeline", "list_instance_operations", "explain_instance"})
_ODD = 3


class ComputeLending(Lender):
    """A hook that is called before each request, and one after it."""

    def __init__(self, target: ComputeTarget) -> None:
        super().__init__(target, target.setup.ids)
        self._target, self._setup = target, target.setup

    def lent(self, case: Case[Any], name: str) -> str:
        """Return something real for a place in a path."""
        fixed = {
            "organizationID": self._setup.organization,
            "projectID": self._setup.policed,
            "regionID": NORTH,
        }
        if name in fixed:
            return fixed[name]
        operation = _operation(case)
        if operation == "start_instance":
            return self.thing(STOPPED, keep=False)
        if operation in _OF_THE_PAST and len(repr(case.query)) % _ODD == 0:
            return self.thing(GONE, keep=True)
        found = self.thing(INSTANCE, keep=operation != "delete_instance")
        if operation in _NEED_RUNNING:
            self._target.bring_up(found)
        return found

    def _path(self, case: Case[Any], values: dict[str, Any]) -> dict[str, Any]:
        """Keep the policy of the project with the instances as it is: it could protect them from what we delete."""
        path = super()._path(case, values)
        if _operation(case) == "update_project_policy" and path.get("projectID") == self._setup.project:
            path["projectID"] = self._setup.policed
        return path

    def seed(self, case: Case[Any], made_up: dict[str, Any]) -> str:
        """Add how long the body is: many requests differ in that alone, and it does not depend on our ids."""
        return repr((case.operation.label, super().seed(case, made_up), len(repr(case.body)), len(repr(case.query))))

    def key_seed(self, case: Case[Any], key: str) -> str:
        """Add the same to a key."""
        return self.seed(case, {"key": key})

    def query(self, case: Case[Any]) -> None:
        """Take away most plans that nobody has made."""
        plan = (case.query or {}).get("plan")
        if plan is not None and len(repr(case.body)) % _ODD:
            case.query = {name: value for name, value in case.query.items() if name != "plan"}

    def body(self, case: Case[Any], body: dict[str, Any]) -> dict[str, Any]:
        """Return a body that names what there is."""
        operation, spec = _operation(case), body.get("spec")
        if not isinstance(spec, dict):
            return body
        fitting = {name: value for name, value in spec.items() if name not in _LEFT_OUT}
        if operation == "create_instance":
            return {**body, "spec": {**fitting, **self._target.new()["spec"]}}
        if operation == "update_instance" and isinstance(body.get("metadata"), dict):
            fitting.pop("protection", None)  # what is lent is for others, too
            name = self._target.names.get(self.standing(INSTANCE), "nobody")
            spec = {**fitting, "flavorId": STANDARD, "imageId": JAMMY}
            return {**body, "metadata": {**body["metadata"], "name": name}, "spec": spec}
        return body


def _operation(case: Case[Any]) -> str:
    return str(case.operation.definition.raw["operationId"])
