"""Regions on a real OpenStack: each mistake of an operator has an error of its own, and leaves nothing at the cloud."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remuda.kernel.errors import Invalid
from remuda.region.ports import CheckedRegion
from tests.openstack.plane.plane import Plane
from tests.openstack.regions import Domain, connected, domain_of_its_own

pytestmark = pytest.mark.openstack


@pytest.fixture(scope="module")
def domain(plane: Plane) -> Iterator[Domain]:
    with domain_of_its_own(plane) as found:
        yield found


def checked(domain: Domain, directory: Path, names: dict[str, str] | None = None, **section: Any) -> CheckedRegion:
    spec = domain.spec(**section)
    return connected(directory, lambda regions: regions.check(spec, domain.names(**(names or {}))))


def rejected(domain: Domain, directory: Path, names: dict[str, str] | None = None, **section: Any) -> Invalid:
    with pytest.raises(Invalid) as found:
        checked(domain, directory, names, **section)
    assert domain.projects() == [], "nothing is left at the cloud"
    return found.value


def test_m23_a_region_is_checked_and_its_names_become_ids(domain: Domain, tmp_path: Path) -> None:
    found = checked(domain, tmp_path)
    assert found.spec.openstack is not None
    account = found.spec.openstack.service_account
    assert account is not None
    assert (account.domain_id, account.user_id) == (domain.id, domain.user)
    assert "m1.small" in {each.name for each in found.flavors}
    assert {"debian-12", "ubuntu-24.04"} <= {each.name for each in found.images}
    assert [each.name for each in found.external_networks] == ["public"]
    assert {each.capability for each in found.findings} == {"images"}, "the plane has an image without properties"
    (finding,) = [each for each in found.findings if "unlabelled" in each.message]
    assert finding.command.startswith("openstack image set --property unikorn:os:kernel=linux")
    connected(tmp_path, lambda regions: regions.release(found.spec))
    assert domain.projects() == [], "a region that is removed leaves nothing"


def test_m23_an_endpoint_that_is_not_keystone_is_named(domain: Domain, tmp_path: Path) -> None:
    keystone = domain.plane.configuration.auth_url
    root = rejected(domain, tmp_path, endpoint=keystone.removesuffix("/v3"))
    assert (root.field, "append it" in root.message) == ("spec.openstack.endpoint", True)
    other = rejected(domain, tmp_path, endpoint=domain.plane.configuration.endpoint("glance"))
    assert (other.field, "is not Keystone" in other.message) == ("spec.openstack.endpoint", True)
    closed = rejected(domain, tmp_path, endpoint="http://127.0.0.1:1/v3")
    assert (closed.field, "cannot be connected to" in closed.message) == ("spec.openstack.endpoint", True)
    unknown = rejected(domain, tmp_path, endpoint="http://cloud.invalid/v3")
    assert (unknown.field, "unknown host name" in unknown.message) == ("spec.openstack.endpoint", True)


def test_m23_wrong_credentials_are_named(domain: Domain, tmp_path: Path) -> None:
    password = rejected(domain, tmp_path, password="wrong")
    assert password.field == "spec.openstack.password"
    user = rejected(domain, tmp_path, {"user": "nobody"})
    assert (user.field, "userName" in user.message) == ("spec.openstack.password", True)
    other = rejected(domain, tmp_path, {"domain": "Default", "user_domain": domain.name})
    assert (other.field, domain.name in other.message) == ("spec.openstack.domainName", True)
    region = rejected(domain, tmp_path, region="Nowhere")
    assert (region.field, "compute service" in region.message) == ("spec.openstack.region", True)


@pytest.mark.parametrize("role", ["", "reader"])
def test_m23_a_missing_role_is_named_with_the_command_that_adds_it(plane: Plane, tmp_path: Path, role: str) -> None:
    with domain_of_its_own(plane, role=role) as domain:
        found = rejected(domain, tmp_path)
        assert found.field == "spec.openstack.userName"
        command = f"openstack role add --user manager --user-domain {domain.name} --domain {domain.name} manager"
        assert command in found.message


def test_m23_a_cloud_on_this_machine_is_rejected_unless_it_is_allowed(domain: Domain, tmp_path: Path) -> None:
    spec = domain.spec()
    with pytest.raises(Invalid, match=r"region\.cloud_targets") as found:
        connected(tmp_path, lambda regions: regions.check(spec, domain.names()), targets=())
    assert found.value.field == "spec.openstack.endpoint"
