"""The catalogue over HTTP: what instances can be made of, and who may know."""

from remuda.region.catalogue.seed import region_id
from remuda.region.kinds.regions import RegionKubernetes, RegionSpec
from remuda.region.settings import ConfiguredRegion, RegionSettings
from tests.kit.asgi.client import Client
from tests.kit.compute.environment import ComputeEnvironment
from tests.kit.compute.requests import ABSENT, DEBIAN, NODE_IMAGE, OUT_OF_ORGANIZATION, PINNED, forbidden, settle
from tests.kit.environment import options
from tests.kit.identity.environment import ISSUER, expect
from tests.kit.region.environment import NORTH, SOUTH, STANDARD, configured
from tests.kit.resource_api import rejection


def _regions(compute: ComputeEnvironment) -> str:
    return f"/api/v1/organizations/{compute.region.organization}/regions"


async def _ids(client: Client, path: str) -> list[str]:
    return [each["metadata"]["id"] for each in expect(await client.get(path), 200)]


CLUSTER = ConfiguredRegion(name="cluster", spec=RegionSpec(provider="kubernetes", kubernetes=RegionKubernetes()))


@options(lambda: {"regional": {"settings": RegionSettings(regions=(*configured(["sim-north", "sim-south"]), CLUSTER))}})
async def test_regions_are_listed_but_for_those_that_are_clusters(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    everywhere = await compute.region.root.get("/api/v2/regions")
    assert region_id("cluster") in [each["metadata"]["id"] for each in everywhere.json]
    assert sorted(await _ids(tenant.client, _regions(compute))) == sorted([NORTH, SOUTH])


async def test_m04_flavors_are_those_that_an_instance_can_have(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    path = f"{_regions(compute)}/{NORTH}/flavors"
    for client in (tenant.client, compute.root):
        found = await _ids(client, path)
        assert STANDARD in found
        assert PINNED not in found
    everything = await compute.region.root.get(f"/api/v2/regions/{NORTH}/flavors")
    assert PINNED in [each["metadata"]["id"] for each in everything.json]
    (standard,) = [each for each in (await tenant.client.get(path)).json if each["metadata"]["id"] == STANDARD]
    assert standard["spec"]["free"] > 0


async def test_m04_images_are_those_that_are_ready_and_have_no_kubernetes_on_them(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    path = f"{_regions(compute)}/{NORTH}/images"
    found = await _ids(tenant.client, path)
    assert DEBIAN in found
    assert NODE_IMAGE not in found
    instance = await compute.instance(tenant.network, projectId=tenant.project, imageId=DEBIAN)
    await compute.until(instance, "provisioned")
    body = {"metadata": {"name": "backup"}}
    image = expect(await tenant.client.post(f"/api/v2/instances/{instance}/snapshot", body), 201)
    assert image["status"]["state"] != "ready"
    assert image["metadata"]["id"] not in await _ids(tenant.client, path)
    await compute.clock.sleep(10)
    assert image["metadata"]["id"] in await _ids(tenant.client, path)


async def test_an_unknown_region_is_not_found_and_a_foreign_organization_is_closed(compute: ComputeEnvironment) -> None:
    tenant = await settle(compute)
    for what in ("flavors", "images"):
        assert rejection(await tenant.client.get(f"{_regions(compute)}/{ABSENT}/{what}")) == (404, "resource not found")
        assert (await tenant.client.get(f"{_regions(compute)}/x/{what}")).status == 400
    foreign = f"/api/v1/organizations/{ABSENT}/regions"
    for path, endpoint in (
        (foreign, "regions"),
        (f"{foreign}/{NORTH}/flavors", "flavors"),
        (f"{foreign}/{NORTH}/images", "images"),
    ):
        told_ = forbidden("read", OUT_OF_ORGANIZATION, f"compute:{endpoint}")
        assert rejection(await tenant.client.get(path)) == told_
        assert (await compute.client(None).get(path)).status == 401


async def test_m29_everybody_with_a_token_learns_which_release_answers_and_anybody_who_lets_callers_in(
    compute: ComputeEnvironment,
) -> None:
    tenant = await settle(compute)
    version = expect(await tenant.client.get("/api/version"), 200)
    assert version["name"] == "unikorn-compute-server"
    assert version["version"]
    assert (await compute.client(None).get("/api/version")).status == 401
    shown = expect(await compute.client(None).get("/.well-known/openid-protected-resource"), 200)
    assert shown["resource"].endswith("/compute")
    assert shown["bearer_methods_supported"] == ["header"]
    assert len(shown["authorization_servers"]) == 1
    assert ISSUER.startswith("https://")
