"""Nodes and their classes: which flavors a cluster has."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import msgspec

from remuda.providers.contract.catalogue import Architecture, Flavor, Gpu

NODE_CLASS = "kubernetes.region.unikorn-cloud.org/node-class"
"""The label by which a node says what class it is of."""

_ARCHITECTURE = "kubernetes.io/arch"
_ARCHITECTURES: Mapping[str, Architecture] = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClass:
    """A sort of node, as the region's operator describes it."""

    id: str
    name: str
    cpus: int | None = None
    """As the cluster says, if the operator does not."""
    cpu_family: str = ""
    memory_bytes: int
    disk_bytes: int
    gpu: Gpu | None = None


class NodeMetadata(msgspec.Struct, frozen=True):
    """The part of it that we read."""

    name: str
    labels: dict[str, str] = {}


class NodeStatus(msgspec.Struct, frozen=True):
    """The part of it that we read."""

    capacity: dict[str, str] = {}


class Node(msgspec.Struct, frozen=True):
    """The part of a cluster's node that we read."""

    metadata: NodeMetadata
    status: NodeStatus = NodeStatus()

    @property
    def node_class(self) -> str:
        return self.metadata.labels.get(NODE_CLASS, "")

    @property
    def architecture(self) -> Architecture | None:
        """What its processors understand, if it is anything that we know."""
        return _ARCHITECTURES.get(self.metadata.labels.get(_ARCHITECTURE, ""))

    @property
    def cpus(self) -> int:
        """How many processors it has."""
        try:
            return int(Decimal(self.status.capacity.get("cpu", "")))
        except InvalidOperation:  # a share of one processor, such as 500m
            return 0


def offered(classes: Iterable[NodeClass], nodes: Sequence[Node]) -> Iterator[Flavor]:
    """Yield a flavor for each class of which there is a node, as most of its nodes are."""
    for each in classes:
        ours = [node for node in nodes if node.node_class == each.id]
        architectures = Counter(sorted(node.architecture for node in ours if node.architecture))
        cpus = each.cpus or min((node.cpus for node in ours), default=0)
        if architectures and cpus:
            yield Flavor(
                id=each.id,
                name=each.name,
                cpus=cpus,
                cpu_family=each.cpu_family,
                memory_bytes=each.memory_bytes,
                disk_bytes=each.disk_bytes,
                architecture=architectures.most_common(1)[0][0],
                gpu=each.gpu,
            )
