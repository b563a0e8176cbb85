"""Logging in at an external OpenID provider: the code flow with a nonce of our own and PKCE.

We believe a provider about one thing, an e-mail address, and only if it says that the address was verified: the address
is what we know people by. Where the ID token does not have it, userinfo is asked, as the standard allows.

ID tokens of external providers: believed only if all of it fits.

The signature is by a key that the provider publishes, under an asymmetric algorithm; issuer, audience and authorized
party are those of this login; the nonce is the one that this browser was sent there with; it is of now. A clock may
differ from ours by a minute.
"""

import base64
import hmac
from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode

import msgspec
from joserfc import jws
from joserfc.errors import JoseError

from remuda.http.pages import with_query
from remuda.identity.federation.provider_client import PublicKey, SelfDescription, Upstream, broken, fetch_json
from remuda.identity.kinds.oauth import OAuth2Provider
from remuda.identity.ports import Fetch
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.secrets import new_secret, s256
from remuda.kernel import encoding as base64url
from remuda.kernel.clock import Clock
from remuda.kernel.errors import OAuthError
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret

_ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "Ed25519", "EdDSA"),
)
_LEEWAY_S = 60
_LONGEST = 32_768


class IdToken(msgspec.Struct, frozen=True):
    """What it says about who logged in."""

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
    """Microsoft's word for it: the owner of the address's domain has been verified."""

    @property
    def audience(self) -> tuple[str, ...]:
        """For whom it is."""
        return (self.aud,) if isinstance(self.aud, str) else self.aud


class _Head(msgspec.Struct, frozen=True):
    kid: str | None = None


async def read_id_token(
    token: Secret, *, issuer: str, client: str, nonce: str, upstream: Upstream, clock: Clock
) -> IdToken:
    """Return what an ID token says, or raise OAuthError if it is not to be believed."""
    text = token.reveal()
    if len(text) > _LONGEST:
        raise broken("its ID token is too long")
    said = _verified(text, await upstream.keys(issuer, _head(text).kid))
    if problem := _problem(said, issuer=issuer, client=client, nonce=nonce, now=clock.now().timestamp()):
        raise broken(f"its ID token {problem}")
    return said


def _head(text: str) -> _Head:
    try:
        return msgspec.json.decode(base64url.decode(text.partition(".")[0]), type=_Head)
    except (ValueError, RecursionError):
        raise broken("its ID token is malformed") from None


def _verified(text: str, keys: Sequence[PublicKey]) -> IdToken:
    for key in keys:
        try:
            payload = jws.deserialize_compact(text.encode(), key, algorithms=list(_ALGORITHMS)).payload
            return msgspec.json.decode(payload, type=IdToken)
        except (msgspec.DecodeError, RecursionError):
            break
        except (JoseError, ValueError, TypeError):
            continue  # of another kind, or of another provider's
    raise broken("its ID token is not signed by one of its keys in a way that we take, or says too little")


def _problem(said: IdToken, *, issuer: str, client: str, nonce: str, now: float) -> str:
    is_ours_alone = len(said.audience) == 1 and said.azp is None
    demands = {
        "is from another issuer": said.iss == issuer,
        "is for another client": client in said.audience,
        "was made for another party": is_ours_alone or said.azp == client,
        "is of another login": hmac.compare_digest(said.nonce.encode(), nonce.encode()),
        "has expired": now - _LEEWAY_S < said.exp,
        "is from the future": said.iat < now + _LEEWAY_S,
    }
    return next((problem for problem, is_met in demands.items() if not is_met), "")


_TRUE = (True, "true", 1, "1")


class Ticket(msgspec.Struct, frozen=True):
    """What proves, when somebody comes back from a provider, that it is who was sent there."""

    provider: str
    nonce: str
    verifier: str


class _Exchanged(msgspec.Struct, frozen=True):
    id_token: str
    access_token: str = ""


class _Userinfo(msgspec.Struct, frozen=True):
    sub: str
    email: str = ""
    email_verified: bool | str = False


