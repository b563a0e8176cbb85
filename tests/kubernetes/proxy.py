"""A way to the real API server on which a test can cause trouble: cut streams, lost answers, rejections."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

from tests.kubernetes.plane.plane import Plane

Reject = Callable[[web.BaseRequest], web.Response | None]


class Proxy:
    """Passes everything on as the administrator, until told otherwise."""

    def __init__(self, target: str, session: aiohttp.ClientSession, trust: ssl.SSLContext) -> None:
        self._target = target
        self._session = session
        self._trust = trust
        self._streams: set[asyncio.Task[Any]] = set()
        self._lost_answers = 0
        self._mute: set[asyncio.Task[Any]] = set()
        self._rejections: list[Reject] = []
        self.url = ""
        self.passed = 0

    @property
    def watches(self) -> int:
        return len(self._streams)

    def cut_watches(self) -> int:
        """Break all open watches in the middle; return how many there were."""
        streams = list(self._streams)
        for stream in streams:
            stream.cancel()
        return len(streams)

    def lose_answers(self, count: int) -> None:
        """Let the next writes reach the server, and break the connection instead of answering."""
        self._lost_answers = count

    def stall_watches(self) -> None:
        """Let all open watches fall silent without an end, as a half-open connection does."""
        for stream in self._streams:
            self._mute.add(stream)

    def reject(self, rejection: Reject, *, times: int) -> None:
        """Answer some of the next requests ourselves: those for which `rejection` returns a response."""
        self._rejections += [rejection] * times

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        for rejection in self._rejections:
            if (response := rejection(request)) is not None:
                self._rejections.remove(rejection)
                return response
        self.passed += 1
        if request.query.get("watch") == "true":
            return await self._stream(request)
        async with self._forward(request, await request.read()) as answer:
            body = await answer.read()
            if request.method != "GET" and self._lost_answers:
                self._lost_answers -= 1
                assert request.transport is not None
                request.transport.abort()
            return web.Response(status=answer.status, body=body, content_type="application/json")

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        response = web.StreamResponse()
        try:
            async with self._forward(request, b"") as answer:
                response.set_status(answer.status)
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    if task not in self._mute:
                        await response.write(chunk)
        except asyncio.CancelledError:
            if request.transport is not None:
                request.transport.abort()
            raise
        finally:
            self._streams.discard(task)
        return response

    def _forward(self, request: web.BaseRequest, body: bytes) -> Any:
        url = f"{self._target}{request.path_qs}"
        headers = {"Content-Type": "application/json"}
        return self._session.request(request.method, url, data=body, headers=headers, ssl=self._trust)


@asynccontextmanager
async def proxied(plane: Plane) -> AsyncIterator[Proxy]:
    """Run a proxy in front of a plane for the time of a `with` block."""
    trust = ssl.create_default_context(cafile=str(plane.pki / "ca.crt"))
    trust.load_cert_chain(str(plane.pki / "admin.crt"), str(plane.pki / "admin.key"))
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        proxy = Proxy(plane.url, session, trust)
        server = web.Server(proxy.handle)
        runner = web.ServerRunner(server)
        await runner.setup()
        region_storage = web.TCPSite(runner, "127.0.0.1", 0)
        await region_storage.start()
        proxy.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield proxy
        finally:
            proxy.cut_watches()
            await runner.cleanup()
    await asyncio.sleep(0.2)  # aiohttp leaves its TLS connections a moment after it has closed them


def write_plain_kubeconfig(path: Path, url: str) -> str:
    """Write a kubeconfig for a server that asks for no credentials."""
    config = {
        "clusters": [{"name": "proxy", "cluster": {"server": url}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody"}}],
        "current-context": "proxy",
    }
    path.write_bytes(msgspec.json.encode(config))
    return str(path)
