"""Login at an external OpenID provider: authorization code flow with nonce and PKCE.

A provider is trusted for one claim, a verified e-mail address, which identifies the user here. If the ID token lacks
it, the userinfo endpoint is queried.

An ID token must be signed by a published key with an asymmetric algorithm; issuer, audience, authorized party and nonce
must be those of this login, and the times must be valid with a leeway of one minute.
"""

import base64
import hmac
from collections.abc import Mapping, Sequence
from functools import partial
from urllib.parse import quote, urlencode

import msgspec
from joserfc import jws
from joserfc.errors import JoseError

from remuda.http.pages import with_query
from remuda.identity.federation.provider_client import (
    Issuer,
    ProviderClient,
    ProviderMetadata,
    PublicKey,
    fetch_json,
    issuer_of,
    provider_error,
)
from remuda.identity.kinds.oauth import OAuth2Provider
from remuda.identity.ports import Fetch, FetchFor
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.secrets import new_secret, s256
from remuda.kernel.clock import Clock
from remuda.kernel.encoding import from_base64url
from remuda.kernel.errors import OAuthError
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret

_ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "Ed25519", "EdDSA"),
)
_LEEWAY_S = 60
_MAX_TOKEN_BYTES = 32_768
_MAX_TRIED = 4
"""Keys that are tried for a token. One without a key id, of a provider with several keys, needs more than one."""
_MAX_EMAIL = 320


class ProviderIdToken(msgspec.Struct, frozen=True):
    """Claims of a provider's ID token."""

    iss: str
    sub: str
    aud: str | tuple[str, ...]
    exp: float
    iat: float
    nonce: str = ""
    azp: str | None = None
    email: str = ""
    email_verified: bool | str = False
    xms_edov: bool | int | str = False
    """Microsoft's claim that the owner of the address's domain is verified."""

    @property
    def audience(self) -> tuple[str, ...]:
        return (self.aud,) if isinstance(self.aud, str) else self.aud


class _Header(msgspec.Struct, frozen=True):
    kid: str | None = None


async def read_id_token(
    token: Secret, *, issuer: Issuer, client: str, nonce: str, provider: ProviderClient, clock: Clock
) -> ProviderIdToken:
    """Return the claims of a valid ID token, or raise OAuthError."""
    text = token.reveal()
    if len(text) > _MAX_TOKEN_BYTES:
        raise provider_error("its ID token is too long")
    claims = _verified(text, await provider.keys(issuer, _header(text).kid))
    if problem := _problem(claims, issuer=issuer.url, client=client, nonce=nonce, now=clock.now().timestamp()):
        raise provider_error(f"its ID token {problem}")
    return claims


def _header(text: str) -> _Header:
    try:
        return msgspec.json.decode(from_base64url(text.partition(".")[0]), type=_Header)
    except (ValueError, RecursionError):
        raise provider_error("its ID token is malformed") from None


def _verified(text: str, keys: Sequence[PublicKey]) -> ProviderIdToken:
    for key in keys[:_MAX_TRIED]:
        try:
            payload = jws.deserialize_compact(text.encode(), key, algorithms=list(_ALGORITHMS)).payload
            return msgspec.json.decode(payload, type=ProviderIdToken)
        except (msgspec.DecodeError, RecursionError):
            break
        except (JoseError, ValueError, TypeError):
            continue  # another type of key, or not the key that signed this
    raise provider_error("its ID token has no valid signature by one of its keys, or lacks required claims")


def _problem(claims: ProviderIdToken, *, issuer: str, client: str, nonce: str, now: float) -> str:
    is_only_audience = len(claims.audience) == 1 and claims.azp is None
    checks = {
        "is from another issuer": claims.iss == issuer,
        "is for another client": client in claims.audience,
        "is for another authorized party": is_only_audience or claims.azp == client,
        "has the nonce of another login": hmac.compare_digest(claims.nonce.encode(), nonce.encode()),
        "has expired": now - _LEEWAY_S < claims.exp,
        "was issued in the future": claims.iat < now + _LEEWAY_S,
    }
    return next((problem for problem, is_valid in checks.items() if not is_valid), "")


_TRUE = (True, "true", 1, "1")


class ProviderRequest(msgspec.Struct, frozen=True):
    """Secrets of an authorization request to a provider, which its response must match."""

    provider: str
    nonce: str
    code_verifier: str


class _TokenResponse(msgspec.Struct, frozen=True):
    id_token: str
    access_token: str = ""


class _Userinfo(msgspec.Struct, frozen=True):
    sub: str
    email: str = ""
    email_verified: bool | str = False


