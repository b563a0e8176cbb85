"""What the Terraform provider looks up: regions, flavors and classes of storage, and things by their ids."""

from dataclasses import replace

import pytest

from remuda.region.settings import RegionSettings
from tests.kit.compatibility.environment import CompatibilityEnvironment
from tests.kit.compatibility.provider import AGENT, DiagnosticError, decoded
from tests.kit.compute.requests import GPUS
from tests.kit.environment import options
from tests.kit.region.environment import NORTH, STANDARD, configured

REGIONS = "/api/v1/organizations/{organization}/regions"


@options(
    lambda: {
        "regional": {"settings": RegionSettings(regions=(replace(*configured(["sim-north"]), description="up there"),))}
    }
)
async def test_a_region_is_found_in_the_list_of_the_organization(environment: CompatibilityEnvironment) -> None:
    found = await environment.provider.find("region", REGIONS, NORTH)
    assert (found["metadata"]["name"], found["metadata"]["description"]) == ("sim-north", "up there")
    assert found["spec"]["type"] == "simulated"


async def test_a_flavor_is_found_in_the_list_of_its_region(environment: CompatibilityEnvironment) -> None:
    flavors = f"{REGIONS}/{NORTH}/flavors"
    plain = await environment.provider.find("compute", flavors, STANDARD)
    assert plain["metadata"]["name"] == "sim-standard-4"
    assert "description" not in plain["metadata"], "which no cloud has of a flavor"
    assert {"cpus", "memory", "disk"} <= plain["spec"].keys()
    assert "gpu" not in plain["spec"]
    gpu = (await environment.provider.find("compute", flavors, GPUS))["spec"]["gpu"]
    assert {"vendor", "model", "physicalCount", "logicalCount", "memory"} <= gpu.keys()


async def test_a_class_of_storage_is_found_by_region(environment: CompatibilityEnvironment) -> None:
    query = [("regionID", NORTH)]
    listed = await environment.provider.clients["region"].get("/api/v2/filestorageclasses", query)
    name = listed.json[0]["metadata"]["id"]
    found = await environment.provider.find("region", "/api/v2/filestorageclasses", name, query)
    assert found["spec"]["regionId"] == NORTH
    assert set(found["spec"]["protocols"]) <= {"nfsv3", "nfsv4"}


async def test_who_has_no_good_token_is_told_so(environment: CompatibilityEnvironment) -> None:
    for service, path in (("region", "/api/v2/networks"), ("compute", "/api/v2/instances")):
        stranger = environment.provider.clients[service].having("no-token")  # type: ignore[index]  # it is one of them
        with pytest.raises(DiagnosticError, match="server returned status code 401, code: "):
            decoded(await stranger.send("GET", path, headers=AGENT))
