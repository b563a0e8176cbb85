"""Fetcher of URLs that users name, protected against server-side request forgery.

A name is resolved once, every address is checked, and the connection goes to one of the checked addresses, so another
response of the name server has no effect. The request still has the name, and TLS verifies it. A redirect is checked in
the same way. Each request has its own client, so requests share neither cookies nor connections. Content is neither
requested nor decoded in compressed form. Errors quote neither the response nor an address of ours.

Lookups of names are few, and those of a silent name server take long. Each client has a share of them, and a lookup
counts until it really ends, also after the request was given up: otherwise one client's names would delay all others.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from remuda.kernel.exchange import NotSent, ResponseLost
from remuda.kernel.fair_slots import FairSlots
from remuda.outbound.addresses import AddressPolicy, IpAddress, Resolver, Target, read_target
from remuda.outbound.client import new_client, new_tls, transport_errors

if TYPE_CHECKING:
    import httpx2

_MAX_REDIRECTS = 5
_MAX_ADDRESSES = 4
_LOOKUPS, _LOOKUPS_OF_CLIENT = 16, 2
"""Concurrent lookups of names, and those of one client."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class FetchFailed(Exception):  # noqa: N818  it states what happened
    """Raised when nothing can be read from a URL; `is_temporary` tells whether a retry may help."""

    def __init__(self, reason: str, *, is_temporary: bool) -> None:
        super().__init__(reason)
        self.reason, self.is_temporary = reason, is_temporary


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchTimeouts:
    """Time to connect, and between two parts of a response."""

    connect_s: float = 10.0
    stall_s: float = 30.0


class OpenResponse:
    """Response whose body is read in parts."""

    def __init__(self, response: "httpx2.Response", deadline: float, stall_s: float) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        """By name, in any case."""
        self._chunks = response.aiter_raw()
        self._deadline, self._stall_s = deadline, stall_s

    async def read(self) -> bytes:
        """Return the next bytes as they were received, none at the end, or raise FetchFailed."""
        stalled_at = asyncio.get_running_loop().time() + self._stall_s
        try:
            async with asyncio.timeout_at(min(self._deadline, stalled_at)):
                with transport_errors():
                    return await anext(self._chunks, b"")
        except TimeoutError:
            raise FetchFailed("its response stalls or takes too long", is_temporary=True) from None
        except (NotSent, ResponseLost):
            raise FetchFailed("its response breaks off", is_temporary=True) from None

    async def close(self) -> None:
        await self._chunks.aclose()


class GuardedFetcher:
    """Fetcher of URLs with permitted addresses. Tests pass `tls`; by default, it trusts the public authorities."""

    def __init__(
        self,
        *,
        resolve: Resolver,
        reach: AddressPolicy = AddressPolicy(),  # noqa: B008  it is a frozen value
        timeouts: FetchTimeouts = FetchTimeouts(),  # noqa: B008  same
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._resolve, self._reach, self._timeouts, self._tls = resolve, reach, timeouts, tls
        self._tls_lock = asyncio.Lock()
        self._slots = FairSlots(_LOOKUPS, share=_LOOKUPS_OF_CLIENT)
        self._lookups: set[asyncio.Task[Sequence[IpAddress]]] = set()

    @asynccontextmanager
    async def open(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        total_s: float,
        client: str = "",
        method: str = "GET",
        content: bytes | None = None,
        redirects: int = _MAX_REDIRECTS,
    ) -> AsyncIterator[OpenResponse]:
        """Yield the response of a request, whatever its status. `total_s` is the time until its last byte.

        `client` is whom the request is for: names that one client chooses never keep those of another from lookup.
        """
        deadline = asyncio.get_running_loop().time() + total_s
        target = read_target(url)
        if target is None:
            raise FetchFailed("it is not a plain http or https URL", is_temporary=False)
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout_at(deadline):
                    response = await self._follow_redirects(
                        target, stack, redirects, client=client, method=method, headers=headers, content=content
                    )
            except TimeoutError:
                raise FetchFailed("it does not respond in time", is_temporary=True) from None
            opened = OpenResponse(response, deadline, self._timeouts.stall_s)
            stack.push_async_callback(opened.close)
            yield opened

    async def _follow_redirects(
        self, target: Target, stack: contextlib.AsyncExitStack, redirects: int, **request: Any
    ) -> "httpx2.Response":
        for _ in range(1 + redirects):
            response = await self._send(target, stack, **request)
            location = response.headers.get("location")
            if response.status_code not in _REDIRECTS or location is None or not redirects:
                return response
            await stack.aclose()
            redirected = target.redirected(location)
            if redirected is None:
                raise FetchFailed("it redirects to something that is not a plain http or https URL", is_temporary=False)
            target = redirected
        raise FetchFailed(f"it redirects more than {redirects} times", is_temporary=False)

    async def _send(
        self,
        target: Target,
        stack: contextlib.AsyncExitStack,
        *,
        client: str,
        method: str,
        headers: Mapping[str, str],
        content: bytes | None,
    ) -> "httpx2.Response":
        addresses = await self._addresses(target, client)
        tls = await self._tls_context()
        for address in addresses[:_MAX_ADDRESSES]:
            http = await stack.enter_async_context(self._client(tls))
            request = http.build_request(
                method,
                target.at(address),
                content=content,
                headers={**headers, "Host": target.authority, "Accept-Encoding": "identity"},
                extensions={} if target.literal else {"sni_hostname": target.host},
            )
            try:
                with transport_errors():
                    response = await http.send(request, stream=True)
            except NotSent:
                continue
            except ResponseLost:
                raise FetchFailed("it does not respond correctly", is_temporary=True) from None
            stack.push_async_callback(response.aclose)
            return response
        raise FetchFailed("it cannot be connected to", is_temporary=True)

    async def _addresses(self, target: Target, client: str) -> Sequence[IpAddress]:
        if target.literal:
            found: Sequence[IpAddress] = [target.literal]
        else:
            try:
                found = await self._resolved(target, client)
            except (OSError, ValueError):
                raise FetchFailed("its name is unknown", is_temporary=True) from None
        if not all(map(self._reach.allows, found)):
            raise FetchFailed("it is not on the public Internet", is_temporary=False)
        return found

    async def _resolved(self, target: Target, client: str) -> Sequence[IpAddress]:
        """Return the addresses of a name. The lookup keeps its slot until it ends, even if this call is cancelled."""
        await self._slots.take(client)
        lookup = asyncio.create_task(self._lookup(target), name="lookup of a name")
        self._lookups.add(lookup)
        lookup.add_done_callback(partial(self._end_lookup, client))
        return await asyncio.shield(lookup)

    async def _lookup(self, target: Target) -> Sequence[IpAddress]:
        return await self._resolve(target.host, target.port)

    def _end_lookup(self, client: str, lookup: asyncio.Task[Sequence[IpAddress]]) -> None:
        self._lookups.discard(lookup)
        self._slots.release(client)
        if not lookup.cancelled():
            lookup.exception()  # read it, as the caller may be gone

    def _client(self, tls: ssl.SSLContext) -> "httpx2.AsyncClient":
        import httpx2  # noqa: PLC0415  it is there by now

        return new_client(httpx2.Timeout(self._timeouts.stall_s, connect=self._timeouts.connect_s), tls=tls)

    async def _tls_context(self) -> ssl.SSLContext:
        async with self._tls_lock:
            if self._tls is None:
                self._tls = await asyncio.to_thread(new_tls)
            return self._tls
