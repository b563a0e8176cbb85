"""A walk over the HTTP API of a running process on a real OpenStack, from an empty region back to an empty region."""

import base64
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.kit.image_server import images
from tests.kit.processes.operator import ADMIN, issue
from tests.kit.processes.program import Running, running
from tests.openstack.plane.api import Session, eventually
from tests.openstack.plane.configuration import PASSWORD, REGION
from tests.openstack.plane.plane import Plane
from tests.openstack.regions import SETTINGS, Domain, domain_of_its_own

pytestmark = pytest.mark.openstack

WITHIN_S = 600.0
POLL_S = 0.3
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
RESOURCES = (  # service, list of the administrator, its key, and the member that names the project
    ("keystone", "/projects", "projects", "id"),
    ("keystone", "/users", "users", ""),
    ("nova", "/servers/detail?all_tenants=1", "servers", "tenant_id"),
    ("nova", "/os-server-groups?all_projects=1", "server_groups", "project_id"),
    ("neutron", "/v2.0/networks", "networks", "project_id"),
    ("neutron", "/v2.0/subnets", "subnets", "project_id"),
    ("neutron", "/v2.0/routers", "routers", "project_id"),
    ("neutron", "/v2.0/ports", "ports", "project_id"),
    ("neutron", "/v2.0/floatingips", "floatingips", "project_id"),
    ("neutron", "/v2.0/security-groups", "security_groups", "project_id"),
    ("glance", "/v2/images?visibility=all&limit=1000", "images", "owner"),
    ("cinder", "/volumes/detail?all_tenants=1", "volumes", "os-vol-tenant-attr:tenant_id"),
    ("octavia", "/v2.0/lbaas/loadbalancers", "loadbalancers", "project_id"),
)


@dataclass
class Inventory:
    """Everything at the cloud that has to do with a domain; with a cloud of our own, everything at all."""

    domain: Domain
    projects: set[str]

    def listed(self) -> dict[str, list[str]]:
        admin = Session.admin(self.domain.plane.configuration)
        found = admin.get("keystone", f"/projects?domain_id={self.domain.id}")["projects"]
        self.projects.update(each["id"] for each in found)
        return {
            key: sorted(each["id"] for each in admin.get(service, path)[key] if self._is_ours(each, key, project))
            for service, path, key, project in RESOURCES
        }

    def _is_ours(self, each: Mapping[str, Any], key: str, project: str) -> bool:
        if key == "security_groups" and each["name"] == "default":
            return False  # Neutron gives one to every project, which only an administrator can remove
        if not os.environ.get("REMUDA_OPENSTACK"):
            return True
        return each["domain_id"] == self.domain.id if not project else each.get(project) in self.projects


@dataclass(frozen=True)
class Walker:
    """Client of a process: as the platform administrator for regions, and as a service account for the rest."""

    process: Running
    admin: str

    def send(self, service: str, method: str, path: str, body: Any = None, *, is_admin: bool = False) -> Any:
        response = self._exchange(service, method, path, body, is_admin=is_admin)
        assert response.status_code < 300, (method, path, response.status_code, response.text)
        return response.json() if response.content else None

    def _exchange(
        self, service: str, method: str, path: str, body: Any = None, *, is_admin: bool = False
    ) -> httpx2.Response:
        found = self.process.credentials
        headers = {"Authorization": f"Bearer {self.admin if is_admin else found['token']}"}
        url = found["endpoints"][service] + path
        return httpx2.request(method, url, headers=headers, json=body, timeout=150)

    def created(self, service: str, path: str, name: str, spec: Any, *, is_admin: bool = False) -> str:
        body = {"metadata": {"name": name}, "spec": spec}
        return str(self.send(service, "POST", path, body, is_admin=is_admin)["metadata"]["id"])

    def until(self, service: str, path: str, holds: Callable[[Any], bool], *, is_admin: bool = False) -> Any:
        deadline = time.monotonic() + WITHIN_S
        while not holds(found := self.send(service, "GET", path, is_admin=is_admin)):
            assert time.monotonic() < deadline, (path, found)
            time.sleep(POLL_S)
        return found

    def provisioned(self, service: str, path: str, *, is_admin: bool = False) -> Any:
        return self.until(
            service,
            path,
            lambda found: found["metadata"]["provisioningStatus"] == "provisioned",
            is_admin=is_admin,
        )

    def accepted(self, service: str, path: str) -> None:
        """Send an action until the state allows it."""
        eventually(lambda: self._exchange(service, "POST", path).status_code == 202, within_s=WITHIN_S)

    def deleted(self, service: str, path: str, *, is_admin: bool = False) -> None:
        """Delete something as soon as nothing needs it any more, and wait until it is gone."""
        eventually(
            lambda: self._exchange(service, "DELETE", path, is_admin=is_admin).status_code == 202, within_s=WITHIN_S
        )
        eventually(
            lambda: self._exchange(service, "GET", path, is_admin=is_admin).status_code == 404, within_s=WITHIN_S
        )