class Federation:
    """Client of the authorization code flow at external providers."""

    def __init__(self, *, fetch: Fetch, clock: Clock, randomness: Randomness, settings: IdentitySettings) -> None:
        self._fetch, self._clock, self._randomness = fetch, clock, randomness
        self._callback = f"{settings.issuer}/oidc/callback"
        self._client = ProviderClient(fetch=fetch, clock=clock)

    def new_request(self, provider: OAuth2Provider) -> ProviderRequest:
        nonce, code_verifier = (new_secret(self._randomness).reveal() for _ in range(2))
        return ProviderRequest(provider.name, nonce, code_verifier)

    async def authorization_url(
        self, provider: OAuth2Provider, request: ProviderRequest, *, state: str, parameters: Mapping[str, str]
    ) -> str:
        """Return the authorization URL of the provider. `parameters` are forwarded from the client's request."""
        metadata = await self._client.metadata(issuer_of(provider))
        required = {
            "response_type": "code",
            "client_id": provider.spec.client_id,
            "redirect_uri": self._callback,
            "scope": "openid email",
            "state": state,
            "nonce": request.nonce,
            "code_challenge": s256(request.code_verifier),
            "code_challenge_method": "S256",
        }
        sent = {name: value for name, value in {**parameters, **required}.items() if value}
        return with_query(metadata.authorization_endpoint, sent)

    async def verified_email(
        self, provider: OAuth2Provider, request: ProviderRequest, *, code: str, issuer: str
    ) -> str:
        """Return the verified e-mail address of the user who logged in, or raise OAuthError."""
        metadata = await self._client.metadata(issuer_of(provider))
        self._check_issuer(metadata, issuer)
        tokens = await self._exchange(provider, metadata, request, code)
        claims = await read_id_token(
            Secret(tokens.id_token),
            issuer=issuer_of(provider),
            client=provider.spec.client_id,
            nonce=request.nonce,
            provider=self._client,
            clock=self._clock,
        )
        email, is_verified = _email(provider, claims)
        if not email and tokens.access_token and metadata.userinfo_endpoint:
            email, is_verified = await self._userinfo_email(provider, metadata, Secret(tokens.access_token), claims.sub)
        if not email or len(email) > _MAX_EMAIL:
            raise OAuthError("access_denied", "the provider does not send your e-mail address")
        if not is_verified:
            raise OAuthError("access_denied", "the provider has not verified your e-mail address")
        return email

    def _check_issuer(self, metadata: ProviderMetadata, issuer: str) -> None:
        """Reject a response of another provider (RFC 9207)."""
        is_expected = bool(issuer) or metadata.authorization_response_iss_parameter_supported
        if is_expected and issuer != metadata.issuer:
            raise provider_error("the response is from another issuer")

    async def _exchange(
        self, provider: OAuth2Provider, metadata: ProviderMetadata, request: ProviderRequest, code: str
    ) -> _TokenResponse:
        client, secret = provider.spec.client_id, provider.spec.client_secret
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._callback,
            "code_verifier": request.code_verifier,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        methods = metadata.token_endpoint_auth_methods_supported
        if secret is None:
            form |= {"client_id": client}
        elif "client_secret_basic" in methods or "client_secret_post" not in methods:
            both = f"{quote(client, safe='')}:{quote(secret.reveal(), safe='')}"
            headers |= {"Authorization": f"Basic {base64.b64encode(both.encode()).decode()}"}
        else:
            form |= {"client_id": client, "client_secret": secret.reveal()}
        body = urlencode(form).encode()
        return await fetch_json(
            self._fetch_for(provider), "POST", metadata.token_endpoint, _TokenResponse, headers=headers, body=body
        )

    async def _userinfo_email(
        self, provider: OAuth2Provider, metadata: ProviderMetadata, token: Secret, subject: str
    ) -> tuple[str, bool]:
        text = token.reveal()
        if len(text) > _MAX_TOKEN_BYTES or not text.isascii() or not text.isprintable():
            raise provider_error("its access token is malformed")
        headers = {"Authorization": f"Bearer {text}"}
        fetch = self._fetch_for(provider)
        userinfo = await fetch_json(fetch, "GET", metadata.userinfo_endpoint, _Userinfo, headers=headers)
        if userinfo.sub != subject:
            raise provider_error("its userinfo is about another subject")
        return userinfo.email.strip(), userinfo.email_verified in _TRUE

    def _fetch_for(self, provider: OAuth2Provider) -> FetchFor:
        return partial(self._fetch, organization=issuer_of(provider).organization)


def _email(provider: OAuth2Provider, claims: ProviderIdToken) -> tuple[str, bool]:
    is_verified = claims.email_verified in _TRUE
    if provider.spec.type == "microsoft":
        is_verified = is_verified or claims.xms_edov in _TRUE
    return claims.email.strip(), is_verified
