"""Lends real things to generated requests of region, so that they are not all about what is not there."""

from collections.abc import Mapping
from typing import Any

from schemathesis import Case, HookContext, Response

from tests.fuzz.lender import Lender
from tests.fuzz.region_target import LIKE_NORTH, LOST, STUCK, RegionTarget
from tests.kit.region.environment import NORTH, STANDARD, UBUNTU

_MADE = {
    "create_network": "networkID",
    "create_security_group": "securityGroupID",
    "create_ssh_certificate_authority": "sshCertificateAuthorityID",
    "create_load_balancer": "loadBalancerID",
    "create_file_storage": "filestorageID",
    "create_server": "serverID",
    "import_image": "imageID",
    "create_platform_region": "regionID",
}
_CHANGED: Mapping[str, Mapping[str, Any]] = {
    "update_network": {"dnsNameservers": []},
    "update_security_group": {"rules": []},
    "update_load_balancer": {"listeners": [{"name": "http", "protocol": "tcp", "port": 80, "pool": {"members": []}}]},
    "update_file_storage": {"sizeGiB": 1, "storageType": {"NFS": {"rootSquash": True}}},
    "update_server": {"flavorId": STANDARD, "imageId": UBUNTU},
    "update_platform_region": LIKE_NORTH,
}
_NAMED = {"update_server": ("serverID", "servers"), "update_platform_region": ("regionID", "platform/regions")}
"""What keeps its name when it is updated: what is lent, and where it is read."""
_LEFT_OUT = frozenset(
    {
        "attachments",
        "gpu",
        "infrastructureRef",
        "networking",
        "openstack",
        "organizationIDs",
        "reservations",
        "routes",
        "snapshotPolicies",
        "softwareVersions",
        "sshCertificateAuthorityId",
        "sshInjection",
        "userData",
        "vipAddress",
    }
)
"""What would have to fit something else that is made up, too."""
_NEEDS = {
    "start_server": "Stopped",
    "stop_server": "Running",
    "soft_reboot_server": "Running",
    "hard_reboot_server": "Running",
    "open_server_console": "Running",
    "snapshot_server": "Running",
}
"""How a server has to be before something can be done to it."""
_USED_UP = frozenset(
    {
        "delete_network",
        "delete_security_group",
        "delete_ssh_certificate_authority",
        "delete_load_balancer",
        "delete_file_storage",
        "delete_server",
        "delete_image",
        "delete_platform_region",
        "replace_server",
    }
)
"""What others cannot use, at least for a while."""
_RECOVERED = {
    "retry_object": ("networks", "networkID"),
    "abandon_object": ("securitygroups", STUCK),
    "adopt_orphan": ("", LOST),
    "forget_orphan": ("", "orphanID"),
}
"""What operators are lent to help."""


class RegionLending(Lender):
    """A hook that is called before each request, and one after it."""

    def __init__(self, target: RegionTarget) -> None:
        super().__init__(target, target.setup.ids)
        self._target, self._setup = target, target.setup

    def lent(self, case: Case[Any], name: str) -> str:
        """Return something real for a place in a path."""
        operation = _operation(case)
        sort, lent = _RECOVERED.get(operation, ("", ""))
        fixed = {"organizationID": self._setup.organization, "regionID": NORTH, "kind": sort}
        if operation.endswith("_platform_region"):  # what the configuration defines is not changed there
            del fixed["regionID"]
        if name in fixed:
            return fixed[name]
        if lent:
            return self.thing(lent, keep=operation != "forget_orphan")
        found = self.thing(name, keep=operation not in _USED_UP)
        wanted = _NEEDS.get(operation)
        if wanted is not None:
            self._target.bring(found, wanted)
        return found

    def seed(self, case: Case[Any], made_up: dict[str, Any]) -> str:
        """Add how long the body is: many requests differ in that alone, and it does not depend on our ids."""
        return repr((case.operation.label, super().seed(case, made_up), len(repr(case.body)), len(repr(case.query))))

    def key_seed(self, case: Case[Any], key: str) -> str:
        """Add the same to a key."""
        return self.seed(case, {"key": key})

    def after_call(self, context: HookContext, case: Case[Any], response: Response) -> None:
        """Stop lending a server that has its object again."""
        super().after_call(context, case, response)
        if _operation(case) == "adopt_orphan" and response.status_code < 300:
            self.forget(LOST)

    def body(self, case: Case[Any], body: dict[str, Any]) -> dict[str, Any]:
        """Return a body that names what there is."""
        operation, spec = _operation(case), body.get("spec")
        if operation == "adopt_orphan":
            return {"name": self._target.lost.get(self.standing(LOST), "nobody"), "networkId": self._setup.network}
        if operation == "replace_server":
            return {**_fitting(body), "flavorId": STANDARD, "imageId": UBUNTU}
        if not isinstance(spec, dict):
            return body
        if operation in _MADE:
            return {**body, "spec": {**_fitting(spec), **self._target.new(_MADE[operation])["spec"]}}
        if operation in _NAMED and isinstance(body.get("metadata"), dict):
            body = {**body, "metadata": {**body["metadata"], "name": self._name_of(*_NAMED[operation])}}
        return {**body, "spec": {**_fitting(spec), **_CHANGED.get(operation, {})}}

    def query(self, case: Case[Any]) -> None:
        """Name the revision that there is."""
        if case.query and "revision" in case.query:
            match self.about(case).json():
                case {"status": {"revision": str(revision)}}:
                    case.query["revision"] = revision

    def _name_of(self, thing: str, path: str) -> str:
        read = self._target.call("GET", f"/api/v2/{path}/{self.standing(thing)}")
        return str(read.json()["metadata"]["name"]) if read.status_code == 200 else "nobody"


def _operation(case: Case[Any]) -> str:
    return str(case.operation.definition.raw["operationId"])


def _fitting(made_up: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in made_up.items() if name not in _LEFT_OUT}
