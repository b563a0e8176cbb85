"""Lists of an API: responses with collections that are not watched, and the accounts of what was read for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from remuda.access.principal import Principal
from remuda.http.buffer_shares import BufferShares
from remuda.http.dispatch import whole_path_of
from remuda.http.list_cache import ListCache
from remuda.http.page_reads import Reading, reader_key
from remuda.http.pagination import Cursors, PageTokens, list_response
from remuda.http.proxies import ForwardingProxies
from remuda.http.ratelimit import HEADERS, RateLimiter
from remuda.http.request import InboundRequest
from remuda.http.responses import Collection, Response
from remuda.kernel.fair_slots import FairSlots
from remuda.kernel.sealing import Sealer


@dataclass(frozen=True, slots=True, kw_only=True)
class Lists:
    """The lists of an API, and the limits of reading them."""

    cache: ListCache
    sealer: Sealer
    slots: FairSlots
    limiter: RateLimiter
    buffers: BufferShares
    forwarding: ForwardingProxies

    def reading(self, inbound: InboundRequest, principal: Principal) -> Reading:
        """Return the read of many objects for a request."""
        return _RequestReading(self, inbound, principal)

    async def respond(
        self, inbound: InboundRequest, principal: Principal, collection: Collection[Any, Any]
    ) -> Response:
        """Return a complete list or a page of it."""
        return await list_response(
            collection,
            inbound.query,
            PageTokens(self.sealer, path=whole_path_of(inbound.scope), caller=principal.caller),
            Cursors(principal.access),
            reading=self.reading(inbound, principal),
            query_string=inbound.scope["query_string"].decode("latin-1"),
            lists=self.cache,
            if_none_match=inbound.headers.get(b"if-none-match"),
        )


class _RequestReading(Reading):
    """The read of many objects for a request of a caller, which has quota and a share of the memory."""

    __slots__ = ("_inbound", "_lists", "_principal")

    def __init__(self, lists: Lists, inbound: InboundRequest, principal: Principal) -> None:
        super().__init__(lists.slots, reader_key(principal))
        self._lists, self._inbound, self._principal = lists, inbound, principal

    def _check_quota(self) -> None:
        if self._is_limited:
            self._lists.limiter.take(self._principal.actor_name, 0)

    @contextmanager
    def _memory(self, size: int) -> Iterator[None]:
        inbound = self._inbound
        inbound.count_bytes(self._lists.buffers, self._lists.forwarding, size)
        assert inbound.buffered is not None, "bytes were counted"
        try:
            yield
        finally:
            inbound.buffered.remove(size)

    def _charge(self, requests: int) -> None:
        if self._is_limited:
            headers = self._lists.limiter.charge(self._principal.actor_name, requests)
            others = [each for each in self._inbound.extra_headers if each[0] not in HEADERS]
            self._inbound.extra_headers = (*others, *headers)

    @property
    def _is_limited(self) -> bool:
        """Whether the caller has a quota. A service has none for this: it reads for the system, or for many callers."""
        return self._inbound.caller is not None and self._principal.type != "system"