@pytest.fixture(scope="module")
def domain(plane: Plane) -> Iterator[Domain]:
    with domain_of_its_own(plane) as found:
        yield found


@pytest.fixture
def walker(tmp_path: Path) -> Iterator[Walker]:
    with running(tmp_path / "data", environment=SETTINGS) as process:
        yield Walker(process, issue(tmp_path / "data", *ADMIN, "--lifetime", "1h", environment=SETTINGS))


def region_of(domain: Domain, password: str = PASSWORD) -> Any:
    account = {"domainName": domain.name, "userName": "manager", "password": password}
    return {
        "type": "openstack",
        "openstack": {"endpoint": domain.plane.configuration.auth_url, "region": REGION, **account},
    }


def test_m23_a_walk_over_the_api_leaves_the_cloud_as_it_was(domain: Domain, walker: Walker) -> None:
    inventory = Inventory(domain, set())
    before = inventory.listed()
    region = walker.created("region", "/api/v2/platform/regions", "berlin", region_of(domain), is_admin=True)
    walker.provisioned("region", f"/api/v2/platform/regions/{region}", is_admin=True)
    places = {each: walker.process.credentials[each] for each in ("organizationId", "projectId")}
    plan = {"regionId": region, "prefix": "10.1.0.0/24", "dnsNameservers": []}
    network = walker.created("region", "/api/v2/networks", "pad", {**places, **plan})
    walker.provisioned("region", f"/api/v2/networks/{network}")
    group = walker.created(
        "region",
        "/api/v2/securitygroups",
        "web",
        {"networkId": network, "rules": [{"direction": "ingress", "protocol": "tcp", "port": 22}]},
    )
    authority = walker.created("region", "/api/v2/sshcertificateauthorities", "ours", {**places, "publicKey": KEY})
    instance = walk_an_instance(walker, places, region, network, group, authority)
    inventory.listed()
    image = walk_images(walker, places["organizationId"], region, instance)
    walk_a_load_balancer(walker, region, network)
    inventory.listed()
    walker.deleted("compute", f"/api/v2/instances/{instance}")
    for each in image:
        walker.send(
            "region", "DELETE", f"/api/v1/organizations/{places['organizationId']}/regions/{region}/images/{each}"
        )
    for path in (f"securitygroups/{group}", f"sshcertificateauthorities/{authority}", f"networks/{network}"):
        walker.deleted("region", f"/api/v2/{path}")
    walker.deleted("region", f"/api/v2/platform/regions/{region}", is_admin=True)
    eventually(lambda: inventory.listed() == before, within_s=60)


