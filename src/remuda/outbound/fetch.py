"""Fetching from a URL that a user chose.

A name is resolved once, every address is checked, and the connection goes to one of these addresses, so a later DNS
response has no effect (DNS rebinding). The Host header and the TLS verification still use the name. A redirect is a new
URL and goes through all of it again.

Each request has its own client, so no cookie or connection is shared. No compression is requested, and nothing is
decompressed. Errors contain neither the response's content nor an internal address.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from remuda.outbound.addresses import Address, Reach, Resolver, Target, read_target

if TYPE_CHECKING:
    import httpx2


def new_client(timeout: "float | httpx2.Timeout", tls: ssl.SSLContext | None = None) -> "httpx2.AsyncClient":
    """Return a client that follows no redirects and takes no proxy, certificate or password from its environment.

    The first call is slow, so make it in a thread.
    """
    # httpx2 would import the first two with its first request, and block the event loop.
    import anyio._backends._asyncio  # noqa: F401, PLC0415  see above
    import httpcore2  # noqa: F401, PLC0415  same
    import httpx2  # noqa: PLC0415  same

    return httpx2.AsyncClient(timeout=timeout, verify=tls or True, follow_redirects=False, trust_env=False)


def new_tls() -> ssl.SSLContext:
    """Return a context with the usual certificate authorities. It is slow, so call it in a thread."""
    import httpx2  # noqa: PLC0415  slow to import

    return httpx2.create_ssl_context(trust_env=False)


if TYPE_CHECKING:
    import httpx2


_MOST_REDIRECTS = 5
_MOST_TRIED = 4
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Unfetchable(Exception):  # noqa: N818  the name describes the URL
    """Raised when nothing can be fetched from a URL; `may_pass` tells whether a retry makes sense."""

    def __init__(self, reason: str, *, may_pass: bool) -> None:
        super().__init__(reason)
        self.reason, self.may_pass = reason, may_pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Timeouts for the connection and for the next bytes."""

    connect_s: float = 10.0
    stall_s: float = 30.0


class Opened:
    """A response whose body is still to be read."""

    def __init__(self, response: "httpx2.Response", deadline: float, stall_s: float) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        """Case-insensitive."""
        self._chunks = response.aiter_raw()
        self._deadline, self._stall_s = deadline, stall_s

    async def read(self) -> bytes:
        """Return the next raw bytes, none at the end, or raise Unfetchable."""
        import httpx2  # noqa: PLC0415  imported already

        stalled_at = asyncio.get_running_loop().time() + self._stall_s
        try:
            async with asyncio.timeout_at(min(self._deadline, stalled_at)):
                return await anext(self._chunks, b"")
        except TimeoutError:
            raise Unfetchable("its response stalls or takes too long", may_pass=True) from None
        except (httpx2.HTTPError, httpx2.StreamError):
            raise Unfetchable("its response breaks off", may_pass=True) from None

    async def close(self) -> None:
        await self._chunks.aclose()


class Guarded:
    """Fetcher of URLs at allowed addresses. `tls` is for tests; the default trusts the usual authorities."""

    def __init__(
        self,
        *,
        resolve: Resolver,
        reach: Reach = Reach(),  # noqa: B008  it is a frozen value
        patience: Patience = Patience(),  # noqa: B008  same
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._resolve, self._reach, self._patience, self._tls = resolve, reach, patience, tls
        self._tls_lock = asyncio.Lock()

    @asynccontextmanager
    async def open(self, url: str, headers: Mapping[str, str], *, total_s: float) -> AsyncIterator[Opened]:
        """Request a URL, and yield its response, whatever the status, or raise Unfetchable.

        `total_s` is the limit until the last byte is read.
        """
        deadline = asyncio.get_running_loop().time() + total_s
        target = read_target(url)
        if target is None:
            raise Unfetchable("it is not a plain http or https URL", may_pass=False)
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout_at(deadline):
                    response = await self._follow(target, headers, stack)
            except TimeoutError:
                raise Unfetchable("it does not respond in time", may_pass=True) from None
            opened = Opened(response, deadline, self._patience.stall_s)
            stack.push_async_callback(opened.close)
            yield opened

    async def _follow(
        self, target: Target, headers: Mapping[str, str], stack: contextlib.AsyncExitStack
    ) -> "httpx2.Response":
        for _ in range(1 + _MOST_REDIRECTS):
            response = await self._request(target, headers, stack)
            location = response.headers.get("location")
            if response.status_code not in _REDIRECTS or location is None:
                return response
            await stack.aclose()
            elsewhere = target.elsewhere(location)
            if elsewhere is None:
                raise Unfetchable("it redirects to something that is not a plain http or https URL", may_pass=False)
            target = elsewhere
        raise Unfetchable(f"it redirects more than {_MOST_REDIRECTS} times", may_pass=False)

    async def _request(
        self, target: Target, headers: Mapping[str, str], stack: contextlib.AsyncExitStack
    ) -> "httpx2.Response":
        addresses = await self._addresses(target)
        tls = await self._tls_context()
        import httpx2  # noqa: PLC0415  imported already

        for address in addresses[:_MOST_TRIED]:
            client = await stack.enter_async_context(self._client(tls))
            request = client.build_request(
                "GET",
                target.at(address),
                headers={**headers, "Host": target.authority, "Accept-Encoding": "identity"},
                extensions={} if target.literal else {"sni_hostname": target.host},
            )
            try:
                response = await client.send(request, stream=True)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
            except (httpx2.HTTPError, httpx2.InvalidURL):
                raise Unfetchable("it does not respond correctly", may_pass=True) from None
            stack.push_async_callback(response.aclose)
            return response
        raise Unfetchable("it cannot be connected to", may_pass=True)

    async def _addresses(self, target: Target) -> Sequence[Address]:
        if target.literal:
            found: Sequence[Address] = [target.literal]
        else:
            try:
                found = await self._resolve(target.host, target.port)
            except (OSError, ValueError):
                raise Unfetchable("its name is unknown", may_pass=True) from None
        if not all(map(self._reach.permits, found)):
            raise Unfetchable("it is not on the public Internet", may_pass=False)
        return found

    def _client(self, tls: ssl.SSLContext) -> "httpx2.AsyncClient":
        import httpx2  # noqa: PLC0415  imported already

        return new_client(httpx2.Timeout(self._patience.stall_s, connect=self._patience.connect_s), tls)

    async def _tls_context(self) -> ssl.SSLContext:
        async with self._tls_lock:
            if self._tls is None:
                self._tls = await asyncio.to_thread(new_tls)
            return self._tls
