"""Client of external OpenID providers: metadata, keys, and limits of requests.

Metadata and keys are cached for an hour, and errors for seconds. An unknown key id causes a refresh, at most once a
minute, so that tokens with invented key ids cause no load. The issuer in the metadata must be the configured one.

Administrators of organizations choose the URL of their provider, so requests go only to the public Internet and to the
networks of the setting `provider_targets`, and are limited: ten seconds, 256 KiB, TLS, no redirects, few at a time.
Neither responses nor their status are shown. Plain HTTP is allowed only to loopback, in development.

Two organizations may name the same server, or one that of the other. So they share nothing: neither slots nor lookups,
nor what was read, nor the wait for it.
"""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, OKPKey, RSAKey

from remuda.identity.kinds.oauth import OAuth2Provider
from remuda.identity.ports import Fetch, Fetched, FetchFor
from remuda.kernel.clock import Clock
from remuda.kernel.errors import OAuthError, ServerUnreachable, Unavailable
from remuda.kernel.exchange import NotSent, RequestSender, ResponseLost
from remuda.kernel.fair_slots import FairSlots
from remuda.outbound.fetch import FetchFailed, GuardedFetcher, OpenResponse
from remuda.resources.conventions import ORGANIZATION

_MAX_BYTES = 256 * 1024
_TIME_S = 10.0
_CONCURRENCY = 96
"""Requests at the same time."""
_RESERVED = 32
"""Of these, those of organizations without another one: so many more must collude to keep others waiting."""
_SHARE = 8
"""Requests of one organization, or to one server that an operator has configured, at the same time."""
_BUSY = "too many requests of its organization wait for servers that respond slowly"


class Fetcher:
    """HTTP implementation of `Fetch`: it follows no redirect, and limits size, time and concurrency.

    The time begins with the call, so a request that waits for a slot in vain fails in time, too.
    """

    def __init__(self, guarded: GuardedFetcher, *, time_s: float = _TIME_S, max_bytes: int = _MAX_BYTES) -> None:
        self._guarded, self._time_s, self._max_bytes = guarded, time_s, max_bytes
        self._slots = FairSlots(_CONCURRENCY, share=_SHARE, reserved=_RESERVED)

    async def __call__(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None, *, organization: str
    ) -> Fetched:
        """Return the response, or raise Unavailable."""
        server = _server_of(url)
        client, deadline = organization or f"server {server}", asyncio.get_running_loop().time() + self._time_s

        async def attempt() -> Fetched:
            try:
                async with self._slots.acquire(client, deadline=deadline):
                    total_s = deadline - asyncio.get_running_loop().time()
                    opened = self._guarded.open(
                        url, headers, total_s=total_s, client=client, method=method, content=body, redirects=0
                    )
                    async with opened as response:
                        return Fetched(status=response.status, body=await self._read(server, response))
            except TimeoutError:
                raise NotSent(_BUSY) from None
            except FetchFailed as error:
                if error.is_temporary:
                    raise ResponseLost(error.reason) from None
                raise ServerUnreachable(server, error.reason) from None

        # Even a lost POST counts as a read: a code that may have been redeemed is useless, and the login fails.
        return await RequestSender(server).send(attempt, name=f"{method} {url}", is_read=True)

    async def _read(self, server: str, response: OpenResponse) -> bytes:
        read = bytearray()
        while chunk := await response.read():
            read += chunk
            if len(read) > self._max_bytes:
                raise ServerUnreachable(server, f"its response exceeds {self._max_bytes} bytes")
        return bytes(read)


def _server_of(url: str) -> str:
    """Return host and port of a URL, or raise ServerUnreachable unless it begins with https:// or is on loopback."""
    if not _is_web(url):
        raise ServerUnreachable("unknown", "its address does not begin with https://")
    return urlsplit(url).netloc


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return mapped.is_loopback or mapped.is_unspecified


PublicKey = RSAKey | ECKey | OKPKey
"""Asymmetric key that verifies signatures."""

T = TypeVar("T")

