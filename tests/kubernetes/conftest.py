import os
from collections.abc import Callable, Iterator

import pytest

from remuda.providers.kubernetes.provider import NODE_CLASS
from tests.kit.sample_kinds import REGISTRY
from tests.kubernetes.cluster import Cluster, OwnCluster, given_cluster, own_cluster

NODES = "/api/v1/nodes"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API server with the test kinds, shared by tests that only talk to it."""
    if config := os.environ.get("KUBECONFIG"):
        with given_cluster(config, REGISTRY) as given:
            yield given
    else:
        with own_cluster(tmp_path_factory.mktemp("plane"), REGISTRY, fsync=False) as own:
            yield own


@pytest.fixture(scope="session")
def proxied_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnCluster]:
    """A plane of our own, for tests that come between a store and its server."""
    with own_cluster(tmp_path_factory.mktemp("proxied"), REGISTRY, fsync=False) as own:
        yield own


@pytest.fixture
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnCluster]:
    """A plane of one's own, to break."""
    with own_cluster(tmp_path_factory.mktemp("fragile"), REGISTRY) as own:
        yield own


@pytest.fixture
def node(proxied_cluster: OwnCluster) -> Iterator[Callable[..., None]]:
    """Makes nodes of a class, which go again."""
    made: list[str] = []

    def make(name: str, node_class: str | None, *, arch: str = "amd64", cpus: str = "16") -> None:
        labels = {"kubernetes.io/arch": arch} | ({} if node_class is None else {NODE_CLASS: node_class})
        proxied_cluster.request("POST", NODES, {"metadata": {"name": name, "labels": labels}})
        made.append(name)
        proxied_cluster.request("PATCH", f"{NODES}/{name}/status", {"status": {"capacity": {"cpu": cpus}}})

    yield make
    for name in made:
        proxied_cluster.request("DELETE", f"{NODES}/{name}")
