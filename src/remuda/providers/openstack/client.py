"""OpenStack client: tokens, the service catalogue, and requests with their errors.

A session is a login, and has a token of its own that is renewed before it expires and once when a service rejects it.
`errors` has what each kind of failure becomes.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import urlencode

import httpx2
import msgspec
import structlog

from remuda.kernel.clock import Clock
from remuda.kernel.errors import ServerUnreachable, Unavailable
from remuda.kernel.exchange import NotSent, ResponseLost
from remuda.outbound.client import new_client, transport_errors
from remuda.providers.openstack.errors import (
    FORBIDDEN,
    TOO_LARGE,
    ApiError,
    Denied,
    LoginRejected,
    NoIdentityService,
    QuotaUsedUp,
    is_about_quota,
    reason_of,
)
from remuda.providers.openstack.logins import CloudLogin

T = TypeVar("T")

MICROVERSIONS: Mapping[str, Mapping[str, str]] = {
    "compute": {"OpenStack-API-Version": "compute 2.90"},
    "placement": {"OpenStack-API-Version": "placement 1.22"},
    "load-balancer": {},
}
"""Headers by service type; compute 2.90 has host names apart from names."""
SERVICE_ALIASES: Mapping[str, Sequence[str]] = {"block-storage": ("volumev3", "volume")}
"""Service types that older catalogues use."""
PATHS: Mapping[str, str] = {"network": "/v2.0", "image": "/v2", "load-balancer": "/v2.0"}
"""Version in the path, of services whose endpoint does not contain it."""

WHOLE = "*"
"""Key of a response that has no envelope."""

_RENEW_BEFORE = timedelta(minutes=5)
_UNAUTHORIZED, _TOO_MANY, _SERVER_ERROR = 401, 429, 500
_SUCCESS = range(200, 300)
_LIMITED = frozenset({TOO_LARGE, _TOO_MANY, 503})
_CONNECT_S = 10.0
_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_CONNECTIONS = 64
_PAGE = 500


class _Endpoint(msgspec.Struct, frozen=True):
    interface: str
    url: str
    region: str | None = None


class _Service(msgspec.Struct, frozen=True):
    type: str
    endpoints: tuple[_Endpoint, ...] = ()


class _TokenBody(msgspec.Struct, frozen=True):
    expires_at: datetime
    catalog: tuple[_Service, ...] = ()


@dataclass(frozen=True, slots=True)
class _Token:
    value: str
    expires: datetime
    endpoints: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudAddress:
    """Address of a cloud, and the verification of its servers."""

    auth_url: str
    """Keystone, with its version: https://cloud.example/identity/v3."""
    region: str = ""
    """Region in the service catalogue; empty if there is one only."""
    tls: ssl.SSLContext | bool = True
    timeout_s: float = 120.0
    """Time without a byte after which a request counts as lost."""


