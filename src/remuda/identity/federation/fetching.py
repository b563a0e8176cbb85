"""Asking the servers of external providers, within limits: ten seconds, one mebibyte, no redirects, TLS, few at once.

An organization's administrators choose the address of their provider, so what is asked here is theirs to choose. What
comes back is never shown to them, and TLS keeps them from our neighbours: no server inside has a certificate for a name
of theirs. Plain HTTP is spoken only to this machine itself, and only where an operator allows it: in development, when
our own address is there too.
"""

import asyncio
import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from remuda.identity.ports import Fetched
from remuda.kernel.errors import ServerUnreachable
from remuda.outbound.fetch import new_client

if TYPE_CHECKING:
    import httpx2


_LONGEST = 1024 * 1024
_TIME_S = 10.0
_AT_ONCE = 4
"""How often one server is asked at the same time: a slow one holds no more of us than that, and is not stormed."""


class Fetcher:
    """The real `Fetch`. Close it at the end."""

    def __init__(self, *, allow_loopback: bool = False, time_s: float = _TIME_S, longest: int = _LONGEST) -> None:
        self._allow_loopback, self._time_s, self._longest = allow_loopback, time_s, longest
        self._http: httpx2.AsyncClient | None = None
        self._making = asyncio.Lock()
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        """By server; whoever waits or asks holds its own, so it is gone after the last one."""

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def __call__(self, method: str, url: str, headers: dict[str, str], body: bytes | None) -> Fetched:
        """Return the answer, or raise Unavailable."""
        self._check(url)
        server, http = urlsplit(url).netloc, await self._client()
        import httpx2  # noqa: PLC0415  it is there by now

        try:
            async with asyncio.timeout(self._time_s), self._turn(server):
                return await self._fetch(http, method, url, headers, body)
        except TimeoutError:
            raise ServerUnreachable(server, f"no answer within {self._time_s:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ServerUnreachable(server, str(error) or type(error).__name__) from None

    def _turn(self, server: str) -> asyncio.Semaphore:
        return self._turns.setdefault(server, asyncio.Semaphore(_AT_ONCE))

    async def _client(self) -> "httpx2.AsyncClient":
        async with self._making:
            if self._http is None:
                self._http = await asyncio.to_thread(new_client, self._time_s)
            return self._http

    async def _fetch(
        self, http: "httpx2.AsyncClient", method: str, url: str, headers: dict[str, str], body: bytes | None
    ) -> Fetched:
        # Uncompressed, so that the limit holds for what we read into memory, too.
        asked = {**headers, "Accept-Encoding": "identity"}
        async with http.stream(method, url, headers=asked, content=body) as response:
            read = bytearray()
            async for chunk in response.aiter_raw():
                read += chunk
                if len(read) > self._longest:
                    raise ServerUnreachable(urlsplit(url).netloc, f"its answer is longer than {self._longest} bytes")
            return Fetched(status=response.status_code, body=bytes(read))

    def _check(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            is_local = is_loopback(parts.hostname or "")
        except ValueError:
            raise ServerUnreachable("unknown", "its address is malformed") from None
        if is_local and not self._allow_loopback:
            raise ServerUnreachable(parts.netloc, "it is on this machine, which is not allowed")
        if parts.scheme != "https" and not (is_local and parts.scheme == "http"):
            raise ServerUnreachable(parts.netloc, "its address does not begin with https://")


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine itself."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return mapped.is_loopback or mapped.is_unspecified
