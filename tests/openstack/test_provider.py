"""What the provider does at a real OpenStack beyond the contract."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import Inconsistent
from remuda.kernel.randomness import SystemRandomness
from remuda.providers.contract.common import NoCapacity
from remuda.providers.openstack.provider import OpenStackSettings, open_cloud
from remuda.providers.openstack.tenancies import TENANCY_TAG, project_name
from tests.kit.providers.candidates import through_calls
from tests.kit.providers.conformance import (
    DISK,
    NETWORK,
    TENANCY,
    Bench,
    content,
    everything,
    handle_of_server,
    network_spec,
    new_image,
)
from tests.openstack.cloud import PATIENT, Cloud, MemoryCredentials, described, remove_everything
from tests.openstack.fault_proxy import FaultProxy, faulty
from tests.openstack.plane.api import Session
from tests.openstack.plane.configuration import POLICIES
from tests.openstack.regions import domain_of_its_own

pytestmark = pytest.mark.openstack


@dataclass(frozen=True)
class Opened:
    """A provider, what it has stored, and the number of its requests."""

    bench: Bench
    credentials: MemoryCredentials
    proxy: FaultProxy

    @property
    def requests(self) -> int:
        return self.proxy.faults["none"]


Scenario = Callable[[Opened], Awaitable[None]]


def run(given: Cloud, scenario: Scenario, settings: OpenStackSettings | None = None) -> None:
    async def opened() -> None:
        async with faulty(0) as proxy:
            proxy.is_faulty = False
            credentials = MemoryCredentials()
            chosen = replace(settings or given.settings, address=given.behind(proxy.url))
            region = open_cloud(chosen, credentials, clock=SystemClock(), randomness=SystemRandomness())
            provider = through_calls(region.provider, SystemClock(), SystemRandomness(), PATIENT)
            bench = Bench(
                provider=provider,
                clock=SystemClock(),
                flavor=given.flavor,
                image=given.image,
                other_image=given.other_image,
                pause_s=0.3,
            )
            try:
                await scenario(Opened(bench, credentials, proxy))
            finally:
                await remove_everything(bench)
                await region.close()

    asyncio.run(opened())


def flavor(given: Cloud, name: str) -> str:
    found = Session.admin(given.plane.configuration).get("nova", "/flavors")["flavors"]
    return next(str(each["id"]) for each in found if each["name"] == name)


def identities_of(given: Cloud, tenancy: str = TENANCY) -> list[str]:
    """Return the ids of the project and of the user of a tenancy."""
    admin = Session.admin(given.plane.configuration)
    query = f"name={project_name(tenancy)}&domain_id={given.settings.manager.domain}"
    found = [admin.get("keystone", f"/{kind}?{query}")[kind] for kind in ("projects", "users")]
    return [each["id"] for kind in found for each in kind]


def test_m23_a_named_host_is_asked_for_and_used(cloud: Cloud) -> None:
    settings = replace(cloud.settings, checks_hosts=True)
    gpu = flavor(cloud, "g1.large")

    async def scenario(opened: Opened) -> None:
        servers = opened.bench.provider.servers
        assert servers is not None
        await opened.bench.port()
        wanted = replace(opened.bench.server_spec(), flavor=gpu)
        with pytest.raises(NoCapacity, match="compute-9"):
            await servers.create_server(replace(wanted, host="compute-9"))
        assert await servers.find_server(handle_of_server()) is None
        await servers.create_server(replace(wanted, host="compute-2"))
        made = await opened.bench.in_state(handle_of_server(), "running")
        admin = Session.admin(cloud.plane.configuration)
        found = admin.get("nova", f"/servers/{made.id}")["server"]
        assert found["OS-EXT-SRV-ATTR:hypervisor_hostname"] == "compute-2"

    run(cloud, scenario, settings)


def test_m23_a_network_is_on_the_vlan_that_was_assigned(cloud: Cloud) -> None:
    async def scenario(opened: Opened) -> None:
        networks = opened.bench.provider.networks
        assert networks is not None
        await opened.bench.tenancy()
        made = await networks.converge_network(replace(network_spec(), vlan=2345))
        admin = Session.admin(cloud.plane.configuration)
        found = admin.get("neutron", f"/v2.0/networks/{made.id}")["network"]
        assert (found["provider:network_type"], found["provider:segmentation_id"]) == ("vlan", 2345)
        assert found["provider:physical_network"] == "physnet1"

    run(cloud, scenario)


@contextmanager
def flavor_without_host(given: Cloud) -> Iterator[str]:
    admin = Session.admin(given.plane.configuration)
    body = {"name": "too-large", "id": "too-large", "vcpus": 4000, "ram": 1024, "disk": 1}
    created = str(admin.create("nova", "/flavors", {"flavor": body})["id"])
    try:
        yield created
    finally:
        admin.request("DELETE", "nova", f"/flavors/{created}")


def test_m23_a_flavor_that_no_host_has_capacity_for_is_named_with_its_size(cloud: Cloud) -> None:
    async def scenario(opened: Opened) -> None:
        provider = opened.bench.provider
        assert provider.servers is not None
        (large,) = [each for each in await provider.catalogue.flavors() if each.name == "too-large"]
        await opened.bench.port()
        await provider.servers.create_server(replace(opened.bench.server_spec(), flavor=large.id))
        failed = await opened.bench.in_state(handle_of_server(), "failed")
        assert "too-large: 4000 CPUs, 1024 MiB of memory and 1 GiB of disk" in failed.fault

    with flavor_without_host(cloud):
        run(cloud, scenario)


def test_m23_without_its_policy_line_a_capability_is_off_and_the_others_work(cloud: Cloud) -> None:
    path = cloud.plane.configuration.path("nova", "policy.yaml")

    async def scenario(opened: Opened) -> None:
        path.write_text(json.dumps({}))
        try:
            await opened.bench.tenancy()
        finally:
            path.write_text(json.dumps(POLICIES["nova"]))
        project, _ = identities_of(cloud)
        admin = Session.admin(cloud.plane.configuration)
        assert admin.get("nova", f"/os-quota-sets/{project}")["quota_set"]["instances"] == 10
        assert admin.get("neutron", f"/v2.0/quotas/{project}")["quota"]["port"] == -1

    run(cloud, scenario)


def test_m23_two_objects_of_one_name_are_reported_and_both_removed(cloud: Cloud) -> None:
    async def scenario(opened: Opened) -> None:
        networks = opened.bench.provider.networks
        assert networks is not None
        await opened.bench.network()
        project, _ = identities_of(cloud)
        admin = Session.admin(cloud.plane.configuration)
        admin.create("neutron", "/v2.0/networks", {"network": {"name": NETWORK.name, "project_id": project}})
        with pytest.raises(Inconsistent):
            await networks.find_network(NETWORK)
        with pytest.raises(Inconsistent):
            await networks.converge_network(network_spec())
        await networks.remove_network(NETWORK)
        assert await networks.find_network(NETWORK) is None
        found = admin.get("neutron", f"/v2.0/networks?project_id={project}")["networks"]
        assert found == []

    run(cloud, scenario)


def test_m23_a_tenancy_whose_creation_stopped_can_be_continued_and_removed(cloud: Cloud) -> None:
    """A project without roles; and a user whose credential was never stored."""

    def begin() -> None:
        admin = Session.admin(cloud.plane.configuration)
        project = {
            "name": project_name(TENANCY),
            "domain_id": cloud.settings.manager.domain,
            "description": TENANCY,
            "tags": [TENANCY_TAG, "organization=o", "project=p"],
        }
        admin.create("keystone", "/projects", {"project": project})

    async def scenario(opened: Opened) -> None:
        tenancies = opened.bench.provider.tenancies
        assert tenancies is not None
        begin()
        assert [each.name for each in await everything(tenancies.tenancies())] == [TENANCY]
        await tenancies.remove_tenancy(TENANCY)
        assert identities_of(cloud) == []
        begin()
        await opened.bench.tenancy()
        lost = opened.credentials.kept.pop(TENANCY)
        await opened.bench.tenancy()
        assert opened.credentials.kept[TENANCY] != lost
        opened.credentials.kept.clear()
        await tenancies.remove_tenancy(TENANCY)
        assert identities_of(cloud) == []

    run(cloud, scenario)


def test_m24_a_scan_costs_the_same_however_many_servers_there_are(cloud: Cloud) -> None:
    async def scenario(opened: Opened) -> None:
        provider = opened.bench.provider
        assert provider.tenancies
        assert provider.networks
        assert provider.security_groups
        assert provider.ports
        assert provider.servers
        assert provider.load_balancers
        lists = {
            "tenancies": provider.tenancies.tenancies,
            "networks": provider.networks.networks,
            "groups": provider.security_groups.groups,
            "ports": provider.ports.ports,
            "servers": provider.servers.server_versions,
            "balancers": provider.load_balancers.balancers,
        }

        async def cost() -> dict[str, int]:
            found = {}
            for name, each in lists.items():
                before = opened.requests
                await everything(each())
                found[name] = opened.requests - before
            return found

        await opened.bench.server(1)
        await cost()  # the tokens are there from now on
        one = await cost()
        for number in (2, 3):
            await opened.bench.server(number)
        assert await cost() == one
        assert one["servers"] == 2, "one list of tenancies, and one of servers in each"
        assert max(one.values()) <= 6

    run(cloud, scenario)


def test_m23_an_image_of_another_region_of_the_cloud_is_none_of_ours(cloud: Cloud) -> None:
    """Both are visible to all projects of the cloud, whose regions have a domain each."""

    async def scenario(opened: Opened) -> None:
        images = opened.bench.provider.images
        assert images is not None
        await images.create_image(new_image(), content(DISK))
        await opened.bench.image_in_state(new_image().id, "ready")
        with domain_of_its_own(cloud.plane) as domain:
            await asyncio.to_thread(run, described(domain), lacking)
        assert await images.find_image(new_image().id) is not None

    async def lacking(opened: Opened) -> None:
        images = opened.bench.provider.images
        assert images is not None
        assert await images.find_image(new_image().id) is None
        assert new_image().id not in {each.id for each in await images.images()}
        await images.remove_image(new_image().id)

    run(cloud, scenario)
