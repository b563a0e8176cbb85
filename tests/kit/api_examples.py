"""The examples of the merged document, sent to a running API with the ids of objects that there are."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from remuda.app import tables
from remuda.http.merged_document import merged_document
from tests.kit.processes.program import Running, remuda, running

API: Mapping[str, Any] = merged_document(tables().values(), version="1")
EXAMPLES = {
    operation["operationId"]: (method.upper(), path, content.get("example"))
    for path, item in API["paths"].items()
    for method, operation in item.items()
    for content in operation.get("requestBody", {}).get("content", {}).values()
}
EXAMPLE_IDS: Mapping[str, str] = {
    "c1d5e9f3-7a2b-4c6d-8e0f-1a2b3c4d5e01": "organizationID",
    "d2e6f0a4-8b3c-4d7e-9f1a-2b3c4d5e6f01": "projectID",
    "cbe661fd-c828-5eea-82c1-963eac99c9d5": "regionID",
    "a7c3e5f1-2b4d-4e6f-8a9b-0c1d2e3f4a01": "networkID",
    "a1f0c0de-0001-4000-8000-000000000001": "flavorID",
    "b1f0c0de-0006-4000-8000-000000000006": "imageID",
    "d8f3a1c0-7b0e-4c8e-9a63-2f6f0e1b5a01": "groupid",
    "c5a1e0b2-3f4d-4a6b-8c7d-9e0f1a2b3c01": "roleID",
    "e2b7c9d4-1a2b-4c3d-8e4f-5a6b7c8d9e01": "userID",
    "f4d2b6a8-9c1e-4b3d-8f5a-7e6c5d4b3a01": "classID",
}


@dataclass
class Caller:
    """A platform administrator, and the ids of what there is."""

    running: Running
    ids: dict[str, str]
    token: str = field(repr=False)

    def send(self, name: str, body: Any = None) -> httpx2.Response:
        """Send the example of an operation, or another body, with ids of objects that there are."""
        method, path, example = EXAMPLES[name]
        text = json.dumps(example if body is None else body)
        for invented, kind in EXAMPLE_IDS.items():
            text = text.replace(invented, self.ids.get(kind, invented))
        for kind, known in self.ids.items():
            path = path.replace(f"{{{kind}}}", known)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        return httpx2.request(method, f"{self.running.url}{path}", content=text, headers=headers, timeout=60)

    def take(self, name: str) -> httpx2.Response:
        """Send an example, and keep the id of what it creates."""
        reply = self.send(name)
        if reply.is_success and STEPS[name]:
            self.ids[STEPS[name]] = reply.json()["metadata"]["id"]
        return reply

    def read(self, path: str) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"}
        reply = httpx2.get(f"{self.running.url}{path.format(**self.ids)}", headers=headers, timeout=60)
        assert reply.is_success, reply.text
        return reply.json()


STEPS: Mapping[str, str] = {
    "identity_create_project": "",
    "identity_create_user": "userID",
    "identity_create_group": "groupid",
    "identity_update_group": "",
    "identity_create_service_account": "serviceAccountID",
    "identity_update_service_account": "",
    "identity_set_quotas": "",
    "identity_change_quotas": "",
    "identity_set_project_quotas": "",
    "identity_change_project_quotas": "",
    "identity_create_oauth2_client": "clientID",
    "identity_update_oauth2_client": "",
    "identity_create_provider": "providerID",
    "identity_create_password_link": "",
    "identity_create_suspension": "",
    "identity_update_organization": "",
    "identity_update_project": "",
    "region_create_network": "networkID",
    "region_update_network": "",
    "region_create_security_group": "securityGroupID",
    "region_update_security_group": "",
    "region_create_ssh_certificate_authority": "",
    "region_create_load_balancer": "loadBalancerID",
    "region_update_load_balancer": "",
    "region_create_file_storage": "filestorageID",
    "region_update_file_storage": "",
    "region_create_server": "serverID",
    "region_update_server": "",
    "compute_create_instance": "instanceID",
    "compute_update_instance": "",
    "compute_update_project_policy": "",
}
"""The writes in an order in which each finds what it needs, and what the created object is for later ones."""


@contextmanager
def first_caller(data: Path) -> Iterator[Caller]:
    """Start Remuda in an empty directory, as its administrator."""
    with running(data, environment={"REMUDA_REGION__INSTANT": "true"}) as one:
        issued = remuda("token", "issue", "--subject", "admin@remuda.local", "--data", str(data))
        known = one.credentials
        ids = {f"{kind}ID": known[f"{kind}Id"] for kind in ("organization", "project", "region", "flavor", "image")}
        found = Caller(one, ids, issued.stdout.strip())
        organization = "/identity/api/v1/organizations/{organizationID}"
        roles = found.read(f"{organization}/roles")
        ids["roleID"] = next(each["metadata"]["id"] for each in roles if each["grantable"])
        ids["groupid"] = found.read(f"{organization}/groups")[0]["metadata"]["id"]
        classes = found.read("/region/api/v2/filestorageclasses?regionID={regionID}")
        ids["classID"] = classes[0]["metadata"]["id"]
        yield found
