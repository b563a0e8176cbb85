"""Servers of identity providers in simulated time, some of which never respond."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from remuda.identity.ports import Fetch
from remuda.outbound.addresses import AddressPolicy
from remuda.outbound.fetch import FetchFailed, GuardedFetcher


class _Whole:
    """A response that comes in one piece."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status, self.headers, self._left = status, dict[str, str](), [body]

    async def read(self) -> bytes:
        return self._left.pop() if self._left else b""


class Servers(GuardedFetcher):
    """The Web: a provider that answers at once, and servers below `.silent.test` that never do."""

    def __init__(self, provider: Fetch) -> None:
        super().__init__(resolve=self._no_names, reach=AddressPolicy())
        self._provider = provider
        self.open_for: Counter[str] = Counter()
        """Requests in progress, by client."""
        self.most_for: Counter[str] = Counter()
        """The most at the same time."""

    async def _no_names(self, host: str, port: int) -> Any:
        raise AssertionError(f"{host}:{port} is not looked up here")

    @asynccontextmanager
    async def open(  # type: ignore[override]  # what it yields only looks like a response
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        total_s: float,
        client: str = "",
        method: str = "GET",
        content: bytes | None = None,
        redirects: int = 0,
    ) -> AsyncIterator[_Whole]:
        assert redirects == 0
        self.open_for[client] += 1
        self.most_for[client] = max(self.most_for[client], self.open_for[client])
        try:
            async with asyncio.timeout(total_s):
                if ".silent.test" in url:
                    await asyncio.Event().wait()
                fetched = await self._provider(method, url, dict(headers), content, organization=client)
                yield _Whole(fetched.status, fetched.body)
        except TimeoutError:
            raise FetchFailed("it does not respond in time", is_temporary=True) from None
        finally:
            self.open_for[client] -= 1