def walk_an_instance(
    walker: Walker, places: Mapping[str, str], region: str, network: str, group: str, authority: str
) -> str:
    """Create an instance, and do to it whatever the API can do."""
    flavors = {each["metadata"]["name"]: each["metadata"]["id"] for each in listed(walker, region, "flavors")}
    found = {each["metadata"]["name"]: each["metadata"]["id"] for each in listed(walker, region, "images")}
    spec: dict[str, Any] = {
        "flavorId": flavors["m1.small"],
        "imageId": found["debian-12"],
        "networking": {"securityGroups": [group], "publicIP": True},
        "sshCertificateAuthorityId": authority,
        "userData": base64.b64encode(b"#cloud-config\npackages: [curl]\n").decode(),
    }
    instance = walker.created("compute", "/api/v2/instances", "web", {**places, "networkId": network, **spec})
    path = f"/api/v2/instances/{instance}"
    running_now = walker.until("compute", path, is_running)
    address = running_now["status"]["privateIP"]
    assert running_now["status"]["publicIP"]
    assert isinstance(walker.send("compute", "GET", f"{path}/consoleoutput")["contents"], str)
    assert walker.send("compute", "GET", f"{path}/consolesession")["url"]
    walker.send("compute", "POST", f"{path}/stop")
    walker.until("compute", path, lambda found: found["status"].get("powerState") == "Stopped")
    walker.send("compute", "POST", f"{path}/start")
    walker.until("compute", path, is_running)
    walker.send("compute", "POST", f"{path}/reboot")
    walker.accepted("compute", f"{path}/reboot?hard=true")  # when the soft one is done
    walker.until("compute", path, is_running)
    for changed in ({"imageId": found["ubuntu-24.04"]}, {"flavorId": flavors["m1.medium"]}):
        spec |= changed
        body = {"metadata": {"name": "web"}, "spec": spec}
        plan = walker.send("compute", "PUT", f"{path}?dryRun=true", body)
        assert plan["steps"], plan
        walker.send("compute", "PUT", f"{path}?plan={plan['hash']}", body)
        walker.until("compute", path, is_running)
    walker.send("compute", "POST", f"{path}/rebuild")
    again = walker.until("compute", path, lambda found: found["status"].get("rebuilds") == 1 and is_running(found))
    assert again["status"]["privateIP"] == address, "a rebuild and a replacement keep the address"
    return instance


def is_running(found: Any) -> bool:
    """Return whether an instance runs and is as last requested."""
    return (found["metadata"]["provisioningStatus"], found["status"].get("powerState")) == ("provisioned", "Running")


def walk_images(walker: Walker, organization: str, region: str, instance: str) -> list[str]:
    """Create an image from an instance, and import one."""
    body = {"metadata": {"name": "snapshot"}, "spec": {}}
    snapshot = walker.send("compute", "POST", f"/api/v2/instances/{instance}/snapshot", body)["metadata"]["id"]
    with images() as url:
        system = {"kernel": "linux", "family": "debian", "distro": "debian", "version": "12"}
        spec = {"uri": f"{url}/disk.raw", "architecture": "x86_64", "virtualization": "any", "os": system}
        imported = walker.created(
            "region", f"/api/v1/organizations/{organization}/regions/{region}/images", "imported", spec
        )
        wanted = {snapshot, imported}

        def are_ready(found: Any) -> bool:
            ready = {each["metadata"]["id"] for each in found if each["status"]["state"] == "ready"}
            return wanted <= ready

        path = f"/api/v2/regions/{region}/images?organizationID={organization}"
        walker.until("region", path, are_ready)
    return [snapshot, imported]


def walk_a_load_balancer(walker: Walker, region: str, network: str) -> None:
    """Create a load balancer and delete it, if the provider has any."""
    features = walker.send("region", "GET", f"/api/v2/regions/{region}")["spec"]["features"]
    if "load_balancers" not in features["capabilities"]:
        return
    listeners = [{"name": "http", "protocol": "tcp", "port": 80, "pool": {"members": []}}]
    balancer = walker.created(
        "region", "/api/v2/loadbalancers", "front", {"networkId": network, "listeners": listeners}
    )
    walker.provisioned("region", f"/api/v2/loadbalancers/{balancer}")
    walker.deleted("region", f"/api/v2/loadbalancers/{balancer}")


def listed(walker: Walker, region: str, what: str) -> list[Any]:
    found: list[Any] = walker.send("region", "GET", f"/api/v2/regions/{region}/{what}")
    return found
