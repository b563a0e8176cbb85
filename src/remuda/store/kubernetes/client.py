"""Client of the API server: requests, retries and credentials.

Attempts follow `kernel.exchange`. A throttled request (429) waits, rejected credentials are renewed once, and an
unreachable server is retried until a deadline. A write is not repeated once it was sent: it raises OutcomeUnknown. The
transport is aiohttp, which costs a third of the CPU time of httpx2 per request.

Address, trust and credentials come from a kubeconfig, which is read again when the credentials expire.
"""

import asyncio
import io
import math
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Literal

import aiohttp
import httpx2
import msgspec
from aiohttp.connector import NEEDS_CLEANUP_CLOSED
from lightkube.config.client_adapter import user_auth, verify_cluster
from lightkube.config.kubeconfig import KubeConfig, SingleConfig

from remuda.kernel.backoff import Backoff
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Gone, RemudaError, ServerUnreachable, Unavailable, Unusable
from remuda.kernel.exchange import NotSent, RequestSender, ResponseLost, Retries, RetryableResponse
from remuda.kernel.randomness import Randomness, SystemRandomness

Source = Callable[[], SingleConfig]
"""Returns the address of the API server and our credentials, read again at each call."""


def kubeconfig(path: str | None = None, *, context: str | None = None) -> Source:
    """Return a source that reads a kubeconfig at each call: `path`, or the one that kubectl would use."""

    def read() -> SingleConfig:
        config = KubeConfig.from_file(path) if path else KubeConfig.from_env()
        found = config.get(context)
        if found is None:
            raise Unusable("The kubeconfig names no current context: choose one with --context.")
        return found

    return read


@dataclass(frozen=True)
class ApiCredentials:
    """The trust and headers of a request."""

    trust: ssl.SSLContext
    headers: dict[str, str]


