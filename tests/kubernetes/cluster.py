"""The API server a test talks to: the one of KUBECONFIG, or a plane of our own; the test kinds are defined on it."""

import itertools
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from lightkube.config.client_adapter import Client, ConnectionParams

from remuda.store.kinds import Registry
from remuda.store.kubernetes.client import kubeconfig
from remuda.store.kubernetes.kinds import definitions
from tests.kit.proofs.store_contract.harness import UNKNOWN_FIELD
from tests.kubernetes.plane.plane import Plane

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_COLLECTOR_LOOKS_EVERY_S = 35


class Cluster:
    """A running API server, spoken to with the permissions of its kubeconfig."""

    def __init__(self, config: str) -> None:
        self.kubeconfig = config
        self.namespaces: list[str] = []
        self._client: httpx2.Client = Client(kubeconfig(config)(), ConnectionParams())
        self._numbers = itertools.count(1)

    def close(self) -> None:
        for name in self.namespaces:
            self.try_request("DELETE", f"/api/v1/namespaces/{name}")
        self._client.close()

    def request(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = self.try_request(method, path, body)
        assert status < 300, (method, path, status, answer)
        return answer

    def try_request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request, again if we are told to wait; a PATCH is a merge patch."""
        content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
        while True:
            response = self._client.request(method, path, json=body, headers={"Content-Type": content_type})
            if response.status_code != 429:
                is_json = response.headers.get("Content-Type", "").startswith("application/json")
                return response.status_code, response.json() if is_json else response.text
            time.sleep(float(response.headers["Retry-After"]))

    def define(self, registry: Registry) -> bool:
        """Define the kinds and wait until they are served; tell whether any is new."""
        statuses = [self.try_request("POST", _DEFINITIONS, newer(one))[0] for one in definitions(registry)]
        assert set(statuses) <= {201, 409}, statuses
        for kind in registry.kinds:
            self._await_served(f"/apis/{kind.api_version}/{kind.plural}?limit=1")
        return 201 in statuses

    def _await_served(self, path: str) -> None:
        for _ in range(200):
            if self.try_request("GET", path)[0] == 200:
                return
            time.sleep(0.05)
        raise AssertionError(f"{path} was never served")

    def namespace(self) -> str:
        """Make a namespace that nobody else uses."""
        name = f"remuda-test-{os.getpid()}-{next(self._numbers)}"
        self.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        self.namespaces.append(name)
        return name


class OwnCluster(Cluster):
    """An API server that is ours to break."""

    def __init__(self, plane: Plane) -> None:
        super().__init__(str(plane.kubeconfig))
        self.plane = plane


@contextmanager
def own_cluster(
    directory: Path, registry: Registry, *, fsync: bool = True, apiserver_args: Sequence[str] = ()
) -> Iterator[OwnCluster]:
    """Run a plane of our own for the time of a `with` block."""
    with Plane(directory, fsync=fsync, apiserver_args=apiserver_args) as plane:
        cluster = OwnCluster(plane)
        cluster.define(registry)
        plane.restart("controller-manager")  # it looks for new kinds when it starts, and then only now and then
        yield cluster
        cluster.namespaces.clear()  # they go with the plane
        cluster.close()


@contextmanager
def given_cluster(config: str, registry: Registry) -> Iterator[Cluster]:
    """Use somebody's API server for the time of a `with` block, and leave no namespace behind."""
    cluster = Cluster(config)
    if cluster.define(registry):
        time.sleep(_COLLECTOR_LOOKS_EVERY_S)
    try:
        yield cluster
    finally:
        cluster.close()


def newer(definition: Any) -> Any:
    """Return a definition as a later release might have it: every struct has one more field, which we do not know."""
    if isinstance(definition, list):
        return [newer(item) for item in definition]
    if not isinstance(definition, Mapping):
        return definition
    grown = {name: newer(value) for name, value in definition.items()}
    if definition.get("type") == "object" and "properties" in definition:
        grown["properties"] |= {UNKNOWN_FIELD: {"type": "string"}}
    return grown
