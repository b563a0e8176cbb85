"""The provider contract on a real OpenStack: the same scenarios as on every provider, through the same calls."""

import pytest

from tests.kit.providers.candidates import Part, scenarios
from tests.kit.providers.conformance import Bench
from tests.openstack.cloud import Cloud
from tests.openstack.plane.api import Session, eventually
from tests.openstack.plane.plane import Plane

pytestmark = pytest.mark.openstack

RESOURCES = (  # what a tenant can leave behind, as the administrator sees it
    ("keystone", "/projects", "projects"),
    ("keystone", "/users", "users"),
    ("nova", "/servers?all_tenants=1", "servers"),
    ("nova", "/os-server-groups?all_projects=1", "server_groups"),
    ("neutron", "/v2.0/networks", "networks"),
    ("neutron", "/v2.0/subnets", "subnets"),
    ("neutron", "/v2.0/routers", "routers"),
    ("neutron", "/v2.0/ports", "ports"),
    ("neutron", "/v2.0/floatingips", "floatingips"),
    ("neutron", "/v2.0/security-groups", "security_groups"),
    ("glance", "/v2/images?visibility=all", "images"),
)


def parts() -> list[Part]:
    lacking = {"file_storages", "events"}
    return [each for each in scenarios() if not each.needed & lacking]


@pytest.mark.parametrize("part", parts(), ids=lambda each: each.name)
def test_m23_openstack_keeps_the_provider_contract(cloud: Cloud, part: Part) -> None:
    cloud.run(part.scenario)


def test_m23_nothing_of_ours_is_left_at_the_cloud(cloud: Cloud) -> None:
    async def everything_once(bench: Bench) -> None:
        await bench.server()

    cloud.run(everything_once)  # the region's own project is there from now on
    before = listed(cloud.plane)
    cloud.run(everything_once)
    # Neutron gives every project a default security group, which only an administrator can remove.
    eventually(lambda: listed(cloud.plane) == before)


def listed(plane: Plane) -> dict[str, list[str]]:
    admin = Session.admin(plane.configuration)
    found = {key: admin.get(service, path)[key] for service, path, key in RESOURCES}
    return {key: sorted(each["id"] for each in items if each["name"] != "default") for key, items in found.items()}
