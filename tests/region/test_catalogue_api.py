"""Regions and what they offer, over HTTP: who sees what, in which words, and what is kept for how long."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from remuda.http.openapi import document
from remuda.http.routes import Table
from remuda.kernel.encoding import from_base64url
from remuda.kernel.secrets import Secret
from remuda.region.catalogue.routes import ROUTES
from remuda.region.catalogue.service import Catalogue
from remuda.region.kinds.regions import (
    NetworksConfig,
    ProviderNetworksConfig,
    RegionKubernetes,
    RegionOpenstack,
    RegionSpec,
)
from remuda.resources import service_info
from remuda.resources.service_info import ServiceInfo
from tests.kit.environment import provided_by
from tests.kit.reference.agreement import Agreement
from tests.kit.reference.contract import Operation, wire_contract
from tests.kit.region.flavor_provider import GRAPHIC, LARGE, PINNED, SMALL, FlavorProvider
from tests.kit.region.resource_api import (
    ORG,
    OTHER_ORG,
    OTHER_REGION,
    PROJECT,
    REGION,
    RegionApi,
    clouds_over,
    everywhere,
    make_region,
    member,
    rejection,
    run_region_api,
)

READS = "region:regions R, region:flavors R, region:externalnetworks R"
ANN = member("ann@example.com", ORG, READS)
BOB = member("bob@example.com", OTHER_ORG, READS)
NOBODY = member("nobody@example.com", ORG)
SERVICE = everywhere("compute", f"{READS}, region:servers CRUD, region:regions/detail R")
ABSENT = "c0000000-0000-4000-8000-0000000000ff"
FIRST = f"/api/v1/organizations/{ORG}/regions"
SECOND = "/api/v2/regions"
CLUSTER = "d0000000-0000-4000-8000-000000000001"
CANARY = "canary-kubeconfig"


@dataclass(frozen=True)
class CatalogueServices:
    """The services of regions and of the release."""

    catalogue: Catalogue
    info: ServiceInfo


CatalogueApi = RegionApi[CatalogueServices]


def in_catalogue(scenario: Callable[[CatalogueApi, FlavorProvider], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario with a public region, one of the other organization, and a cluster."""
    shops: list[FlavorProvider] = []

    def catalogue(world: Any, store: Any) -> CatalogueServices:
        flavors = FlavorProvider(world.clock)
        shops.append(flavors)
        offers = {REGION: flavors.provider, OTHER_REGION: flavors.provider, CLUSTER: flavors.bare}
        info = ServiceInfo(
            name="unikorn-region-server",
            release="1.2.3",
            url="https://region.example.com",
            issuer="https://identity.example.com",
        )
        return CatalogueServices(Catalogue(providers=clouds_over(world, store, offers)), info)

    async def run(api: CatalogueApi) -> None:
        await make_region(api.store)
        await make_region(api.store, OTHER_REGION, called="theirs", organizations=[OTHER_ORG])
        kubernetes = RegionKubernetes(kube_config=Secret(CANARY), domain_name="k.example.com")
        spec = RegionSpec(provider="kubernetes", kubernetes=kubernetes)
        await make_region(api.store, CLUSTER, called="cluster", spec=spec)
        await scenario(api, shops[-1])

    run_region_api(catalogue, [*ROUTES, *service_info.ROUTES], run)


region_catalogue = provided_by(in_catalogue)
flavors = provided_by(in_catalogue, position=1)


def _ids(reply: Any) -> set[str]:
    assert reply.status == 200, reply
    return {item["metadata"]["id"] for item in reply.json}


def _names(reply: Any) -> list[str]:
    assert reply.status == 200, reply
    return [item["metadata"]["name"] for item in reply.json]


@pytest.mark.parametrize("path", [FIRST, SECOND])
async def test_a_private_region_is_listed_to_its_organizations_and_to_who_reads_all(
    region_catalogue: CatalogueApi, path: str
) -> None:
    assert _ids(await region_catalogue.ask(ANN).get(path)) == {REGION, CLUSTER}
    assert _ids(await region_catalogue.ask(BOB).get(path.replace(ORG, OTHER_ORG))) == {REGION, CLUSTER, OTHER_REGION}
    assert _ids(await region_catalogue.ask(SERVICE).get(path)) == {REGION, CLUSTER, OTHER_REGION}


