"""The token endpoint, grant by grant: something that proves a right to tokens becomes tokens.

The client proves itself first. Whoever then shows a code, a refresh token or a device code must be the client that it
was given to. PKCE is demanded of public clients, and of every login that began with it. Of the scopes that were asked
for those are granted that change anything (`SCOPES`).
"""

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace

from remuda.access.principal import Context
from remuda.identity.kinds.oauth import AuthorizationCode, OAuth2Client
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import User
from remuda.identity.lookups import find_active_user
from remuda.identity.oauth.audit import TOKEN, Records
from remuda.identity.oauth.clients import ClientProof, Clients
from remuda.identity.oauth.codes import Codes, Devices
from remuda.identity.oauth.schema import BEARER, TokenForm, TokenRead
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.jwt import ID, IdClaims
from remuda.identity.tokens.secrets import s256
from remuda.identity.tokens.service import Issued, Tokens
from remuda.identity.tokens.sessions import RefreshToken, ReusedError, Sessions, is_valid, provider_exists
from remuda.kernel import encoding as base64url
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, OAuthError
from remuda.kernel.secrets import Secret
from remuda.resources.service_info import SCOPES
from remuda.store.contract import Store

AUTHORIZATION_CODE = "authorization_code"
"""A login through a browser."""
REFRESH_TOKEN = "refresh_token"  # noqa: S105  the name of a grant
"""An earlier login."""
CLIENT_CREDENTIALS = "client_credentials"
"""A service."""
DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"
"""A login on another device."""


