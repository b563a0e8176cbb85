"""A way to a plane on which answers are lost, late or refused, as a seed has it."""

import asyncio
import random
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

LATE_S = 12.0
"""Longer than the deadline of a call."""
FAULT_SHARE = 0.1
FAULTS = {
    "answer lost": 4,
    "reset": 4,
    "error after the effect": 3,
    "error": 3,
    "limited": 3,
    "late": 1,
}
"""Faults with their weights."""

_ADDRESS = re.compile(rb"http://127\.0\.0\.1:(\d+)")
_HOP_BY_HOP = {"connection", "content-length", "content-encoding", "host", "transfer-encoding"}


class FaultProxy:
    """Passes requests on to the service at the port that their path begins with."""

    def __init__(self, seed: int, session: aiohttp.ClientSession) -> None:
        self._random, self._session = random.Random(seed), session
        self.url = ""
        self.faults: Counter[str] = Counter()
        self.is_faulty = True

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        content = await request.read()
        fault = self._next_fault()
        self.faults[fault] += 1
        match fault:
            case "reset":
                return _hung_up(request)
            case "error":
                return web.Response(status=self._random.choice((500, 503)))
            case "limited":
                return web.Response(status=429, headers={"Retry-After": "1"})
        response = await self._forward(request, content)
        match fault:
            case "answer lost":
                return _hung_up(request)
            case "error after the effect":
                return web.Response(status=504)
            case "late":
                await asyncio.sleep(LATE_S)
        return response

    def _next_fault(self) -> str:
        if not self.is_faulty or self._random.random() > FAULT_SHARE:
            return "none"
        return self._random.choices(list(FAULTS), weights=list(FAULTS.values()))[0]

    async def _forward(self, request: web.BaseRequest, content: bytes) -> web.Response:
        _, port, path = request.path_qs.split("/", 2)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        url = f"http://127.0.0.1:{port}/{path}"
        async with self._session.request(
            request.method, url, data=content or None, headers=headers, allow_redirects=False
        ) as found:
            body = _ADDRESS.sub(rf"{self.url}/\1".encode(), await found.read())
            kept = {name: value for name, value in found.headers.items() if name.lower() not in _HOP_BY_HOP}
            return web.Response(status=found.status, body=body, headers=kept)


def _hung_up(request: web.BaseRequest) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response(status=500)


@asynccontextmanager
async def faulty(seed: int) -> AsyncIterator[FaultProxy]:
    """Run a proxy for the time of a `with` block."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None), auto_decompress=True) as session:
        proxy = FaultProxy(seed, session)
        runner = web.ServerRunner(web.Server(proxy.handle))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        proxy.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield proxy
        finally:
            await runner.cleanup()
