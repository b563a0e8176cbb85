"""What an external OpenID provider says about itself: where its endpoints are, and with which keys it signs.

Both are read from the provider, once for all who want to know, and kept for an hour; that it could not be read, for
some seconds. A key that we do not know makes us look again, but not more than once a minute: whoever sends us tokens
with made-up keys must not make us ask for each. A provider has to name itself exactly as it is configured here; that is
what keeps one provider from speaking for another.

Asking the servers of external providers, within limits: ten seconds, one mebibyte, no redirects, TLS, few at once.

An organization's administrators choose the address of their provider, so what is asked here is theirs to choose. What
comes back is never shown to them, and TLS keeps them from our neighbours: no server inside has a certificate for a name
of theirs. Plain HTTP is spoken only to this machine itself, and only where an operator allows it: in development, when
our own address is there too.
"""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, OKPKey, RSAKey

from remuda.identity.ports import Fetch, Fetched
from remuda.kernel.clock import Clock
from remuda.kernel.errors import OAuthError, ServerUnreachable, Unavailable
from remuda.kernel.exchange import RequestSender, ResponseLost
from remuda.outbound.client import new_client, transport_errors

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

        async def attempt() -> Fetched:
            try:
                async with asyncio.timeout(self._time_s), self._turn(server):
                    with transport_errors():
                        return await self._fetch(http, method, url, headers, body)
            except TimeoutError:
                raise ResponseLost(f"no answer within {self._time_s:g} s") from None

        # To the caller even a lost POST is a read: a code that may have been redeemed is of no use, the login fails.
        return await RequestSender(server).send(attempt, name=f"{method} {url}", is_read=True)

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


PublicKey = RSAKey | ECKey | OKPKey
"""A key that verifies. A shared secret is none."""

T = TypeVar("T")

_KEPT_S, _LOOK_AGAIN_S, _FAILED_S = 3600.0, 60.0, 5.0
_MOST = 1000
_OK = 200
_LEAST_RSA_BITS = 2048
_MOST_KEYS = 32
"""To try them all must not take long, and no provider needs more."""


class SelfDescription(msgspec.Struct, frozen=True):
    """The part of a provider's discovery document that we use."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class _KeyDocument(msgspec.Struct, frozen=True):
    keys: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class _Kept:
    read_at: float
    about: SelfDescription
    keys_read_at: float
    keys: tuple[PublicKey, ...]


@dataclass(frozen=True, slots=True)
class _Failed:
    at: float
    error: str
    description: str


class Upstream:
    """Reads and keeps what providers say."""

    def __init__(self, *, fetch: Fetch, clock: Clock) -> None:
        self._fetch, self._clock = fetch, clock
        self._kept: dict[str, _Kept] = {}
        self._failed: dict[str, _Failed] = {}
        self._reading: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def about(self, issuer: str) -> SelfDescription:
        """Return where a provider's endpoints are."""
        return (await self._find(issuer)).about

    async def keys(self, issuer: str, kid: str | None) -> Sequence[PublicKey]:
        """Return the keys with this name, or all of them if the token names none."""
        async with self._turn(issuer):
            kept = await self._present(issuer)
            found = named(kept.keys, kid)
            if found or self._clock.monotonic() - kept.keys_read_at < _LOOK_AGAIN_S:
                return found
            return named((await self._asked(issuer, lambda: self._read_keys(kept))).keys, kid)

    async def _find(self, issuer: str) -> _Kept:
        async with self._turn(issuer):
            return await self._present(issuer)

    def _turn(self, issuer: str) -> asyncio.Lock:
        """Return what lets one at a time ask a provider: who has waited finds what the others were told."""
        return self._reading.setdefault(issuer, asyncio.Lock())

    async def _present(self, issuer: str) -> _Kept:
        kept = self._kept.get(issuer)
        if kept is not None and self._clock.monotonic() - kept.read_at < _KEPT_S:
            return kept
        return await self._asked(issuer, lambda: self._read(issuer))

    async def _asked(self, issuer: str, read: Callable[[], Awaitable[_Kept]]) -> _Kept:
        """Remember what a provider says, or that it cannot be read."""
        failed = self._failed.get(issuer)
        if failed is not None and self._clock.monotonic() - failed.at < _FAILED_S:
            raise OAuthError(failed.error, failed.description)
        try:
            kept = await read()
        except OAuthError as refusal:
            _put(self._failed, issuer, _Failed(self._clock.monotonic(), refusal.error, refusal.message))
            raise
        _put(self._kept, issuer, kept)
        return kept

    async def _read_keys(self, kept: _Kept) -> _Kept:
        return replace(
            kept, keys_read_at=self._clock.monotonic(), keys=await read_keys(self._fetch, kept.about.jwks_uri)
        )

    async def _read(self, issuer: str) -> _Kept:
        now, about = self._clock.monotonic(), await self._read_about(issuer)
        return _Kept(now, about, now, await read_keys(self._fetch, about.jwks_uri))

    async def _read_about(self, issuer: str) -> SelfDescription:
        url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        about = await fetch_json(self._fetch, "GET", url, SelfDescription)
        if about.issuer != issuer:
            raise broken("it calls itself by another issuer than the one configured here")
        if not _is_web(about.authorization_endpoint):
            raise broken("its login page is at no address that begins with https://")
        return about


def _put(known: dict[str, T], issuer: str, value: T) -> None:
    """Remember something of an issuer, and not of more issuers than is sensible."""
    known.pop(issuer, None)
    known[issuer] = value
    while len(known) > _MOST:
        del known[next(iter(known))]


async def read_keys(fetch: Fetch, url: str) -> tuple[PublicKey, ...]:
    """Return the keys that a JWKS holds, as far as they verify signatures, or raise OAuthError if it is none."""
    document = await fetch_json(fetch, "GET", url, _KeyDocument)
    if len(document.keys) > _MOST_KEYS:
        raise broken(f"it has more than {_MOST_KEYS} keys")
    return tuple(key for each in document.keys if (key := _public_key(each)) is not None)


def named(keys: Sequence[PublicKey], kid: str | None) -> Sequence[PublicKey]:
    """Return the keys with this name, or all of them if a token names none."""
    return keys if kid is None else [key for key in keys if key.kid == kid]


async def fetch_json(
    fetch: Fetch,
    method: str,
    url: str,
    kind: type[T],
    *,
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
) -> T:
    """Return what a provider answers, or raise OAuthError if it answers nothing that is of use."""
    try:
        answer = await fetch(method, url, {"Accept": "application/json", **(headers or {})}, body)
    except Unavailable:
        raise OAuthError("temporarily_unavailable", "the provider does not answer: try again later") from None
    if answer.status != _OK:
        raise broken(f"it answered with status {answer.status}")
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except (ValueError, RecursionError):  # no JSON, no UTF-8, or nested without end
        raise broken("its answer is not what OpenID Connect says") from None


def broken(why: str) -> OAuthError:
    """Return the refusal for a provider that does not do as it should."""
    return OAuthError("server_error", f"the provider cannot be used: {why}; tell whoever set it up")


def _is_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    host = parts.hostname or ""
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))


def _public_key(data: dict[str, Any]) -> PublicKey | None:
    if data.get("use", "sig") != "sig":
        return None
    try:
        key = JWKRegistry.import_key(data)
    except (JoseError, ValueError, TypeError, KeyError):
        return None  # a kind of key that we do not know does not keep us from those that we do
    if isinstance(key, RSAKey) and key.public_key.key_size < _LEAST_RSA_BITS:
        return None  # somebody else may have found its private half by now
    return key if isinstance(key, PublicKey) else None
