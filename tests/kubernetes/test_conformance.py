"""The conformance suite on a real cluster: it passes what it declares, and rejects all else by name."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from remuda.kernel.clock import SystemClock
from remuda.kernel.errors import Malformed
from remuda.kernel.randomness import SystemRandomness
from remuda.region.catalogue.provider_registry import require
from remuda.region.filestorage.classes import class_id
from tests.kit.providers.candidates import EVERYTHING, Part, Scenario, scenarios, through_calls
from tests.kit.providers.conformance import Bench
from tests.kit.providers.protocols import methods_of
from tests.kit.region.environment import NORTH, STANDARD, UBUNTU, running
from tests.kit.region.images import image
from tests.kit.resource_api import rejection
from tests.kubernetes.cloud import SMALL, cloud_at
from tests.kubernetes.cluster import OwnCluster

pytestmark = pytest.mark.kubernetes

SUITE = scenarios()
REFUSED = (400, "region is not valid for this endpoint")


@dataclass(frozen=True)
class KubernetesCandidate:
    """The nodes of a cluster as flavors, asked directly or through calls."""

    kubeconfig: str
    is_called: bool
    name: str = "kubernetes"
    capabilities: frozenset[str] = frozenset({"catalogue"})

    def run(self, scenario: Scenario, directory: Path) -> None:
        """Run a scenario on the cluster."""
        assert directory.is_dir()
        asyncio.run(self._run(scenario))

    async def _run(self, scenario: Scenario) -> None:
        clock = SystemClock()
        async with cloud_at(self.kubeconfig, SMALL) as cloud:
            asked = through_calls(cloud.provider, clock, SystemRandomness()) if self.is_called else cloud.provider
            await scenario(Bench(provider=asked, clock=clock, flavor=SMALL.id, image="", other_image=""))


@pytest.fixture(params=[False, True], ids=["directly", "called"])
def candidate(
    proxied_cluster: OwnCluster, node: Callable[..., None], request: pytest.FixtureRequest
) -> KubernetesCandidate:
    """A cluster with a node."""
    node("a", "small")
    return KubernetesCandidate(proxied_cluster.kubeconfig, is_called=request.param)


PASSED = [part for part in SUITE if part.needed <= KubernetesCandidate.capabilities]
LACKED = sorted(EVERYTHING - KubernetesCandidate.capabilities)


@pytest.mark.parametrize("part", PASSED, ids=lambda part: part.name)
def test_it_passes_what_it_declares(part: Part, candidate: KubernetesCandidate, tmp_path: Path) -> None:
    candidate.run(part.scenario, tmp_path)


def test_every_part_of_the_suite_is_passed_or_needs_what_is_refused() -> None:
    assert PASSED
    for part in SUITE:
        assert part in PASSED or part.needed & set(LACKED), part.name


def test_what_it_declares_is_what_it_has_with_every_verb(candidate: KubernetesCandidate, tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        assert set(bench.provider.capabilities) == candidate.capabilities
        for verb in methods_of("catalogue"):
            assert callable(getattr(bench.provider.catalogue, verb))

    candidate.run(scenario, tmp_path)


@pytest.mark.parametrize("capability", LACKED)
def test_what_it_lacks_is_refused(capability: str, candidate: KubernetesCandidate, tmp_path: Path) -> None:
    async def scenario(bench: Bench) -> None:
        with pytest.raises(Malformed, match=f"^{REFUSED[1]}$"):
            require(getattr(bench.provider, capability))

    candidate.run(scenario, tmp_path)


async def test_every_verb_that_it_lacks_is_refused_over_http(
    proxied_cluster: OwnCluster, node: Callable[..., None], tmp_path: Path
) -> None:
    """Of a region that had all of it when things were made there, and is a cluster now."""
    node("a", "small")
    async with cloud_at(proxied_cluster.kubeconfig, SMALL) as cloud, running(tmp_path) as compute:
        network = await compute.network()
        server = await compute.server(network)
        await compute.until(f"/api/v2/servers/{server}", "provisioned")
        clouds: Any = compute.clouds.clouds
        simulated, clouds[NORTH] = clouds[NORTH], SimpleNamespace(provider=cloud.provider)
        region = await compute.root.get(f"/api/v2/regions/{NORTH}")
        flavors = await compute.root.get(f"/api/v2/regions/{NORTH}/flavors")
        refused = {
            f"{method} {path}": rejection(await compute.root.send(method, path, body=body))
            for method, path, body in _needing(compute.organization, compute.project, network, server)
        }
        clouds[NORTH] = simulated
    assert region.json["spec"]["features"]["capabilities"] == ["catalogue"]
    assert [each["metadata"]["id"] for each in flavors.json] == [SMALL.id]
    assert refused == dict.fromkeys(refused, REFUSED)


def _needing(organization: str, project: str, network: str, server: str) -> list[tuple[str, str, Any]]:
    """Return a request for each verb that a cluster lacks."""
    farm = f"/api/v1/organizations/{organization}/regions/{NORTH}"
    place = {"organizationId": organization, "projectId": project}
    listener = {"name": "web", "protocol": "tcp", "port": 80, "pool": {"members": []}}
    in_region = place | {"regionId": NORTH}
    wanted: dict[str, Any] = {
        "networks": in_region | {"prefix": "10.9.0.0/16", "dnsNameservers": []},
        "securitygroups": {"networkId": network, "rules": []},
        "loadbalancers": {"networkId": network, "listeners": [listener]},
        "filestorage": in_region | {"storageClassId": class_id(NORTH, "x"), "sizeGiB": 1, "storageType": {}},
        "servers": {"networkId": network, "flavorId": STANDARD, "imageId": UBUNTU},
    }
    return [
        *[("GET", f"/api/v2/regions/{NORTH}/{what}", None) for what in ("images", "externalnetworks")],
        *[("GET", f"{farm}/{what}", None) for what in ("images", "externalnetworks")],
        ("POST", f"{farm}/images", image()),
        ("DELETE", f"{farm}/images/{UBUNTU}", None),
        *[("POST", f"/api/v2/{kind}", {"metadata": {"name": "new"}, "spec": spec}) for kind, spec in wanted.items()],
        *[("POST", f"/api/v2/servers/{server}/{verb}", None) for verb in ("start", "stop", "softreboot", "hardreboot")],
        ("POST", f"/api/v2/servers/{server}/snapshot", {"metadata": {"name": "new"}, "spec": {}}),
        *[("GET", f"/api/v2/servers/{server}/{what}", None) for what in ("consolesessions", "consoleoutput")],
    ]