@pytest.mark.parametrize("region", [OTHER_REGION, ABSENT])
@pytest.mark.parametrize("below", ["flavors", "externalnetworks", "detail", ""])
async def test_a_region_that_is_not_seen_is_not_there(
    region_catalogue: CatalogueApi, flavors: FlavorProvider, region: str, below: str
) -> None:
    ann = region_catalogue.ask(member("ann@example.com", ORG, f"{READS}, region:regions/detail R"))
    paths = [f"{SECOND}/{region}/{below}".rstrip("/")] if below != "detail" else []
    paths += [f"{FIRST}/{region}/{below}"] if below else []
    for path in paths:
        assert rejection(await ann.get(path)) == (404, "resource not found"), path
    assert flavors.asked == []


async def test_a_region_says_what_it_is_and_what_its_provider_has(region_catalogue: CatalogueApi) -> None:
    read = (await region_catalogue.ask(ANN).get(f"{SECOND}/{REGION}")).json
    assert read["metadata"]["name"] == "north"
    assert (read["metadata"]["provisioningStatus"], read["metadata"]["healthStatus"]) == ("provisioned", "healthy")
    features = {"physicalNetworks": False, "capabilities": ["catalogue", "external_networks"]}
    assert read["spec"] == {"type": "simulated", "features": features}
    assert read in (await region_catalogue.ask(ANN).get(FIRST)).json
    cluster = (await region_catalogue.ask(ANN).get(f"{SECOND}/{CLUSTER}")).json
    assert cluster["spec"]["features"]["capabilities"] == ["catalogue"]
    assert "kubernetes" not in cluster["spec"]


async def test_a_region_with_physical_networks_says_so_and_one_without_a_provider_has_nothing(
    region_catalogue: CatalogueApi,
) -> None:
    networks = NetworksConfig(provider_networks=ProviderNetworksConfig(physical_network="physnet"))
    openstack = RegionOpenstack(endpoint="https://keystone.example.com", network=networks)
    await make_region(
        region_catalogue.store, ABSENT, called="iron", spec=RegionSpec(provider="openstack", openstack=openstack)
    )
    read = (await region_catalogue.ask(ANN).get(f"{SECOND}/{ABSENT}")).json
    assert read["spec"] == {"type": "openstack", "features": {"physicalNetworks": True, "capabilities": []}}
    reply = await region_catalogue.ask(ANN).get(f"{SECOND}/{ABSENT}/flavors")
    assert reply.status == 503


async def test_flavors_come_smallest_first_in_the_units_that_clients_know(region_catalogue: CatalogueApi) -> None:
    reply = await region_catalogue.ask(ANN).get(f"{FIRST}/{REGION}/flavors")
    assert _names(reply) == ["small", "large", "graphic"]
    small, large, graphic = (item["spec"] for item in reply.json)
    assert reply.json[0]["metadata"] == {
        "id": SMALL.id,
        "name": "small",
        "creationTime": "0001-01-01T00:00:00Z",
    }
    assert small == {"cpus": 2, "memory": 4, "disk": 20, "architecture": "x86_64"}
    assert large == {"cpus": 16, "cpuFamily": "Altra", "memory": 64, "disk": 100, "architecture": "aarch64"}
    assert graphic["gpu"] == {
        "vendor": "NVIDIA",
        "model": "L4",
        "memory": 24,
        "physicalCount": 1,
        "logicalCount": 2,
    }


async def test_the_second_generation_tells_how_many_are_free_where_the_provider_does(
    region_catalogue: CatalogueApi,
) -> None:
    reply = await region_catalogue.ask(ANN).get(f"{SECOND}/{REGION}/flavors")
    free = {item["metadata"]["id"]: item["spec"].get("free") for item in reply.json}
    assert free == {SMALL.id: None, LARGE.id: 3, GRAPHIC.id: 0}
    assert reply.headers["cache-control"] == "no-cache"


