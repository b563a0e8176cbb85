"""Opening a store: it says what is wrong instead of waiting for ever."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remuda.kernel.errors import RemudaError, ServerUnreachable, Unavailable, Unusable
from tests.kit.sample_kinds import HORSE, REGISTRY, horse
from tests.kubernetes.cluster import Cluster, OwnCluster
from tests.kubernetes.harness import opened
from tests.kubernetes.proxy import proxied, write_plain_kubeconfig
from tests.kubernetes.steps import rejecting

pytestmark = pytest.mark.kubernetes


async def opening_error(cluster: Cluster, config: str | None = None) -> RemudaError:
    """Open a store that cannot be opened; return why."""
    with pytest.raises(RemudaError) as raised:
        async with asyncio.timeout(10), opened(cluster, "default", config, opening_timeout_s=1.0):
            pass
    left = [task for task in asyncio.all_tasks() if "/src/remuda/" in repr(task)]
    assert not left, "nothing is left running"
    return raised.value


async def test_a_server_that_is_not_there(cluster: Cluster, tmp_path: Path) -> None:
    error = await opening_error(cluster, write_plain_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:9"))
    assert isinstance(error, ServerUnreachable)
    assert "127.0.0.1:9" in error.message


@pytest.mark.parametrize(
    ("status", "answer", "expected", "sentence"),
    [
        (403, {"reason": "Forbidden", "message": "not you"}, Unusable, "forbids listing horses.test.remuda"),
        (404, {"reason": "NotFound", "message": "what?"}, Unusable, "remuda crds"),
        (503, {"message": "starting"}, Unavailable, "starting"),
        (200, "not a list", Unavailable, "did not come from an API server"),
    ],
)
async def test_a_server_that_does_not_let_us_list(
    proxied_cluster: OwnCluster, tmp_path: Path, status: int, answer: Any, expected: type[RemudaError], sentence: str
) -> None:
    async with proxied(proxied_cluster.plane) as proxy:
        proxy.reject(rejecting("GET", "horses", status, body=msgspec.json.encode(answer)), times=1000)
        error = await opening_error(proxied_cluster, write_plain_kubeconfig(tmp_path / "kubeconfig", proxy.url))
    assert isinstance(error, expected)
    assert sentence in error.message


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.unlink(),
        lambda path: path.write_text("{"),
        lambda path: path.write_text("[]"),
        lambda path: path.write_text("clusters: []\nusers: []\ncontexts: []\ncurrent-context: none"),
    ],
    ids=["missing", "no yaml", "no config", "empty"],
)
async def test_a_kubeconfig_that_is_none(cluster: Cluster, tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    path = tmp_path / "kubeconfig"
    write_plain_kubeconfig(path, "http://127.0.0.1:9")
    spoil(path)
    assert "kubeconfig" in (await opening_error(cluster, str(path))).message


async def test_a_kind_that_is_defined_late_is_served_after_all(proxied_cluster: OwnCluster, tmp_path: Path) -> None:
    async with proxied(proxied_cluster.plane) as proxy:
        proxy.reject(rejecting("GET", "horses", 503), times=2)
        config = write_plain_kubeconfig(tmp_path / "kubeconfig", proxy.url)
        async with opened(proxied_cluster, proxied_cluster.namespace(), config, opening_timeout_s=5.0) as store:
            assert (await store.create(horse("bella"))).name == "bella"
            assert store.requests["list", HORSE.plural] == 3
            assert len(store.registry.kinds) == len(REGISTRY.kinds) + 1
