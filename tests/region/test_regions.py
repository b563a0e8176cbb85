"""Regions that platform administrators add, change, disable and remove while the service runs."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from remuda.kernel.errors import Invalid
from remuda.kernel.secrets import Secret
from remuda.region.kinds.regions import Region, RegionSpec
from remuda.region.ports import AccountNames, CheckedRegion, RegionFinding
from tests.kit.environment import options
from tests.kit.identity.environment import expect
from tests.kit.region.environment import NORTH, RegionEnvironment

REGIONS = "/api/v2/platform/regions"
LIKE_NORTH = {"type": "simulated", "simulated": {"catalogue": "sim-north"}}
OPENSTACK = {
    "endpoint": "https://cloud.example.com:5000/v3",
    "domainName": "remuda",
    "userName": "manager",
    "password": "canary-password",
}


class CloudConnector:
    """A cloud that knows the names of one account, and accepts one password."""

    def __init__(self) -> None:
        self.accepted = "canary-password"
        self.checked: list[RegionSpec] = []

    async def check(self, region: str, spec: RegionSpec, names: AccountNames) -> CheckedRegion:  # noqa: ARG002
        self.checked.append(spec)
        assert spec.openstack is not None
        account = spec.openstack.service_account
        assert account is not None
        if account.password != Secret(self.accepted):
            raise Invalid("spec.openstack.password", "is not accepted", remedy="give the one of the account")
        account = replace(account, domain_id=account.domain_id or names.domain, user_id=account.user_id or names.user)
        checked = replace(spec, openstack=replace(spec.openstack, service_account=account))
        return CheckedRegion(
            spec=checked, findings=[RegionFinding(capability="quotas", message="a policy line is missing")]
        )

    async def release(self, region: str, spec: RegionSpec) -> None:
        """Do nothing."""


def body(name: str = "added", **spec: Any) -> Any:
    return {"metadata": {"name": name}, "spec": LIKE_NORTH | spec}


def openstack(name: str = "cloud", **section: Any) -> Any:
    return {"metadata": {"name": name}, "spec": {"type": "openstack", "openstack": OPENSTACK | section}}


def changed(section: Any) -> Any:
    return {"metadata": {"name": "cloud"}, "spec": {"type": "openstack", "openstack": section}}


async def added(region: RegionEnvironment, **spec: Any) -> str:
    """Add a region like the one in the north, and return its id."""
    return str(expect(await region.root.post(REGIONS, body(**spec)), 201)["metadata"]["id"])


async def test_m24_a_region_is_added_while_the_service_runs_and_serves_at_once(region: RegionEnvironment) -> None:
    name = await added(region)
    read = await region.until(f"{REGIONS}/{name}", "provisioned")
    assert read["spec"] == {"type": "simulated", "simulated": {"catalogue": "sim-north"}}
    assert expect(await region.root.get(f"/api/v2/regions/{name}"), 200)["spec"]["features"]["capabilities"]
    network = await region.network(regionId=name)
    await region.until(f"/api/v2/networks/{network}", "provisioned")
    server = await region.server(network)
    await region.until(f"/api/v2/servers/{server}", "provisioned")
    assert region.north.operator.servers() == [], "the new region is a cloud of its own"


async def test_m24_nothing_new_is_created_in_a_disabled_region_and_what_is_there_is_deleted(
    region: RegionEnvironment,
) -> None:
    name = await added(region)
    await region.until(f"{REGIONS}/{name}", "provisioned")
    network = await region.network(regionId=name)
    await region.until(f"/api/v2/networks/{network}", "provisioned")
    server = await region.server(network)
    await region.until(f"/api/v2/servers/{server}", "provisioned")
    expect(await region.root.put(f"{REGIONS}/{name}", body(disabled=True)), 200)
    assert expect(await region.root.get(f"/api/v2/regions/{name}"), 200)["spec"]["disabled"] is True
    where = {"organizationId": region.organization, "projectId": region.project, "regionId": name}
    refused = {
        "/api/v2/networks": {**where, "prefix": "10.0.0.0/24", "dnsNameservers": []},
        "/api/v2/securitygroups": {"networkId": network, "rules": []},
        "/api/v2/servers": {
            "networkId": network,
            "flavorId": "11111111-1111-1111-1111-111111111111",
            "imageId": "33333333-3333-3333-3333-333333333333",
        },
    }
    for path, spec in refused.items():
        reply = await region.root.post(path, {"metadata": {"name": "new"}, "spec": spec})
        assert (reply.status, "is disabled" in reply.json["error_description"]) == (403, True), path
    assert (await region.root.delete(f"/api/v2/servers/{server}")).status == 202
    await region.until_gone(f"/api/v2/servers/{server}")
    assert (await region.root.delete(f"/api/v2/networks/{network}")).status == 202
    await region.until_gone(f"/api/v2/networks/{network}")
    expect(await region.root.put(f"{REGIONS}/{name}", body()), 200)
    await region.network(regionId=name)


async def test_m24_a_region_is_removed_when_it_is_empty_and_no_earlier_request_can_run(
    region: RegionEnvironment,
) -> None:
    name = await added(region)
    await region.until(f"{REGIONS}/{name}", "provisioned")
    network = await region.network(regionId=name)
    refused = await region.root.delete(f"{REGIONS}/{name}")
    assert (refused.status, "networks" in refused.json["error_description"]) == (403, True)
    await region.until(f"/api/v2/networks/{network}", "provisioned")
    assert (await region.root.delete(f"/api/v2/networks/{network}")).status == 202
    await region.until_gone(f"/api/v2/networks/{network}")
    began = region.clock.now()
    assert (await region.root.delete(f"{REGIONS}/{name}")).status == 202
    assert (await region.root.get(f"/api/v2/regions/{name}")).status == 404, "nothing is created in it any more"
    await region.until_gone(f"{REGIONS}/{name}")
    assert region.clock.now() - began >= region.app.ports.settings.removal_delay
    assert region.app.ports.providers.find(name) is None
    assert await added(region) == name, "and its name is free"
    await region.until(f"{REGIONS}/{name}", "provisioned")


async def test_regions_have_different_names_and_a_repeated_request_finds_what_it_created(
    region: RegionEnvironment,
) -> None:
    headers = {"Idempotency-Key": "once"}
    first = expect(await region.root.post(REGIONS, body(), **headers), 201)
    again = expect(await region.root.post(REGIONS, body(), **headers), 201)
    assert again["metadata"]["id"] == first["metadata"]["id"]
    taken = await region.root.post(REGIONS, body())
    assert (taken.status, "already exists" in taken.json["error_description"]) == (409, True)
    assert (await region.root.post(REGIONS, body("sim-north"))).status == 409, "also those of the configuration"


async def test_a_region_of_the_configuration_is_changed_there(region: RegionEnvironment) -> None:
    assert expect(await region.root.get(REGIONS), 200) == []
    for reply in (
        await region.root.get(f"{REGIONS}/{NORTH}"),
        await region.root.put(f"{REGIONS}/{NORTH}", body("sim-north")),
        await region.root.delete(f"{REGIONS}/{NORTH}"),
        await region.root.post(f"{REGIONS}/{NORTH}/check"),
    ):
        assert (reply.status, "configuration" in reply.json["error_description"]) == (403, True)


async def test_an_update_compares_the_state_that_was_read(region: RegionEnvironment) -> None:
    name = await added(region)
    read = await region.root.get(f"{REGIONS}/{name}")
    stale = {"If-Match": read.headers["etag"]}
    updated = await region.root.put(f"{REGIONS}/{name}", body(disabled=True), **stale)
    assert (updated.status, updated.json["spec"]["disabled"]) == (200, True)
    assert (await region.root.put(f"{REGIONS}/{name}", body(), **stale)).status == 412
    assert (await region.root.delete(f"{REGIONS}/{name}", **stale)).status == 412


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"simulated": {"catalogue": "sim-nroth"}}, "spec.simulated.catalogue"),
        ({"openstack": OPENSTACK}, "spec.openstack"),
        ({"type": "openstack", "simulated": None}, "spec.openstack"),
        (openstack(domainName="")["spec"] | {"simulated": None}, "spec.openstack.domainName"),
        (openstack(userName="")["spec"] | {"simulated": None}, "spec.openstack.userName"),
        (openstack(password=None)["spec"] | {"simulated": None}, "spec.openstack.password"),
        (openstack(vlans=[{"first": 2, "last": 1}])["spec"] | {"simulated": None}, "spec.openstack.vlans[0]"),
        (openstack(vlans=[{"first": 1, "last": 2}])["spec"] | {"simulated": None}, "spec.openstack.physicalNetwork"),
    ],
)
async def test_an_impossible_region_is_rejected_with_the_field_and_nothing_is_stored(
    region: RegionEnvironment, spec: Any, field: str
) -> None:
    found = {key: value for key, value in (LIKE_NORTH | spec).items() if value is not None}
    reply = await region.root.post(REGIONS, {"metadata": {"name": "odd"}, "spec": found})
    assert (reply.status, field in reply.json["error_description"]) == (422, True), reply.json
    assert expect(await region.root.get(REGIONS), 200) == []


CLOUD = CloudConnector()


@pytest.fixture
def cloud() -> CloudConnector:
    CLOUD.__init__()  # type: ignore[misc]  # the environment is given one object
    return CLOUD


@options(connector=CLOUD)
async def test_m24_the_password_of_a_cloud_is_sealed_never_shown_and_rotated(
    region: RegionEnvironment, cloud: CloudConnector
) -> None:
    created = await region.root.post(REGIONS, openstack())
    name = expect(created, 201)["metadata"]["id"]
    section = created.json["spec"]["openstack"]
    assert (section["domainID"], section["userID"]) == ("remuda", "manager"), "the cloud knows the ids"
    listed, read = await region.root.get(REGIONS), await region.root.get(f"{REGIONS}/{name}")
    assert not any("canary" in reply.body.decode() for reply in (created, listed, read))
    kept = {**section, "domainName": "", "userName": ""}
    checks = len(cloud.checked)
    assert (await region.root.put(f"{REGIONS}/{name}", changed(kept))).headers["etag"] == read.headers["etag"]
    assert len(cloud.checked) == checks, "nothing changed for which the cloud is asked"
    moved = {
        "metadata": {"name": "cloud"},
        "spec": {"type": "openstack", "openstack": kept | {"endpoint": "https://x"}},
    }
    refused = await region.root.put(f"{REGIONS}/{name}", moved)
    assert (refused.status, "spec.openstack.password" in refused.json["error_description"]) == (422, True)
    cloud.accepted = "canary-second"
    wrong = changed(kept | {"password": "canary-x"})
    assert (await region.root.put(f"{REGIONS}/{name}", wrong)).status == 422
    assert await stored_password(region, name) == Secret("canary-password"), "nothing was stored"
    expect(await region.root.put(f"{REGIONS}/{name}", changed(kept | {"password": "canary-second"})), 200)
    assert await stored_password(region, name) == Secret("canary-second")


async def stored_password(region: RegionEnvironment, name: str) -> Secret | None:
    found = (await region.store.get(Region, name)).spec.openstack
    return None if found is None or found.service_account is None else found.service_account.password


@options(connector=CLOUD)
async def test_a_check_names_what_is_missing(region: RegionEnvironment, cloud: CloudConnector) -> None:
    name = expect(await region.root.post(REGIONS, openstack()), 201)["metadata"]["id"]
    found = expect(await region.root.post(f"{REGIONS}/{name}/check"), 200)
    assert found["findings"] == [{"capability": "quotas", "message": "a policy line is missing"}]
    assert len(cloud.checked) == 2


async def test_a_check_lists_what_is_offered(region: RegionEnvironment) -> None:
    found = expect(await region.root.post(f"{REGIONS}/{await added(region)}/check"), 200)
    assert [key for key, items in found.items() if not items] == ["findings"]


async def test_the_removal_waits_longer_than_a_request_takes(region: RegionEnvironment) -> None:
    assert region.app.ports.settings.removal_delay > timedelta(seconds=region.app.ports.api.time_limit_s)
