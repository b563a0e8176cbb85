"""The provider itself: it looks at a cluster's nodes when it is asked for flavors.

Nodes and their classes: which flavors a cluster has.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import msgspec
import structlog

from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unavailable
from remuda.kernel.secrets import Secret
from remuda.providers.contract.catalogue import Architecture, Flavor, Gpu
from remuda.providers.contract.provider import Provider
from remuda.providers.kubernetes.kubeconfig import source_of
from remuda.store.kubernetes.client import ApiClient, Login, Request

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


_PAGE = 100  # a node is tens of kilobytes, most of which is of no interest here
_SILENT = "The cluster of this region does not answer as it should: try again later."


class _Place(msgspec.Struct, frozen=True, rename={"next": "continue"}):
    next: str = ""


class _NodeList(msgspec.Struct, frozen=True):
    items: list[Node]
    metadata: _Place = _Place()


class KubernetesCloud:
    """A cluster. It is spoken to when it is first asked something, so one that cannot be reached stops nothing else."""

    def __init__(self, kubeconfig: Secret, classes: Sequence[NodeClass], *, clock: Clock) -> None:
        self._kubeconfig, self._classes, self._clock = kubeconfig, tuple(classes), clock
        self._client: ApiClient | None = None

    @property
    def provider(self) -> Provider:
        """It, as a provider: with flavors and nothing else."""
        return Provider(type="kubernetes", catalogue=self)

    async def flavors(self) -> Sequence[Flavor]:
        """Return a flavor for each class of which the cluster has a node."""
        try:
            return tuple(offered(self._classes, await self._nodes()))
        except Unavailable as error:
            # What went wrong names addresses of the inside: it is for the log, not for whoever asked.
            structlog.get_logger().warning("cluster does not answer", cause=error.sentence)
            raise Unavailable(_SILENT) from None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _nodes(self) -> list[Node]:
        nodes: list[Node] = []
        place = ""
        while True:
            page = await self._page(place)
            nodes += page.items
            place = page.metadata.next
            if not place:
                return nodes

    async def _page(self, place: str) -> _NodeList:
        query = {"labelSelector": NODE_CLASS, "limit": str(_PAGE)} | ({"continue": place} if place else {})
        request = Request(verb="list", kind="nodes", path="/api/v1/nodes", query=query)
        # Whoever calls a provider tries again by itself: it is asked once.
        answer = await self._connected().call(request, retry_for_s=0)
        if not answer.is_success:
            raise Unavailable(f"the cluster refuses: {answer.failure().message}")
        try:
            return msgspec.json.decode(answer.body, type=_NodeList)
        except msgspec.MsgspecError as error:
            raise Unavailable(f"the cluster answers what is no list of nodes: {error}") from None

    def _connected(self) -> ApiClient:
        if self._client is None:
            self._client = ApiClient(Login(source_of(self._kubeconfig)), self._clock)
        return self._client