async def test_who_wants_it_fresh_is_told_what_the_provider_says_now(
    region_catalogue: CatalogueApi, flavors: FlavorProvider
) -> None:
    client, path = region_catalogue.ask(ANN), f"{SECOND}/{REGION}/flavors"
    before = (await client.get(path)).json
    flavors.stock = (SMALL,)
    assert (await client.get(path)).json == before
    fresh = await client.get(path, [("fresh", "true")])
    assert [item["metadata"]["id"] for item in fresh.json] == [SMALL.id]


@pytest.mark.parametrize("path", [f"{FIRST}/{REGION}/flavors", f"{SECOND}/{REGION}/flavors"])
async def test_a_flavor_that_can_only_be_pinned_is_shown_to_those_who_may_make_servers(
    region_catalogue: CatalogueApi, path: str
) -> None:
    assert PINNED.name not in _names(await region_catalogue.ask(ANN).get(path))
    reader = everywhere("reader", f"{READS}, region:servers R")
    assert PINNED.name not in _names(await region_catalogue.ask(reader).get(path))
    reply = await region_catalogue.ask(SERVICE).get(path)
    (pinned,) = [item["spec"] for item in reply.json if item["metadata"]["id"] == PINNED.id]
    assert (pinned["pinnedOnly"], pinned["baremetal"]) == (True, True)
    maker = member("maker@example.com", ORG, READS, **{PROJECT.replace("-", "_"): "region:servers C"})
    assert PINNED.name in _names(await region_catalogue.ask(maker).get(path))


async def test_what_hardly_changes_may_be_kept_for_a_day_by_whoever_asked(region_catalogue: CatalogueApi) -> None:
    for below in ("flavors", "externalnetworks"):
        headers = (await region_catalogue.ask(ANN).get(f"{FIRST}/{REGION}/{below}")).headers
        assert headers["cache-control"] == "private, max-age=86400"
        assert "authorization" in headers["vary"]
    refused = await region_catalogue.ask(ANN).get(f"{FIRST}/{ABSENT}/flavors")
    assert refused.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("regions", [FIRST, SECOND])
async def test_ways_out_are_listed_by_name_and_a_cluster_has_none(region_catalogue: CatalogueApi, regions: str) -> None:
    reply = await region_catalogue.ask(ANN).get(f"{regions}/{REGION}/externalnetworks")
    assert reply.json == [{"id": "e1", "name": "narrow"}, {"id": "e2", "name": "wide"}]
    refused = await region_catalogue.ask(ANN).get(f"{regions}/{CLUSTER}/externalnetworks")
    assert rejection(refused) == (400, "region is not valid for this endpoint")
    assert _names(await region_catalogue.ask(ANN).get(f"{regions}/{CLUSTER}/flavors")) == ["small", "large", "graphic"]


async def test_the_credentials_of_a_cluster_are_for_those_with_a_right_of_its_own(
    region_catalogue: CatalogueApi,
) -> None:
    path = f"{FIRST}/{CLUSTER}/detail"
    assert rejection(await region_catalogue.ask(ANN).get(path)) == _forbidden("regions/detail")
    reply = await region_catalogue.ask(SERVICE).get(path)
    assert reply.json["spec"]["kubernetes"]["domainName"] == "k.example.com"
    assert from_base64url(reply.json["spec"]["kubernetes"]["kubeconfig"]).decode() == CANARY
    assert reply.json["spec"]["features"]["capabilities"] == ["catalogue"]
    assert "kubernetes" not in (await region_catalogue.ask(SERVICE).get(f"{FIRST}/{REGION}/detail")).json["spec"]


async def test_a_cluster_whose_credentials_are_elsewhere_says_so(region_catalogue: CatalogueApi) -> None:
    spec = RegionSpec(provider="kubernetes", kubernetes=RegionKubernetes())
    await make_region(region_catalogue.store, ABSENT, called="shut", spec=spec)
    reply = await region_catalogue.ask(SERVICE).get(f"{FIRST}/{ABSENT}/detail")
    assert reply.status == 503
    assert "kubeconfig" in reply.json["error_description"]


