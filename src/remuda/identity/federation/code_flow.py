"""Logging in at an external OpenID provider: the code flow with a nonce of our own and PKCE.

We believe a provider about one thing, an e-mail address, and only if it says that the address was verified: the address
is what we know people by. Where the ID token does not have it, userinfo is asked, as the standard allows.
"""

import base64
from collections.abc import Mapping
from urllib.parse import quote, urlencode

import msgspec

from remuda.http.pages import with_query
from remuda.identity.federation.idtokens import IdToken, read_id_token
from remuda.identity.federation.provider_client import SelfDescription, Upstream, broken, fetch_json
from remuda.identity.kinds.oauth import OAuth2Provider
from remuda.identity.pkce import s256
from remuda.identity.ports import Fetch
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.secrets import new_secret
from remuda.kernel.clock import Clock
from remuda.kernel.errors import OAuthRefusal
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret

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
        """Return the verified e-mail address of who comes back, or raise OAuthRefusal."""
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
            raise OAuthRefusal("access_denied", "the provider does not tell your e-mail address")
        if not is_verified:
            raise OAuthRefusal("access_denied", "the provider has not verified your e-mail address")
        return email

    def _check_sender(self, about: SelfDescription, issuer: str) -> None:
        """Let no provider answer in the place of another (RFC 9207)."""
        is_told = bool(issuer) or about.authorization_response_iss_parameter_supported
        if is_told and issuer != about.issuer:
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
