"""The provider itself: it looks at a cluster's nodes when it is asked for flavors."""

from collections.abc import Sequence

import msgspec
import structlog

from remuda.kernel.clock import Clock
from remuda.kernel.errors import Unavailable
from remuda.kernel.secrets import Secret
from remuda.providers.contract.catalogue import Flavor
from remuda.providers.contract.provider import Provider
from remuda.providers.kubernetes.kubeconfig import source_of
from remuda.providers.kubernetes.nodes import NODE_CLASS, Node, NodeClass, offered
from remuda.store.kubernetes.client import ApiClient, Login, Request

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
        answer = await self._connected().call(request, patience_s=0)
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
