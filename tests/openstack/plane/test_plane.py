"""The plane keeps what its modules promise: real services, permissions of a region's credential, nothing left."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit.planes import processes_in
from tests.openstack.plane.api import Session, eventually
from tests.openstack.plane.plane import Plane

pytestmark = pytest.mark.openstack


@pytest.fixture
def project(plane: Plane) -> Iterator[str]:
    """A project of the domain manager, in which it is manager and member."""
    manager = Session.manager(plane.configuration)
    roles = {each["name"]: each["id"] for each in manager.get("keystone", "/roles")["roles"]}
    user, domain = manager.token["user"]["id"], manager.token["domain"]["id"]
    body = {"project": {"name": f"plane-{uuid.uuid4().hex}", "domain_id": domain}}
    created = manager.create("keystone", "/projects", body)["id"]
    for role in ("manager", "member"):
        path = f"/projects/{created}/users/{user}/roles/{roles[role]}"
        assert manager.request("PUT", "keystone", path)[0] == 204
    yield created
    assert manager.request("DELETE", "keystone", f"/projects/{created}")[0] == 204


@pytest.fixture
def session(plane: Plane, project: str) -> Session:
    return Session.manager(plane.configuration, project)


@pytest.fixture
def network(session: Session) -> Iterator[str]:
    created: str = session.create("neutron", "/v2.0/networks", {"network": {"name": "plane"}})["id"]
    subnet = {"network_id": created, "cidr": "10.9.0.0/24", "ip_version": 4}
    session.create("neutron", "/v2.0/subnets", {"subnet": subnet})
    yield created
    eventually(lambda: session.request("DELETE", "neutron", f"/v2.0/networks/{created}")[0] in {204, 404})


def boot(session: Session, network: str, **more: Any) -> str:
    flavors = {each["name"]: each["id"] for each in session.get("nova", "/flavors")["flavors"]}
    (image,) = session.get("glance", "/v2/images?name=debian-12")["images"]
    body = {"name": "plane", "flavorRef": flavors["m1.tiny"], "imageRef": image["id"], "networks": [{"uuid": network}]}
    created: str = session.create("nova", "/servers", {"server": body | more})["id"]
    return created


def server(session: Session, identity: str) -> Any:
    return session.get("nova", f"/servers/{identity}")["server"]


def reached(session: Session, identity: str, status: str) -> Any:
    def read() -> Any:
        found = server(session, identity)
        return found if found["status"] == status and found["OS-EXT-STS:task_state"] is None else None

    return eventually(read)


def delete(session: Session, identity: str) -> None:
    session.request("DELETE", "nova", f"/servers/{identity}")
    eventually(lambda: session.request("GET", "nova", f"/servers/{identity}")[0] == 404)


def test_a_server_gets_an_address_of_its_network_and_a_bound_port(plane: Plane, session: Session, network: str) -> None:
    created = boot(session, network)
    built = reached(session, created, "ACTIVE")
    (address,) = built["addresses"]["plane"]
    admin = Session.admin(plane.configuration)
    (port,) = admin.get("neutron", f"/v2.0/ports?device_id={created}")["ports"]
    assert (port["status"], port["fixed_ips"][0]["ip_address"]) == ("ACTIVE", address["addr"])
    assert port["binding:vif_type"] == "ovs"
    delete(session, created)


def test_a_build_fails_as_its_metadata_asks(session: Session, network: str) -> None:
    created = boot(session, network, metadata={"simulated.build_abort": "the host is on fire"})
    eventually(lambda: server(session, created)["status"] == "ERROR")
    assert "the host is on fire" in server(session, created)["fault"]["message"]
    delete(session, created)


def test_a_server_survives_the_death_of_its_host_process(own_plane: Plane, session: Session, network: str) -> None:
    created = boot(session, network)
    reached(session, created, "ACTIVE")
    for host in ("compute-1", "compute-2"):
        own_plane.restart(host)
    eventually(lambda: session.request("POST", "nova", f"/servers/{created}/action", {"os-stop": None})[0] == 202)
    reached(session, created, "SHUTOFF")
    delete(session, created)


def test_the_manager_sets_quotas_and_creates_vlan_networks_in_its_own_projects(session: Session, project: str) -> None:
    unlimited = {"quota_set": {"instances": -1, "cores": -1, "ram": -1}}
    assert session.request("PUT", "nova", f"/os-quota-sets/{project}", unlimited)[0] == 200
    assert session.request("PUT", "neutron", f"/v2.0/quotas/{project}", {"quota": {"port": -1}})[0] == 200
    segment = {
        "provider:network_type": "vlan",
        "provider:physical_network": "physnet1",
        "provider:segmentation_id": 1234,
    }
    created = session.create("neutron", "/v2.0/networks", {"network": {"name": "vlan", **segment}})
    assert session.request("DELETE", "neutron", f"/v2.0/networks/{created['id']}")[0] == 204


def test_the_manager_has_no_power_over_other_domains(plane: Plane) -> None:
    manager, admin = Session.manager(plane.configuration), Session.admin(plane.configuration)
    status, _ = manager.request("POST", "keystone", "/projects", {"project": {"name": "x", "domain_id": "default"}})
    assert status == 403
    foreign = admin.token["project"]["id"]
    status, _ = manager.request("PUT", "nova", f"/os-quota-sets/{foreign}", {"quota_set": {"instances": -1}})
    assert status in {401, 403}


def test_nothing_runs_after_the_plane_has_stopped_and_its_data_comes_back(own_plane: Plane, project: str) -> None:
    own_plane.stop()
    assert processes_in(own_plane.configuration.run) == []
    own_plane.start()
    found = Session.manager(own_plane.configuration).get("keystone", "/projects")["projects"]
    assert project in {each["id"] for each in found}