class OpenStackClient:
    """Connections to one cloud, and the tokens of its sessions."""

    def __init__(self, address: CloudAddress, *, clock: Clock) -> None:
        self.address, self.clock = address, clock
        limits = httpx2.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS)
        # The deadlines of callers are shorter. This one ends an abandoned request, which has a slot until then.
        timeout = httpx2.Timeout(address.timeout_s, connect=_CONNECT_S)
        self._http = new_client(timeout, tls=address.tls, limits=limits)
        self._paused_until: dict[str, float] = {}
        self._tokens: dict[CloudLogin, _Token] = {}
        self._locks: dict[CloudLogin, asyncio.Lock] = {}

    async def close(self) -> None:
        await self._http.aclose()

    def session(self, login: CloudLogin) -> "CloudSession":
        return CloudSession(self, login)

    def forget(self, login: CloudLogin) -> None:
        """Forget the token of a login that will not be used again."""
        self._tokens.pop(login, None)
        self._locks.pop(login, None)

    async def token(self, login: CloudLogin, *, rejected: str = "") -> _Token:
        """Return a token that is valid for some minutes, and is not the rejected one."""
        lock = self._locks.setdefault(login, asyncio.Lock())
        async with lock:
            found = self._tokens.get(login)
            if found is None or found.value == rejected or found.expires - self.clock.now() < _RENEW_BEFORE:
                found = self._tokens[login] = await self._log_in(login)
            return found

    async def send(
        self, method: str, url: str, *, headers: Mapping[str, str], content: bytes | AsyncIterator[bytes] | None = None
    ) -> httpx2.Response:
        """Return the response, or raise for one that never came: Unavailable if the request was not sent."""
        try:
            with transport_errors():
                return await self._http.request(method, url, headers=headers, content=content)
        except NotSent as failure:
            raise ServerUnreachable(self.address.auth_url, failure.reason) from None
        except ResponseLost as failure:
            raise ConnectionError(failure.reason) from None  # the provider's calls know what that means

    def pause(self, service: str, response: httpx2.Response) -> None:
        """Send nothing to a service until the time that it asks for."""
        text = response.headers.get("Retry-After", "")
        pause_s = float(text) if text.isdecimal() else _PAUSE_S
        self._paused_until[service] = self.clock.monotonic() + min(pause_s, _LONGEST_PAUSE_S)

    def check_pause(self, service: str) -> None:
        left_s = self._paused_until.get(service, 0.0) - self.clock.monotonic()
        if left_s > 0:
            raise Unavailable(f"The {service} service of the provider limits requests: try again in {left_s:.0f} s.")

    async def _log_in(self, login: CloudLogin) -> _Token:
        self.check_pause("identity")
        content = msgspec.json.encode({"auth": login.request()})
        url = f"{self.address.auth_url.rstrip('/')}/auth/tokens"
        try:
            response = await self.send("POST", url, headers={"Content-Type": "application/json"}, content=content)
        except ConnectionError as error:  # a login changes nothing
            raise ServerUnreachable(self.address.auth_url, str(error)) from None
        status, value = response.status_code, response.headers.get("X-Subject-Token")
        if status in _LIMITED and (status == _TOO_MANY or "Retry-After" in response.headers):
            self.pause("identity", response)
            self.check_pause("identity")
        if status >= _SERVER_ERROR:
            raise Unavailable(f"The identity service of {self.address.auth_url} fails: try again.")
        if status == _UNAUTHORIZED:
            raise LoginRejected(self.address.auth_url)
        try:
            body = msgspec.json.decode(response.content, type=dict[str, _TokenBody])["token"]
        except (msgspec.MsgspecError, UnicodeDecodeError, KeyError):
            body = None
        if status not in _SUCCESS or value is None or body is None:
            raise NoIdentityService(self.address.auth_url, status)
        return _Token(value, body.expires_at, dict(self._endpoints(body.catalog)))

    def _endpoints(self, catalog: Sequence[_Service]) -> Sequence[tuple[str, str]]:
        desired = self.address.region
        return [
            (service.type, endpoint.url.rstrip("/"))
            for service in catalog
            for endpoint in service.endpoints
            if endpoint.interface == "public" and (not desired or endpoint.region == desired)
        ]


