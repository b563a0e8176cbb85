"""Fetching from an address that somebody else chose.

A name is resolved once, every number it stands for is checked, and the connection goes to one of these numbers: whoever
answers differently the next time has nobody to answer to. The server is still asked by its name, and TLS still wants a
certificate for that name. A redirect is a new address and goes through all of it again.

Each request has a client of its own, so no cookie and no connection is shared between two of them. Nothing is asked for
packed and nothing is unpacked. What went wrong is told without the answer's content and without any number of ours.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from remuda.kernel.exchange import NotSent, ResponseLost
from remuda.outbound.addresses import AddressPolicy, IpAddress, Resolver, Target, read_target
from remuda.outbound.client import new_client, new_tls, transport_errors

if TYPE_CHECKING:
    import httpx2

_MOST_REDIRECTS = 5
_MOST_TRIED = 4
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class FetchFailed(Exception):  # noqa: N818  it says what the address is
    """Raised when nothing can be read from an address; `is_temporary` tells whether trying again later makes sense."""

    def __init__(self, reason: str, *, is_temporary: bool) -> None:
        super().__init__(reason)
        self.reason, self.is_temporary = reason, is_temporary


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchTimeouts:
    """How long a server may take to be connected to, and to say the next thing."""

    connect_s: float = 10.0
    stall_s: float = 30.0


class OpenResponse:
    """An answer that has begun."""

    def __init__(self, response: "httpx2.Response", deadline: float, stall_s: float) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        """By name, in any case."""
        self._chunks = response.aiter_raw()
        self._deadline, self._stall_s = deadline, stall_s

    async def read(self) -> bytes:
        """Return the next bytes as they came over the wire, none at the end, or raise FetchFailed."""
        patience = asyncio.get_running_loop().time() + self._stall_s
        try:
            async with asyncio.timeout_at(min(self._deadline, patience)):
                with transport_errors():
                    return await anext(self._chunks, b"")
        except TimeoutError:
            raise FetchFailed("its response stalls or takes too long", is_temporary=True) from None
        except (NotSent, ResponseLost):
            raise FetchFailed("its response breaks off", is_temporary=True) from None

    async def close(self) -> None:
        """Stop reading."""
        await self._chunks.aclose()


class GuardedFetcher:
    """Opens addresses within a reach. `tls` is for tests; without it, servers are verified as everybody does."""

    def __init__(
        self,
        *,
        resolve: Resolver,
        reach: AddressPolicy = AddressPolicy(),  # noqa: B008  it is a frozen value
        patience: FetchTimeouts = FetchTimeouts(),  # noqa: B008  same
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._resolve, self._reach, self._patience, self._tls = resolve, reach, patience, tls
        self._making = asyncio.Lock()

    @asynccontextmanager
    async def open(self, url: str, headers: Mapping[str, str], *, total_s: float) -> AsyncIterator[OpenResponse]:
        """Ask for what is at a URL, and give its answer, whatever the status, or raise FetchFailed.

        From here until the last byte is read no more than `total_s` may pass.
        """
        deadline = asyncio.get_running_loop().time() + total_s
        target = read_target(url)
        if target is None:
            raise FetchFailed("it is not a plain http or https URL", is_temporary=False)
        async with contextlib.AsyncExitStack() as held:
            try:
                async with asyncio.timeout_at(deadline):
                    response = await self._follow(target, headers, held)
            except TimeoutError:
                raise FetchFailed("it does not respond in time", is_temporary=True) from None
            opened = OpenResponse(response, deadline, self._patience.stall_s)
            held.push_async_callback(opened.close)
            yield opened

    async def _follow(
        self, target: Target, headers: Mapping[str, str], held: contextlib.AsyncExitStack
    ) -> "httpx2.Response":
        for _ in range(1 + _MOST_REDIRECTS):
            response = await self._ask(target, headers, held)
            location = response.headers.get("location")
            if response.status_code not in _REDIRECTS or location is None:
                return response
            await held.aclose()
            elsewhere = target.redirected(location)
            if elsewhere is None:
                raise FetchFailed("it redirects to something that is not a plain http or https URL", is_temporary=False)
            target = elsewhere
        raise FetchFailed(f"it redirects more than {_MOST_REDIRECTS} times", is_temporary=False)

    async def _ask(
        self, target: Target, headers: Mapping[str, str], held: contextlib.AsyncExitStack
    ) -> "httpx2.Response":
        addresses = await self._addresses(target)
        tls = await self._verifying()
        for address in addresses[:_MOST_TRIED]:
            client = await held.enter_async_context(self._client(tls))
            request = client.build_request(
                "GET",
                target.at(address),
                headers={**headers, "Host": target.authority, "Accept-Encoding": "identity"},
                extensions={} if target.literal else {"sni_hostname": target.host},
            )
            try:
                with transport_errors():
                    response = await client.send(request, stream=True)
            except NotSent:
                continue
            except ResponseLost:
                raise FetchFailed("it does not respond correctly", is_temporary=True) from None
            held.push_async_callback(response.aclose)
            return response
        raise FetchFailed("it cannot be connected to", is_temporary=True)

    async def _addresses(self, target: Target) -> Sequence[IpAddress]:
        if target.literal:
            found: Sequence[IpAddress] = [target.literal]
        else:
            try:
                found = await self._resolve(target.host, target.port)
            except (OSError, ValueError):
                raise FetchFailed("its name is unknown", is_temporary=True) from None
        if not all(map(self._reach.allows, found)):
            raise FetchFailed("it is not on the public Internet", is_temporary=False)
        return found

    def _client(self, tls: ssl.SSLContext) -> "httpx2.AsyncClient":
        import httpx2  # noqa: PLC0415  it is there by now

        return new_client(httpx2.Timeout(self._patience.stall_s, connect=self._patience.connect_s), tls=tls)

    async def _verifying(self) -> ssl.SSLContext:
        async with self._making:
            if self._tls is None:
                self._tls = await asyncio.to_thread(new_tls)
            return self._tls