_CACHE_S, _REFRESH_INTERVAL_S, _ERROR_CACHE_S = 3600.0, 60.0, 5.0
_MAX_ISSUERS, _MAX_ISSUERS_OF_ORGANIZATION = 1000, 4
"""Cached issuers. An organization logs in at one at a time."""
_MAX_URL = 2048
_AUTHENTICATION_METHODS = ("client_secret_basic", "client_secret_post")
_OK = 200
_MIN_RSA_BITS, _MAX_RSA_BITS = 2048, 8192
_MAX_NUMBER = _MAX_RSA_BITS // 6 + 4
"""Length of the longest number of a key, in base64url."""
_PUBLIC_MEMBERS = frozenset({"kty", "kid", "use", "alg", "key_ops", "n", "e", "crv", "x", "y"})
_MAX_EXPONENT = 6
"""Length of the longest public exponent of an RSA key, in base64url: 32 bits. The time of a verification follows it."""
_MAX_KEYS = 32
"""Limit of the time that trying all keys takes."""


class ProviderMetadata(msgspec.Struct, frozen=True):
    """Part of a provider's discovery document that is used here."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class Issuer(NamedTuple):
    """Issuer URL, and the organization that has named it: empty for a provider of the platform."""

    url: str
    organization: str


def issuer_of(provider: OAuth2Provider) -> Issuer:
    return Issuer(provider.spec.issuer, provider.metadata.labels.get(ORGANIZATION, ""))


class _KeyDocument(msgspec.Struct, frozen=True):
    keys: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class _CachedProvider:
    read_at: float
    metadata: ProviderMetadata
    keys_read_at: float
    keys: tuple[PublicKey, ...]


@dataclass(frozen=True, slots=True)
class _CachedError:
    at: float
    error: str
    description: str


class ProviderClient:
    """Cache of the metadata and keys of external providers."""

    def __init__(self, *, fetch: Fetch, clock: Clock) -> None:
        self._fetch, self._clock = fetch, clock
        self._cached: dict[Issuer, _CachedProvider] = {}
        self._failed: dict[Issuer, _CachedError] = {}
        self._locks: WeakValueDictionary[Issuer, asyncio.Lock] = WeakValueDictionary()

    async def metadata(self, issuer: Issuer) -> ProviderMetadata:
        return (await self._find(issuer)).metadata

    async def keys(self, issuer: Issuer, kid: str | None) -> Sequence[PublicKey]:
        async with self._lock(issuer):
            cached = await self._current(issuer)
            found = keys_with_id(cached.keys, kid)
            if found or self._clock.monotonic() - cached.keys_read_at < _REFRESH_INTERVAL_S:
                return found
            return keys_with_id((await self._remember(issuer, lambda: self._read_keys(issuer, cached))).keys, kid)

    async def _find(self, issuer: Issuer) -> _CachedProvider:
        async with self._lock(issuer):
            return await self._current(issuer)

    def _lock(self, issuer: Issuer) -> asyncio.Lock:
        """Return the lock under which one caller reads from a provider, and others wait for its result."""
        return self._locks.setdefault(issuer, asyncio.Lock())

    async def _current(self, issuer: Issuer) -> _CachedProvider:
        cached = self._cached.get(issuer)
        if cached is not None and self._clock.monotonic() - cached.read_at < _CACHE_S:
            return cached
        return await self._remember(issuer, lambda: self._read(issuer))

    async def _remember(self, issuer: Issuer, read: Callable[[], Awaitable[_CachedProvider]]) -> _CachedProvider:
        failed = self._failed.get(issuer)
        if failed is not None and self._clock.monotonic() - failed.at < _ERROR_CACHE_S:
            raise OAuthError(failed.error, failed.description)
        try:
            cached = await read()
        except OAuthError as error:
            _put(self._failed, issuer, _CachedError(self._clock.monotonic(), error.error, error.message))
            raise
        _put(self._cached, issuer, cached)
        return cached

    async def _read_keys(self, issuer: Issuer, cached: _CachedProvider) -> _CachedProvider:
        now, keys = self._clock.monotonic(), await read_keys(self._fetch_for(issuer), cached.metadata.jwks_uri)
        return replace(cached, keys_read_at=now, keys=keys)

    async def _read(self, issuer: Issuer) -> _CachedProvider:
        now, metadata = self._clock.monotonic(), await self._read_metadata(issuer)
        return _CachedProvider(now, metadata, now, await read_keys(self._fetch_for(issuer), metadata.jwks_uri))

    async def _read_metadata(self, issuer: Issuer) -> ProviderMetadata:
        url = f"{issuer.url.rstrip('/')}/.well-known/openid-configuration"
        metadata = await fetch_json(self._fetch_for(issuer), "GET", url, ProviderMetadata)
        if metadata.issuer != issuer.url:
            raise provider_error("the issuer in its metadata is not the configured one")
        if not _is_location(metadata.authorization_endpoint):
            raise provider_error("its authorization_endpoint is no URL that begins with https://")
        return _bounded(metadata)

    def _fetch_for(self, issuer: Issuer) -> FetchFor:
        return partial(self._fetch, organization=issuer.organization)


def _bounded(metadata: ProviderMetadata) -> ProviderMetadata:
    """Return metadata without what is not used, since it is kept, or raise OAuthError if an address is too long."""
    addresses = (
        *(metadata.authorization_endpoint, metadata.token_endpoint),
        *(metadata.jwks_uri, metadata.userinfo_endpoint),
    )
    if max(map(len, addresses)) > _MAX_URL:
        raise provider_error(f"an address in its metadata is longer than {_MAX_URL} characters")
    methods = metadata.token_endpoint_auth_methods_supported
    known = tuple(each for each in _AUTHENTICATION_METHODS if each in methods)
    return msgspec.structs.replace(metadata, token_endpoint_auth_methods_supported=known)


def _put(cache: dict[Issuer, T], issuer: Issuer, value: T) -> None:
    """Store a value of an issuer, and evict the oldest beyond the limits, first of the same organization."""
    cache.pop(issuer, None)
    cache[issuer] = value
    own = [each for each in cache if each.organization and each.organization == issuer.organization]
    for each in own[:-_MAX_ISSUERS_OF_ORGANIZATION]:
        del cache[each]
    while len(cache) > _MAX_ISSUERS:
        del cache[next(iter(cache))]


async def read_keys(fetch: FetchFor, url: str) -> tuple[PublicKey, ...]:
    """Return the signature keys of a JWKS, or raise OAuthError."""
    document = await fetch_json(fetch, "GET", url, _KeyDocument)
    if len(document.keys) > _MAX_KEYS:
        raise provider_error(f"it has more than {_MAX_KEYS} keys")
    return tuple(key for each in document.keys if (key := _public_key(each)) is not None)


def keys_with_id(keys: Sequence[PublicKey], kid: str | None) -> Sequence[PublicKey]:
    return keys if kid is None else [key for key in keys if key.kid == kid]


async def fetch_json(
    fetch: FetchFor,
    method: str,
    url: str,
    kind: type[T],
    *,
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
) -> T:
    """Return the decoded response of a provider, or raise OAuthError."""
    try:
        response = await fetch(method, url, {"Accept": "application/json", **(headers or {})}, body)
    except Unavailable:
        raise OAuthError("temporarily_unavailable", "the provider does not respond: try again later") from None
    if response.status != _OK:
        raise provider_error("it does not respond like an OpenID provider")
    try:
        return msgspec.json.decode(response.body, type=kind)
    except (ValueError, RecursionError):  # not JSON, not UTF-8, or nested too deeply
        raise provider_error("its response violates OpenID Connect") from None


def provider_error(problem: str) -> OAuthError:
    return OAuthError("server_error", f"the provider cannot be used: {problem}; contact its administrator")


def _is_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    host = parts.hostname or ""
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))


def _is_location(url: str) -> bool:
    """Tell whether browsers can be redirected to a URL, and a query be appended to it."""
    return _is_web(url) and url.isascii() and url.isprintable() and not {" ", "#", "\\"} & set(url)


def _public_key(data: dict[str, Any]) -> PublicKey | None:
    """Return a key that verifies signatures; None for any other, a private one included.

    Only the public members are imported, and only if they are short: the primes of a private key would be computed, and
    a verification takes as long as the exponent is.
    """
    public = {name: value for name, value in data.items() if name in _PUBLIC_MEMBERS}
    is_private = data.get("d") is not None
    is_slow = len(str(public.get("e", ""))) > _MAX_EXPONENT or any(map(_is_too_long, data.values()))
    if public.get("use", "sig") != "sig" or is_private or is_slow:
        return None
    try:
        key = JWKRegistry.import_key(public)
    except (JoseError, ValueError, TypeError, KeyError):
        return None  # an unsupported type of key; others may be usable
    if isinstance(key, RSAKey) and key.public_key.key_size < _MIN_RSA_BITS:
        return None  # too short to be secure
    return key if isinstance(key, PublicKey) else None


def _is_too_long(member: Any) -> bool:
    return isinstance(member, str) and len(member) > _MAX_NUMBER
