"""Exposition of the metrics of a process to Prometheus, for a listener of their own.

Rendering all metrics takes milliseconds of the interpreter, so it runs in a thread, and at most once a second for each
format: readers who ask meanwhile get the same bytes. A token may be required. Nothing else is served.
"""

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPENMETRICS_1_0_0
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import Collector

from remuda.http.asgi import Receive, Scope, Send
from remuda.http.errors import NO_CACHE, error_response
from remuda.http.negotiation import accepts_gzip, qualities
from remuda.http.request import observation_of
from remuda.http.responses import Response
from remuda.http.server.limits import ConnectionLimits
from remuda.http.server.server import BoundSocket, CannotListen, ListenAddress, listen
from remuda.http.server.tls import TlsSettings
from remuda.kernel.clock import Clock
from remuda.kernel.errors import NotAllowed, NotFound, RemudaError, Unauthenticated
from remuda.kernel.secrets import Secret

PATH = "/metrics"

DEFAULT_ADDRESS = ListenAddress("127.0.0.1", 9464)
"""Default address of the metrics. Its port is the usual one of an exporter inside a process."""

LIMITS = ConnectionLimits(head_s=5.0, head_bytes=16 * 1024, headers=50, idle_s=60.0, connections=64, pipelined=2)
"""Limits of the listener: it has few readers."""

_TTL_S = 1.0
_METHODS = ("GET", "HEAD")
_COMPRESSION_LEVEL = 6
_OPENMETRICS, _TEXT = "application/openmetrics-text", "text/plain"
_CONTENT_TYPES: Mapping[str, str] = {_OPENMETRICS: OPENMETRICS_1_0_0, _TEXT: CONTENT_TYPE_PLAIN_0_0_4}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings:
    """Address of the metrics, and the token that readers need."""

    listen: ListenAddress = DEFAULT_ADDRESS
    takes_free_port: bool = False
    """Whether a free port will do while another process has that of `listen`."""
    token: Secret | None = None
    tls: TlsSettings | None = None
    """None if they are served without TLS."""


def listen_for_metrics(settings: MetricsSettings) -> BoundSocket:
    """Listen on the address of the metrics, or raise CannotListen."""
    try:
        return listen(settings.listen)
    except CannotListen:
        if not settings.takes_free_port:
            raise
    found = listen(ListenAddress(settings.listen.host, 0))
    structlog.get_logger().warning(
        "metrics are served on another port", taken=str(settings.listen), address=str(found.address)
    )
    return found


@dataclass(frozen=True, slots=True)
class Format:
    """Format of a rendering, as a reader negotiates it."""

    media_type: str
    is_compressed: bool

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        headers = (
            (b"content-type", _CONTENT_TYPES[self.media_type].encode()),
            (b"vary", b"accept, accept-encoding"),
            NO_CACHE,
        )
        return (*headers, (b"content-encoding", b"gzip")) if self.is_compressed else headers


def negotiated(headers: Mapping[bytes, bytes]) -> Format:
    """Return the format for a request: OpenMetrics only if it is asked for by name, and not less than plain text."""
    media = qualities(headers.get(b"accept", b""))
    openmetrics = media.get(_OPENMETRICS, 0.0)
    plain = next((media[each] for each in (_TEXT, "text/*", "*/*") if each in media), 0.0)
    return Format(
        media_type=_OPENMETRICS if openmetrics and openmetrics >= plain else _TEXT,
        is_compressed=accepts_gzip(headers),
    )


RunRendering = Callable[[Callable[[], bytes]], Awaitable[bytes]]
"""Runs a rendering outside the event loop."""


class Exposition:
    """The rendered metrics of a registry, each format at most once a second."""

    def __init__(self, registry: CollectorRegistry, clock: Clock, *, run: RunRendering = asyncio.to_thread) -> None:
        self._registry, self._clock, self._run = registry, clock, run
        self._running: dict[Format, asyncio.Task[bytes]] = {}
        self._rendered: dict[Format, tuple[float, bytes]] = {}
        """The last rendering of each format, and when it was complete."""

    async def rendered(self, form: Format) -> bytes:
        """Return the metrics as they were at most a second ago."""
        last = self._rendered.get(form)
        if last is not None and self._clock.monotonic() < last[0] + _TTL_S:
            return last[1]
        running = self._running.get(form)
        if running is None:
            running = self._running[form] = asyncio.ensure_future(self._render(form))
        return await asyncio.shield(running)  # a reader who leaves does not cancel it for the others

    async def _render(self, form: Format) -> bytes:
        try:
            body = await self._run(lambda: _render(self._registry, form))
        finally:
            del self._running[form]
        self._rendered[form] = (self._clock.monotonic(), body)
        return body


def _render(registry: CollectorRegistry, form: Format) -> bytes:
    shown = _Shown(registry)
    body: bytes = (
        generate_openmetrics(shown)  # type: ignore[no-untyped-call]
        if form.media_type == _OPENMETRICS
        else generate_latest(shown)
    )
    return gzip.compress(body, _COMPRESSION_LEVEL, mtime=0) if form.is_compressed else body


class _Shown(Collector):
    """A registry without the times at which series were created: half as many series again, which no query needs."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric


class MetricsPage:
    """The application of the metrics listener."""

    def __init__(self, render: Callable[[Format], Awaitable[bytes]], *, token: Secret | None = None) -> None:
        """Require the token, if there is one, as `Authorization: Bearer`."""
        self._render, self._token = render, token

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        seen = observation_of(scope)
        try:
            response = await self._respond(scope)
        except RemudaError as error:
            seen.error_code = error.code
            response = error_response(error, trace_id=seen.trace_id)
        if scope["method"] == "HEAD":
            await response.send_head(send)
        else:
            await response.send(send)

    async def _respond(self, scope: Scope) -> Response:
        headers = dict(scope["headers"])
        if not self._is_allowed(headers.get(b"authorization", b"")):
            raise Unauthenticated("The metrics need the token of metrics.token_file: send it as a bearer token.")
        if scope["path"] != PATH:
            raise NotFound("path", scope["path"])
        if scope["method"] not in _METHODS:
            raise NotAllowed(_METHODS)
        form = negotiated(headers)
        return Response(HTTPStatus.OK, await self._render(form), form.headers)

    def _is_allowed(self, authorization: bytes) -> bool:
        if self._token is None:
            return True
        scheme, _, token = authorization.partition(b" ")
        return scheme.lower() == b"bearer" and Secret(token.strip().decode("latin-1")) == self._token