class Federation:
    """Sends people to providers, and hears who they are."""

    def __init__(self, *, fetch: Fetch, clock: Clock, randomness: Randomness, settings: IdentitySettings) -> None:
        self._fetch, self._clock, self._randomness = fetch, clock, randomness
        self._callback = f"{settings.issuer}/oidc/callback"
        self._upstream = Upstream(fetch=fetch, clock=clock)

    def ticket(self, provider: OAuth2Provider) -> Ticket:
        nonce, verifier = (new_secret(self._randomness).reveal() for _ in range(2))
        return Ticket(provider.name, nonce, verifier)

    async def departure(
        self, provider: OAuth2Provider, ticket: Ticket, *, state: str, wishes: Mapping[str, str]
    ) -> str:
        """Return where to send the browser; `wishes` are parameters of the client's that travel along."""
        about = await self._upstream.about(provider.spec.issuer)
        asked = {
            "response_type": "code",
            "client_id": provider.spec.client_id,
            "redirect_uri": self._callback,
            "scope": "openid email",
            "state": state,
            "nonce": ticket.nonce,
            "code_challenge": s256(ticket.verifier),
            "code_challenge_method": "S256",
        }
        sent = {name: value for name, value in {**wishes, **asked}.items() if value}
        return with_query(about.authorization_endpoint, sent)

    async def arrival(self, provider: OAuth2Provider, ticket: Ticket, *, code: str, issuer: str) -> str:
        """Return the verified e-mail address of who comes back, or raise OAuthError."""
        about = await self._upstream.about(provider.spec.issuer)
        self._check_sender(about, issuer)
        exchanged = await self._exchange(provider, about, ticket, code)
        said = await read_id_token(
            Secret(exchanged.id_token),
            issuer=about.issuer,
            client=provider.spec.client_id,
            nonce=ticket.nonce,
            upstream=self._upstream,
            clock=self._clock,
        )
        email, is_verified = _address(provider, said)
        if not email and exchanged.access_token and about.userinfo_endpoint:
            email, is_verified = await self._ask(about, Secret(exchanged.access_token), said.sub)
        if not email:
            raise OAuthError("access_denied", "the provider does not tell your e-mail address")
        if not is_verified:
            raise OAuthError("access_denied", "the provider has not verified your e-mail address")
        return email

    def _check_sender(self, about: SelfDescription, issuer: str) -> None:
        """Let no provider answer in the place of another (RFC 9207)."""
        should_announce = bool(issuer) or about.authorization_response_iss_parameter_supported
        if should_announce and issuer != about.issuer:
            raise broken("another provider answered in its place")

    async def _exchange(
        self, provider: OAuth2Provider, about: SelfDescription, ticket: Ticket, code: str
    ) -> _Exchanged:
        client, secret = provider.spec.client_id, provider.spec.client_secret
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._callback,
            "code_verifier": ticket.verifier,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        methods = about.token_endpoint_auth_methods_supported
        if secret is None:
            form |= {"client_id": client}
        elif "client_secret_basic" in methods or "client_secret_post" not in methods:
            both = f"{quote(client, safe='')}:{quote(secret.reveal(), safe='')}"
            headers |= {"Authorization": f"Basic {base64.b64encode(both.encode()).decode()}"}
        else:
            form |= {"client_id": client, "client_secret": secret.reveal()}
        body = urlencode(form).encode()
        return await fetch_json(self._fetch, "POST", about.token_endpoint, _Exchanged, headers=headers, body=body)

    async def _ask(self, about: SelfDescription, token: Secret, subject: str) -> tuple[str, bool]:
        headers = {"Authorization": f"Bearer {token.reveal()}"}
        told = await fetch_json(self._fetch, "GET", about.userinfo_endpoint, _Userinfo, headers=headers)
        if told.sub != subject:
            raise broken("its userinfo is about somebody else")
        return told.email.strip(), told.email_verified in _TRUE


def _address(provider: OAuth2Provider, said: IdToken) -> tuple[str, bool]:
    is_verified = said.email_verified in _TRUE
    if provider.spec.type == "microsoft":
        is_verified = is_verified or said.xms_edov in _TRUE
    return said.email.strip(), is_verified
