"""Which flavors a cluster has, by its nodes, and which kubeconfigs are let near this machine."""

from typing import Any

import msgspec
import pytest

from remuda.kernel.errors import Unavailable
from remuda.kernel.secrets import Secret
from remuda.providers.kubernetes.provider import NODE_CLASS, Node, NodeClass, flavors_of, source_of

SMALL = NodeClass(id="small", name="Small", cpus=4, memory_bytes=1 << 30, disk_bytes=10**9)
OPEN = NodeClass(id="open", name="Open", memory_bytes=1 << 30, disk_bytes=10**9)


def node(node_class: str, arch: str | None = "amd64", cpus: str = "8") -> Node:
    labels = {NODE_CLASS: node_class} | ({"kubernetes.io/arch": arch} if arch else {})
    return msgspec.convert({"metadata": {"name": "n", "labels": labels}, "status": {"capacity": {"cpu": cpus}}}, Node)


def test_a_class_without_a_node_is_no_flavor() -> None:
    assert list(flavors_of([SMALL], [])) == []
    assert [flavor.id for flavor in flavors_of([SMALL, OPEN], [node("open")])] == ["open"]


@pytest.mark.parametrize(
    ("arches", "expected"),
    [
        (["amd64"], "x86_64"),
        (["arm64"], "aarch64"),
        (["arm64", "amd64", "arm64"], "aarch64"),
        (["arm64", "amd64"], "aarch64"),
        (["s390x", "amd64"], "x86_64"),
    ],
)
def test_a_flavor_has_the_architecture_of_most_of_its_nodes(arches: list[str], expected: str) -> None:
    (flavor,) = flavors_of([SMALL], [node("small", arch) for arch in arches])
    assert flavor.architecture == expected


@pytest.mark.parametrize("arch", ["s390x", "", None])
def test_nodes_whose_architecture_nobody_knows_are_not_on_offer(arch: str | None) -> None:
    assert list(flavors_of([SMALL], [node("small", arch)])) == []


def test_cpus_are_what_the_operator_says_or_else_what_the_least_of_the_nodes_has() -> None:
    nodes = [node("small", cpus="64"), node("open", cpus="64"), node("open", cpus="32")]
    assert [flavor.cpus for flavor in flavors_of([SMALL, OPEN], nodes)] == [4, 32]
    assert list(flavors_of([OPEN], [node("open", cpus="500m")])) == []


def _kubeconfig(
    *, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, current: str = "x", **more: Any
) -> Secret:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": "https://k.example.com"} | (cluster or {})}],
        "users": [{"name": "u", "user": {"token": "canary"} if user is None else user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": current,
    }
    return Secret(msgspec.json.encode(config | more).decode())


def test_a_kubeconfig_with_everything_in_it_is_used() -> None:
    found = source_of(_kubeconfig())()
    assert found.cluster.server == "https://k.example.com"
    assert found.user is not None
    assert found.user.token == "canary"


@pytest.mark.parametrize(
    "config",
    [
        _kubeconfig(user={"exec": {"apiVersion": "v1", "command": "canary"}}),
        _kubeconfig(user={"tokenFile": "/etc/canary"}),
        _kubeconfig(user={"client-certificate": "/etc/canary", "client-key": "/etc/canary"}),
        _kubeconfig(user={"auth-provider": {"name": "canary"}}),
        _kubeconfig(cluster={"certificate-authority": "/etc/canary"}),
    ],
)
def test_a_kubeconfig_that_runs_a_program_or_reads_a_file_is_refused(config: Secret) -> None:
    with pytest.raises(Unavailable, match="runs a program or refers to a file") as caught:
        source_of(config)()
    assert "canary" not in caught.value.message


@pytest.mark.parametrize(
    "config",
    [
        Secret("canary: [canary: canary"),
        Secret("canary"),
        Secret("- canary"),
        Secret("!!python/object/apply:os.system [canary]"),
        _kubeconfig(current="canary"),
        _kubeconfig(contexts=[{"name": "x", "context": {"cluster": "c"}}]),
        _kubeconfig(users=[{"name": "u", "user": {"token": ["canary"]}}]),
    ],
)
def test_what_is_no_kubeconfig_is_told_without_a_word_of_it(config: Secret) -> None:
    with pytest.raises(Unavailable, match="not a kubeconfig") as caught:
        source_of(config)()
    assert "canary" not in caught.value.message
    assert caught.value.__context__ is None or "canary" not in str(caught.value.__context__)