class Login:
    """The current credentials. `renew` reads their source again: a token file, a kubeconfig, a plugin."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._current: ApiCredentials | None = None
        self._renewal = asyncio.Lock()
        with _explained():
            self.server = source().cluster.server.rstrip("/")

    async def current(self) -> ApiCredentials:
        """Return the credentials; the first call reads them."""
        return self._current or await self.renew(None)

    async def renew(self, rejected: ApiCredentials | None) -> ApiCredentials:
        """Replace credentials that were rejected. Concurrent callers share one renewal."""
        async with self._renewal:
            if self._current is None or self._current is rejected:
                with _explained():
                    self._current = await _read(self._source())
            return self._current


@contextmanager
def _explained() -> Iterator[None]:
    """Translate errors: files, YAML, certificates and plugins of a kubeconfig each raise their own."""
    try:
        yield
    except RemudaError:
        raise
    except Exception as error:
        cause = str(error) or type(error).__name__
        raise Unavailable(f"The kubeconfig cannot be used ({cause}): check it and the files it names.") from error


async def _read(config: SingleConfig) -> ApiCredentials:
    assert config.user is not None, "lightkube gives every context a user"
    trust = verify_cluster(config.cluster, config.user, config.abs_file)
    auth = user_auth(config.user)
    if auth is None:
        return ApiCredentials(trust, {})
    request = httpx2.Request("GET", config.cluster.server)
    flow = auth.async_auth_flow(request)
    await anext(flow)  # the flow only adds the header; we send the request
    await flow.aclose()
    return ApiCredentials(trust, {"Authorization": request.headers["Authorization"]})


Verb = Literal["create", "get", "list", "update", "update_status", "delete", "watch"]
"""A kind of request, by which requests are counted."""

_METHODS: Mapping[Verb, str] = {
    "create": "POST",
    "get": "GET",
    "list": "GET",
    "update": "PUT",
    "update_status": "PUT",
    "delete": "DELETE",
    "watch": "GET",
}
_READS: frozenset[Verb] = frozenset({"get", "list", "watch"})
_OK, _UNAUTHORIZED, _TOO_OLD, _THROTTLED, _SERVER_ERROR = 300, 401, 410, 429, 500
_BACKOFF = Backoff(0.2, 1.0)
_THROTTLED_PAUSE_S = 1.0
_CLOSING_ITERATIONS = 3
_LARGE = 512 << 10


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiRequest:
    """A request. `kind` is only for counting."""

    verb: Verb
    kind: str
    path: str
    query: Mapping[str, str] | None = None
    body: bytes | None = None

    @property
    def is_read(self) -> bool:
        """Whether repeating it changes nothing."""
        return self.verb in _READS


class ApiStatus(msgspec.Struct, frozen=True):
    """The fields of a Kubernetes Status that we use."""

    reason: str = ""
    message: str = ""
    code: int = 0


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """A response of the API server."""

    status: int
    body: bytes

    @property
    def is_success(self) -> bool:
        return self.status < _OK

    def failure(self) -> ApiStatus:
        try:
            return msgspec.json.decode(self.body, type=ApiStatus)
        except msgspec.MsgspecError:
            return ApiStatus(message=f"it responded with HTTP status {self.status}")


class _Disconnected(aiohttp.ClientError):
    """The connection broke after a request was sent."""


async def _sent_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Turn a lost connection into an error. By default aiohttp sends PUT and DELETE again without telling."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _Disconnected(str(error)) from error


class ApiClient:
    """A client of one API server."""

    def __init__(
        self,
        login: Login,
        clock: Clock,
        randomness: Randomness | None = None,
        *,
        retry_for_s: float = 30.0,
        timeout_s: float = 30.0,
    ) -> None:
        self.requests: Counter[tuple[Verb, str]] = Counter()
        self.server = login.server
        self._login, self._clock, self._retry_for_s = login, clock, retry_for_s
        retries = Retries(
            total_s=retry_for_s,
            is_attempt_limited=True,
            backoff=_BACKOFF,
            clock=clock,
            randomness=randomness or SystemRandomness(),
        )
        self._exchange = RequestSender(self.server, retries)
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        connector = aiohttp.TCPConnector(limit=0, enable_cleanup_closed=NEEDS_CLEANUP_CLOSED)
        headers = {"Content-Type": "application/json"}
        self._session = aiohttp.ClientSession(connector=connector, headers=headers, middlewares=(_sent_once,))

    async def close(self) -> None:
        await self._session.close()
        for _ in range(_CLOSING_ITERATIONS):
            await self._clock.sleep(0)  # an aborted connection closes its socket in one of the loop's next iterations

    async def call(self, request: ApiRequest, *, retry_for_s: float | None = None) -> ApiResponse:
        """Return the server's definite response, whatever its status, or raise Unavailable."""
        return await self._exchange.send(
            lambda: self._attempt(request),
            name=f"the {request.verb} of {request.path}",
            is_read=request.is_read,
            is_repeatable=False,
            total_s=self._retry_for_s if retry_for_s is None else retry_for_s,
        )

    async def watch(self, request: ApiRequest, *, silence_s: float) -> AsyncIterator[list[bytes]]:
        """Yield the lines of a stream, as they arrive; first none, when the server has accepted the request."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=silence_s)
        credentials = await self._login.current()
        try:
            async with self._open(request, credentials, timeout) as response:
                if response.status == _UNAUTHORIZED:
                    await self._login.renew(credentials)
                if response.status == _TOO_OLD:
                    raise Gone(request.kind, (request.query or {}).get("resourceVersion", ""))
                if response.status >= _OK:
                    message = ApiResponse(response.status, await response.read()).failure().message
                    raise Unavailable(f"The server {self.server} rejects the watch ({message}): try again later.")
                yield []
                rest = b""
                async for chunk in response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    if lines:
                        yield lines
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ServerUnreachable(self.server, str(error) or type(error).__name__) from None

    async def _attempt(self, request: ApiRequest) -> ApiResponse:
        try:
            response, retry_after_s = await self._send(request)
        except aiohttp.ClientConnectorError as error:
            raise NotSent(str(error)) from None
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ResponseLost(str(error) or type(error).__name__) from None
        if response.status == _THROTTLED:
            throttled = Unavailable(f"The server {self.server} throttles our requests: try again later.")
            raise RetryableResponse(throttled, retry_after_s=retry_after_s)
        if response.status < _SERVER_ERROR:
            return response
        failing = f"The server {self.server} is failing ({response.failure().message}): try again later."
        raise RetryableResponse(Unavailable(failing), is_lost=True)

    async def _send(self, request: ApiRequest) -> tuple[ApiResponse, float]:
        """Send a request, and once more with new credentials if they were rejected."""
        credentials = await self._login.current()
        response, retry_after_s = await self._send_as(request, credentials)
        if response.status == _UNAUTHORIZED:
            response, retry_after_s = await self._send_as(request, await self._login.renew(credentials))
        return response, retry_after_s

    async def _send_as(self, request: ApiRequest, credentials: ApiCredentials) -> tuple[ApiResponse, float]:
        async with self._open(request, credentials, self._timeout) as response:
            return ApiResponse(response.status, await response.read()), self._retry_after_s(response)

    def _retry_after_s(self, response: aiohttp.ClientResponse) -> float:
        """Return the delay that the server, or a proxy before it, asks for, in seconds or as a date."""
        text = response.headers.get("Retry-After", "")
        try:
            seconds = float(text)
        except ValueError:
            try:
                seconds = (parsedate_to_datetime(text) - self._clock.now()).total_seconds()
            except (ValueError, TypeError):
                return _THROTTLED_PAUSE_S
        return max(seconds, 0.0) if math.isfinite(seconds) else _THROTTLED_PAUSE_S

    def _open(
        self, request: ApiRequest, credentials: ApiCredentials, timeout: aiohttp.ClientTimeout
    ) -> "aiohttp.client._RequestContextManager":
        self.requests[request.verb, request.kind] += 1
        return self._session.request(
            _METHODS[request.verb],
            self.server + request.path,
            params=request.query,
            data=_in_parts(request.body),
            headers=credentials.headers,
            allow_redirects=False,
            ssl=credentials.trust,
            timeout=timeout,
        )


def _in_parts(body: bytes | None) -> bytes | io.BytesIO | None:
    """Return a large body as a stream: aiohttp warns of one whose sending would block the event loop."""
    return body if body is None or len(body) <= _LARGE else io.BytesIO(body)
