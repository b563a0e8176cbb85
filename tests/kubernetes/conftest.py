import os
from collections.abc import Iterator

import pytest

from tests.contract.kinds import REGISTRY
from tests.kubernetes.cluster import Cluster, OwnCluster, given_cluster, own_cluster


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
