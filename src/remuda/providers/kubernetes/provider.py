"""Kubernetes provider: flavors derived from the classes of a cluster's nodes, read from the cluster on each call."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import msgspec
import structlog
import yaml
from lightkube.config.kubeconfig import KubeConfig, SingleConfig

from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unavailable
from remuda.kernel.secrets import Secret
from remuda.providers.contract.catalogue import CloudFlavor, CloudGpu
from remuda.providers.contract.common import Architecture
from remuda.providers.contract.provider import Provider
from remuda.store.kubernetes.client import ApiClient, ApiRequest, Login, Source

NODE_CLASS = "kubernetes.region.unikorn-cloud.org/node-class"
"""Label of a node that names its class."""

_ARCHITECTURE = "kubernetes.io/arch"
_ARCHITECTURES: Mapping[str, Architecture] = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClass:
    """A class of nodes, as the region's operator describes it."""

    id: str
    name: str
    cpus: int | None = None
    """Number of processors; the cluster's value if the operator gives none."""
    cpu_family: str = ""
    memory_bytes: int
    disk_bytes: int
    gpu: CloudGpu | None = None


class NodeMetadata(msgspec.Struct, frozen=True):
    """Part of a node's metadata that is read."""

    name: str
    labels: dict[str, str] = {}


class NodeStatus(msgspec.Struct, frozen=True):
    """Part of a node's status that is read."""

    capacity: dict[str, str] = {}


class Node(msgspec.Struct, frozen=True):
    """Part of a cluster's node that is read."""

    metadata: NodeMetadata
    status: NodeStatus = NodeStatus()

    @property
    def node_class(self) -> str:
        return self.metadata.labels.get(NODE_CLASS, "")

    @property
    def architecture(self) -> Architecture | None:
        """Architecture of its processors, if it is a known one."""
        return _ARCHITECTURES.get(self.metadata.labels.get(_ARCHITECTURE, ""))

    @property
    def cpus(self) -> int:
        try:
            return int(Decimal(self.status.capacity.get("cpu", "")))
        except InvalidOperation:  # a share of one processor, such as 500m
            return 0


def flavors_of(classes: Iterable[NodeClass], nodes: Sequence[Node]) -> Iterator[CloudFlavor]:
    """Yield a flavor for each class that has nodes, with the architecture of most of them."""
    for each in classes:
        ours = [node for node in nodes if node.node_class == each.id]
        architectures = Counter(sorted(node.architecture for node in ours if node.architecture))
        cpus = each.cpus or min((node.cpus for node in ours), default=0)
        if architectures and cpus:
            yield CloudFlavor(
                id=each.id,
                name=each.name,
                cpus=cpus,
                cpu_family=each.cpu_family,
                memory_bytes=each.memory_bytes,
                disk_bytes=each.disk_bytes,
                architecture=architectures.most_common(1)[0][0],
                gpu=each.gpu,
            )


_PAGE = 100  # a node takes tens of kilobytes
_UNAVAILABLE = "The cluster of this region does not respond correctly. Try again later."


class _ListMetadata(msgspec.Struct, frozen=True, rename={"next": "continue"}):
    next: str = ""


class _NodeList(msgspec.Struct, frozen=True):
    items: list[Node]
    metadata: _ListMetadata = _ListMetadata()


class KubernetesCloud:
    """A cluster. It is contacted by the first call, so an unreachable one does not prevent the start."""

    def __init__(self, kubeconfig: Secret, classes: Sequence[NodeClass], *, clock: Clock) -> None:
        self._kubeconfig, self._classes, self._clock = kubeconfig, tuple(classes), clock
        self._client: ApiClient | None = None

    @property
    def provider(self) -> Provider:
        """Provider of this cluster, with flavors only."""
        return Provider(type="kubernetes", catalogue=self)

    async def flavors(self) -> Sequence[CloudFlavor]:
        """Return a flavor for each class that has nodes in the cluster."""
        try:
            return tuple(flavors_of(self._classes, await self._nodes()))
        except Unavailable as error:
            # The error names internal addresses: it is for the log, not for the caller.
            structlog.get_logger().warning("cluster unavailable", cause=error.message)
            raise Unavailable(_UNAVAILABLE) from None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _nodes(self) -> list[Node]:
        nodes: list[Node] = []
        token = ""
        while True:
            page = await self._page(token)
            nodes += page.items
            token = page.metadata.next
            if not token:
                return nodes

    async def _page(self, token: str) -> _NodeList:
        query = {"labelSelector": NODE_CLASS, "limit": str(_PAGE)} | ({"continue": token} if token else {})
        request = ApiRequest(verb="list", kind="nodes", path="/api/v1/nodes", query=query)
        # The caller of a provider retries by itself, so that the request is sent once.
        response = await self._connected().call(request, retry_for_s=0)
        if not response.is_success:
            raise Unavailable(f"the cluster rejects the request: {response.failure().message}")
        try:
            return msgspec.json.decode(response.body, type=_NodeList)
        except msgspec.MsgspecError as error:
            raise Unavailable(f"the cluster's response is not a list of nodes: {error}") from None

    def _connected(self) -> ApiClient:
        if self._client is None:
            self._client = ApiClient(Login(source_of(self._kubeconfig)), self._clock)
        return self._client


def source_of(kubeconfig: Secret) -> Source:
    """Return a source of the cluster's address and credentials, which raises Unavailable if they are unusable.

    A kubeconfig comes from the store, so it must not run a program or read a file of this machine. Error messages quote
    nothing of it.
    """
    return lambda: _read(kubeconfig)


def _read(kubeconfig: Secret) -> SingleConfig:
    try:
        found = KubeConfig.from_dict(yaml.safe_load(kubeconfig.reveal())).get()
    except Exception:  # noqa: BLE001  errors of YAML and its readers quote the text, which is a secret
        found = None
    if found is None or found.user is None:
        raise _unusable("it is not a kubeconfig with a current context and a user")
    if _refers_outside(found):
        raise _unusable("it runs a program or refers to a file instead of containing all credentials")
    return found


def _refers_outside(config: SingleConfig) -> bool:
    user, cluster = config.user, config.cluster
    assert user is not None, "_read checked it"
    outside = (user.exec, user.auth_provider, user.token_file, user.client_cert, user.client_key)
    return any(outside) or bool(cluster.certificate_auth)


def _unusable(reason: str) -> Unavailable:
    return Unavailable(
        f"The kubeconfig of the cluster cannot be used ({reason}). Ask the operator to configure another one."
    )