ValueT = TypeVar("ValueT", str, Secret)
Grant = Callable[[Context, TokenForm, ClientProof], Awaitable[TokenRead]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """Turns grants into tokens."""

    store: Store
    clock: Clock
    settings: IdentitySettings
    tokens: Tokens
    sessions: Sessions
    clients: Clients
    codes: Codes
    devices: Devices

    @property
    def known(self) -> Mapping[str, Grant]:
        """Every grant, by its name on the wire."""
        return {
            AUTHORIZATION_CODE: self.by_code,
            REFRESH_TOKEN: self.by_refresh,
            CLIENT_CREDENTIALS: self.by_credentials,
            DEVICE_CODE: self.by_device,
        }

    async def by_code(self, context: Context, form: TokenForm, proof: ClientProof) -> TokenRead:
        """Exchange an authorization code."""
        code_sent = _needed(form.code, "code")
        _needed(form.redirect_uri, "redirect_uri")
        client = await self.clients.authenticate(proof)
        records = self._records(context)
        code = await self.codes.find(code_sent, ending=records.of_forced_end)
        _check_code(code, client, form)
        used = await self.codes.use(code, ending=records.of_forced_end)
        user = await self._active_user(used.spec.user)
        refresh, spec = self.sessions.new_refresh(code=used.name), used.spec
        try:
            session = await self.sessions.begin(
                user=user,
                client=client.name,
                scope=_granted(spec.scope),
                provider=spec.provider,
                authenticated=spec.authenticated,
                code=used.name,
                login=spec.login,
                refresh=refresh,
                log=await records.of_session(refresh.session, user=user.name, client=client.name),
            )
        except AlreadyExists:  # begun by whoever used the code before it was forgotten
            await self.codes.end(used.name, ending=records.of_forced_end)
            raise OAuthError("invalid_grant", "code is used, expired or unknown: log in again") from None
        await self.codes.settle(used, ending=records.of_forced_end)
        await self._check_footing(session, records)
        return await self._answer(user, session, refresh, nonce=spec.nonce)

    async def by_refresh(self, context: Context, form: TokenForm, proof: ClientProof) -> TokenRead:
        """Exchange a refresh token for the next pair. What it is narrowed to holds for this access token alone."""
        sent = _needed(form.refresh_token, "refresh_token")
        client = await self.clients.authenticate(proof)
        token = RefreshToken.parse(sent.reveal())
        session = await self.sessions.of_refresh(token) if token is not None else None
        if token is None or session is None or session.spec.client != client.name:
            raise OAuthError("invalid_grant", "refresh_token is expired or unknown: log in again")
        records = self._records(context)
        if not await provider_exists(self.store, session.spec.provider):
            await self.sessions.end(session, log=await records.of_forced_end(session))
            raise OAuthError("invalid_grant", "the provider of this login is gone: log in again")
        scope = _narrowed(session.spec.scope, form.scope)
        user = await self._active_user(session.spec.user)
        log = await records.of_session(session.name, user=user.name, client=client.name)
        try:
            session, following = await self.sessions.refresh(session, token, log=log, ending=records.of_forced_end)
        except ReusedError:
            raise OAuthError("invalid_grant", "refresh token reuse: log in again") from None
        return await self._answer(user, replace(session, spec=replace(session.spec, scope=scope)), following)

    async def by_device(self, context: Context, form: TokenForm, proof: ClientProof) -> TokenRead:
        """Let a device in, if its user has said yes."""
        sent = _needed(form.device_code, "device_code")
        client = await self.clients.authenticate(proof)
        grant = await self.devices.take(sent, client.name)
        user = await self._active_user(grant.spec.user)
        refresh, records = self.sessions.new_refresh(code=grant.name), self._records(context)
        session = await self.sessions.begin(
            user=user,
            client=client.name,
            scope=_granted(grant.spec.scope),
            provider=grant.spec.provider,
            authenticated=grant.spec.authenticated,
            code=grant.name,
            refresh=refresh,
            log=await records.of_session(refresh.session, user=user.name, client=client.name),
        )
        await self._check_footing(session, records)
        return await self._answer(user, session, refresh)

    async def by_credentials(self, context: Context, form: TokenForm, proof: ClientProof) -> TokenRead:  # noqa: ARG002  a Grant
        """Give a service a token of its own. A client that is no service has no rights of its own to have one for."""
        if proof.assertion is None:
            raise OAuthError("invalid_request", "mTLS client verification failed: send client_assertion")
        name = await self.clients.assertions.prove(proof.assertion, proof.assertion_type)
        if name not in self.settings.system_accounts:
            raise OAuthError("unauthorized_client", "only services have rights of their own: log a user in")
        issued = await self.tokens.issue_for_service(name)
        return TokenRead(access_token=issued.token, token_type=BEARER, expires_in=issued.expires_in)

    def _records(self, context: Context) -> Records:
        return Records(store=self.store, operation=TOKEN, trace_id=context.trace_id)

    async def _check_footing(self, session: Session, records: Records) -> None:
        """End a session again, and raise OAuthError, if its user has logged out, or has another password, by now."""
        if not await is_valid(self.store, session, self.clock.now()):
            await self.sessions.end(session, log=await records.of_forced_end(session))
            raise OAuthError("invalid_grant", "the user has logged out, or has another password: log in again")

    async def _active_user(self, name: str) -> User:
        user = await find_active_user(self.store, name)
        if user is None:
            raise OAuthError("access_denied", "user identity not found or inactive", 401)
        return user

    async def _answer(self, user: User, session: Session, refresh: RefreshToken, nonce: str | None = None) -> TokenRead:
        """Return the tokens of a session; with a nonce, be it empty, it is a login that gets an ID token, too."""
        issued = await self.tokens.issue_for_session(user, session)
        scopes = session.spec.scope.split()
        has_id = nonce is not None and "openid" in scopes
        return TokenRead(
            access_token=issued.token,
            token_type=BEARER,
            expires_in=issued.expires_in,
            refresh_token=refresh.text,
            id_token=await self._id_token(user, session, issued, nonce or "") if has_id else None,
            scope=session.spec.scope,
        )

    async def _id_token(self, user: User, session: Session, issued: Issued, nonce: str) -> Secret:
        authenticated = session.spec.authenticated or self.clock.now()
        has_email = "email" in session.spec.scope.split()
        claims = IdClaims(
            iss=self.settings.issuer,
            sub=user.spec.subject,
            aud=(session.spec.client,),
            azp=session.spec.client,
            iat=int(self.clock.now().timestamp()),
            exp=int(issued.expires.timestamp()),
            auth_time=int(authenticated.timestamp()),
            nonce=nonce,
            at_hash=_at_hash(issued.token),
            sid=session.name,
            email=user.spec.subject if has_email else "",
            email_verified=has_email,
        )
        return await self.tokens.sign(claims, ID)


def _needed(value: ValueT | None, name: str) -> ValueT:
    if not value:
        raise OAuthError("invalid_request", f"{name} must be specified")
    return value


def _granted(scope: str) -> str:
    asked = scope.split()
    return " ".join(each for each in SCOPES if each in asked)


def _narrowed(had: str, asked: str) -> str:
    """Return the scope of the next token: that of the login, or the part of it that is asked for (RFC 6749, 6)."""
    if not asked:
        return had
    scope = _granted(asked)
    if set(scope.split()) - set(had.split()):
        raise OAuthError("invalid_scope", "scope is wider than at the login: log in again to have more")
    return scope


def _check_code(code: AuthorizationCode, client: OAuth2Client, form: TokenForm) -> None:
    spec = code.spec
    if spec.client != client.name:
        raise OAuthError("invalid_grant", "code was given to another client: log in again")
    if spec.redirect_uri != form.redirect_uri:
        raise OAuthError("invalid_grant", "redirect_uri is not that of the login: send the same one")
    verifier = form.code_verifier.reveal() if form.code_verifier is not None else ""
    if not spec.challenge:
        if client.spec.is_public or verifier:
            raise OAuthError("invalid_client", "the login had no code_challenge: begin it with one")
        return
    made = s256(verifier) if spec.challenge_method == "S256" else verifier
    if not verifier or not hmac.compare_digest(made.encode(), spec.challenge.encode()):
        raise OAuthError("invalid_client", "code_verifier does not match the code_challenge of the login")


def _at_hash(token: Secret) -> str:
    """Return the left half of the SHA-512 of an access token, by which an ID token names it."""
    digest = hashlib.sha512(token.reveal().encode()).digest()
    return base64url.encode(digest[: len(digest) // 2])