@pytest.mark.parametrize(
    ("path", "endpoint"),
    [
        ("", "regions"),
        (f"/{REGION}/flavors", "flavors"),
        (f"/{REGION}/externalnetworks", "externalnetworks"),
        (f"/{OTHER_REGION}/flavors", "flavors"),
    ],
)
async def test_whoever_lacks_the_right_is_told_which_before_a_region_is_looked_for(
    region_catalogue: CatalogueApi, path: str, endpoint: str
) -> None:
    for regions in (FIRST, SECOND):
        assert rejection(await region_catalogue.ask(NOBODY).get(f"{regions}{path}")) == _forbidden(endpoint)
    strange = " — organization is not in this principal's accessible set"
    assert rejection(await region_catalogue.ask(BOB).get(f"{FIRST}{path}")) == _forbidden(endpoint, strange)


async def test_a_right_in_another_organization_is_enough_where_the_path_names_none(
    region_catalogue: CatalogueApi,
) -> None:
    assert _names(await region_catalogue.ask(BOB).get(f"{SECOND}/{OTHER_REGION}/flavors")) == [
        "small",
        "large",
        "graphic",
    ]


@pytest.mark.parametrize("path", [f"{SECOND}/nonsense", f"{FIRST}/nonsense/flavors"])
async def test_what_is_no_id_is_refused_before_anybody_is_asked_who_they_are(
    region_catalogue: CatalogueApi, path: str
) -> None:
    status, description = rejection(await region_catalogue.ask(None).get(path))
    assert (status, "invalid path/query element" in description) == (400, True)


async def test_m29_the_service_tells_who_it_is_and_who_lets_callers_in(region_catalogue: CatalogueApi) -> None:
    assert (await region_catalogue.ask(None).get("/api/version")).status == 401
    read = (await region_catalogue.ask(NOBODY).get("/api/version")).json
    assert read == {"name": "unikorn-region-server", "version": "1.2.3"}
    reply = await region_catalogue.ask(None).get("/.well-known/openid-protected-resource")
    assert reply.headers["cache-control"] == "private, max-age=86400"
    assert reply.json == {
        "resource": "https://region.example.com",
        "authorization_servers": ["https://identity.example.com"],
        "scopes_supported": ["openid", "email", "profile"],
        "bearer_methods_supported": ["header"],
    }


async def test_a_provider_that_does_not_answer_is_told_as_that(
    region_catalogue: CatalogueApi, flavors: FlavorProvider
) -> None:
    flavors.takes_s = 10**6
    reply = await region_catalogue.ask(ANN).get(f"{SECOND}/{REGION}/flavors")
    assert reply.status == 503
    assert len(flavors.asked) == 1


_CONTRACT = wire_contract("region")
_TABLE = Table("region", title="Region", description="One capacity of it.", routes=[*ROUTES, *service_info.ROUTES])
_DOCUMENT: Any = msgspec.json.decode(msgspec.json.encode(document(_TABLE, version="0")))
_PLACES = {(route.method, route.path) for route in _TABLE.routes}


@pytest.mark.parametrize(
    "operation",
    [each for each in _CONTRACT.operations if (each.method, each.path) in _PLACES],
    ids=lambda operation: operation.label,
)
def test_an_operation_is_as_existing_clients_know_it(operation: Operation) -> None:
    assert Agreement(_CONTRACT, _DOCUMENT).differences(operation) == []


def test_the_capacity_has_six_operations_that_existing_clients_know() -> None:
    known = {(each.method, each.path) for each in _CONTRACT.operations}
    assert len(known & _PLACES) == 6


def _forbidden(endpoint: str, why: str = " is not permitted") -> tuple[int, str]:
    return 403, f"operation is not allowed by rbac: operation 'read' on endpoint 'region:{endpoint}'{why}"