@dataclass(frozen=True, slots=True)
class CloudSession:
    """The APIs of a cloud, as one login sees them."""

    client: OpenStackClient
    login: CloudLogin

    async def services(self) -> frozenset[str]:
        """Return the types of the services that the catalogue has."""
        return frozenset((await self.client.token(self.login)).endpoints)

    async def get(self, service: str, path: str, key: str, kind: type[T], **query: object) -> T:
        """Return one member of the response's body."""
        found: T = _member(await self._exchange("GET", service, path, query=query), key, kind)
        return found

    async def items(self, service: str, path: str, key: str, kind: type[T], **query: object) -> list[T]:
        """Return the first page of a list, which is all of a short one."""
        found: list[T] = _member(await self._exchange("GET", service, path, query=query), key, list[kind])  # type: ignore[valid-type]
        return found

    async def pages(self, service: str, path: str, key: str, kind: type[T], **query: object) -> AsyncIterator[list[T]]:
        """Yield a list page by page. Its members have an `id`, by which the next page begins."""
        query["limit"] = _PAGE
        while True:
            found = await self.items(service, path, key, kind, **query)
            yield found
            if len(found) < _PAGE:
                return
            query["marker"] = getattr(found[-1], "id", "")

    async def all(self, service: str, path: str, key: str, kind: type[T], **query: object) -> list[T]:
        """Return a whole list."""
        return [item async for items in self.pages(service, path, key, kind, **query) for item in items]

    async def post(self, service: str, path: str, body: object, key: str = "", kind: Any = None) -> Any:
        """Send a POST; return one member of the response's body, if it is named."""
        response = await self._exchange("POST", service, path, body=body)
        return _member(response, key, kind) if key else None

    async def put(self, service: str, path: str, body: object = None, key: str = "", kind: Any = None) -> Any:
        """Send a PUT; return one member of the response's body, if it is named."""
        response = await self._exchange("PUT", service, path, body=body)
        return _member(response, key, kind) if key else None

    async def patch(self, service: str, path: str, body: object, *, content_type: str = "application/json") -> None:
        await self._exchange("PATCH", service, path, body=body, content_type=content_type)

    async def upload(self, service: str, path: str, content: AsyncIterator[bytes]) -> None:
        """Send a PUT with bytes, once: a stream cannot be sent again."""
        token = await self.client.token(self.login)
        self.client.check_pause(service)
        headers = {"X-Auth-Token": token.value, "Content-Type": "application/octet-stream"}
        url = self._url(token, service, path, {})
        self._check(await self.client.send("PUT", url, headers=headers, content=content), service, is_read=False)

    async def delete(self, service: str, path: str, **query: object) -> bool:
        """Delete something; return whether it was there."""
        try:
            await self._exchange("DELETE", service, path, query=query)
        except ApiError as error:
            if error.http_status == 404:  # noqa: PLR2004  not found
                return False
            raise
        return True

    async def _exchange(
        self,
        method: str,
        service: str,
        path: str,
        *,
        query: Mapping[str, object] = {},
        body: object = None,
        content_type: str = "application/json",
    ) -> httpx2.Response:
        rejected = ""
        while True:
            token = await self.client.token(self.login, rejected=rejected)
            self.client.check_pause(service)
            headers = {"X-Auth-Token": token.value, **MICROVERSIONS.get(service, {})}
            content = None if body is None else msgspec.json.encode(body)
            if content is not None:
                headers["Content-Type"] = content_type
            url = self._url(token, service, path, query)
            response = await self.client.send(method, url, headers=headers, content=content)
            if response.status_code != _UNAUTHORIZED or rejected:
                return self._check(response, service, is_read=method == "GET")
            rejected = token.value

    def _url(self, token: _Token, service: str, path: str, query: Mapping[str, object]) -> str:
        if service == "identity":
            endpoint = self.client.address.auth_url.rstrip("/")
        else:
            names = (service, *SERVICE_ALIASES.get(service, ()))
            endpoint = next((token.endpoints[name] for name in names if name in token.endpoints), "")
            if not endpoint:
                raise Unavailable(
                    f"The cloud {self.client.address.auth_url} has no {service} service in its catalogue."
                )
            version = PATHS.get(service, "")
            endpoint += "" if endpoint.endswith(version) else version
        text = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}
        return f"{endpoint}{path}" + (f"?{urlencode(text, doseq=True)}" if text else "")

    def _check(self, response: httpx2.Response, service: str, *, is_read: bool) -> httpx2.Response:
        status = response.status_code
        if status in _SUCCESS:
            return response
        if status == _TOO_MANY or (status in _LIMITED and "Retry-After" in response.headers):
            self.client.pause(service, response)
            self.client.check_pause(service)
        if status >= _SERVER_ERROR:
            if is_read:
                raise Unavailable(f"The {service} service of the provider fails with status {status}: try again.")
            raise ConnectionError(f"{service} responded with status {status}")  # it may have taken effect
        if status == _UNAUTHORIZED:
            raise LoginRejected(self.client.address.auth_url)
        kind, reason = reason_of(response)
        if is_about_quota(status, kind, reason):
            structlog.get_logger().warning("quota of the cloud used up", service=service, reason=reason)
            raise QuotaUsedUp
        raise (Denied if status == FORBIDDEN else ApiError)(service, status, reason, kind)


def _member(response: httpx2.Response, key: str, kind: Any) -> Any:
    """Return one member of a JSON object, or the whole object."""
    try:
        if key == WHOLE:
            return msgspec.json.decode(response.content, type=kind)
        raw = msgspec.json.decode(response.content, type=dict[str, msgspec.Raw])
        return msgspec.json.decode(raw[key], type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError) as error:
        raise Unavailable(f"A response of the provider cannot be read ({error}): try again.") from None
