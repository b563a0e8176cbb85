"""Grants of the token endpoint.

The client authenticates first. A code, refresh token or device code is valid only for the client that it was issued to.
PKCE is required, except of a confidential client that was registered without; a request that began with a code
challenge ends with its verifier in any case. Requested scopes that are not in `SCOPES` are ignored.
"""

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace

from remuda.access.principal import Context
from remuda.identity.consent import is_issued_by
from remuda.identity.kinds.factors import LoginProof
from remuda.identity.kinds.oauth import AuthorizationCode, DeviceGrant, OAuth2Client
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import User
from remuda.identity.lookups import find_active_user
from remuda.identity.oauth.audit import TOKEN, TokenAudit
from remuda.identity.oauth.clients import (
    Clients,
    OAuthClientCredentials,
    accepts_logins_of,
    needs_challenge,
    rejected_login,
)
from remuda.identity.oauth.codes import AuthorizationCodes, DeviceGrants
from remuda.identity.oauth.schema import BEARER, TokenForm, TokenRead
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.jwt import ID, IdClaims
from remuda.identity.tokens.secrets import s256
from remuda.identity.tokens.service import Issued, Tokens
from remuda.identity.tokens.sessions import RefreshToken, ReusedError, Sessions, is_valid, provider_exists
from remuda.kernel.clock import Clock
from remuda.kernel.encoding import to_base64url
from remuda.kernel.errors import AlreadyExists, OAuthError
from remuda.kernel.secrets import Secret
from remuda.resources.service_info import SCOPES
from remuda.store.contract import Store

AUTHORIZATION_CODE = "authorization_code"
REFRESH_TOKEN = "refresh_token"  # noqa: S105  the name of a grant
CLIENT_CREDENTIALS = "client_credentials"
DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"


ValueT = TypeVar("ValueT", str, Secret)
Grant = Callable[[Context, TokenForm, OAuthClientCredentials], Awaitable[TokenRead]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenGrants:
    """Grants, each of which returns tokens."""

    store: Store
    clock: Clock
    settings: IdentitySettings
    tokens: Tokens
    sessions: Sessions
    clients: Clients
    codes: AuthorizationCodes
    devices: DeviceGrants

    @property
    def by_type(self) -> Mapping[str, Grant]:
        return {
            AUTHORIZATION_CODE: self.by_code,
            REFRESH_TOKEN: self.by_refresh,
            CLIENT_CREDENTIALS: self.by_service,
            DEVICE_CODE: self.by_device,
        }

    async def by_code(self, context: Context, form: TokenForm, credentials: OAuthClientCredentials) -> TokenRead:
        code_sent = _require(form.code, "code")
        _require(form.redirect_uri, "redirect_uri")
        client = await self.clients.authenticate(credentials)
        records = self._records(context)
        code = await self.codes.get(code_sent, ending=records.of_forced_end)
        check_code(code, client, form)
        used = await self.codes.use(code, ending=records.of_forced_end)
        user = await self._active_user(used.spec.user)
        try:
            session, refresh = await self._begin(user, used, records)
        except AlreadyExists:  # begun by an earlier exchange of the same code
            await self.codes.end(used.name, ending=records.of_forced_end)
            raise OAuthError("invalid_grant", "code is used, expired or unknown: log in again") from None
        await self.codes.finish(used, ending=records.of_forced_end)
        await self._check_validity(session, records)
        await self._check_provider(session, user, client, records)
        return await self._response(user, session, refresh, nonce=used.spec.nonce)

    async def by_refresh(self, context: Context, form: TokenForm, credentials: OAuthClientCredentials) -> TokenRead:
        """Exchange a refresh token for new tokens. A narrower scope applies to this access token only."""
        sent = _require(form.refresh_token, "refresh_token")
        client = await self.clients.authenticate(credentials)
        token = RefreshToken.parse(sent.reveal())
        session = await self.sessions.of_refresh(token) if token is not None else None
        if token is None or session is None or session.spec.client != client.name:
            raise OAuthError("invalid_grant", "refresh_token is expired or unknown: log in again")
        records = self._records(context)
        if not await provider_exists(self.store, session.spec.provider):
            await self.sessions.end(session, log=await records.of_forced_end(session))
            raise OAuthError("invalid_grant", "the provider of this login no longer exists: log in again")
        scope = _narrowed(session.spec.scope, form.scope)
        user = await self._active_user(session.spec.user)
        await self._check_provider(session, user, client, records)
        log = await records.of_session(session.name, user=user.name, client=client.name)
        try:
            session, next_token = await self.sessions.refresh(session, token, log=log, ending=records.of_forced_end)
        except ReusedError:
            raise OAuthError("invalid_grant", "refresh token reuse: log in again") from None
        return await self._response(user, replace(session, spec=replace(session.spec, scope=scope)), next_token)

    async def by_device(self, context: Context, form: TokenForm, credentials: OAuthClientCredentials) -> TokenRead:
        sent = _require(form.device_code, "device_code")
        client = await self.clients.authenticate(credentials)
        grant = await self.devices.redeem(sent, client.name)
        user = await self._active_user(grant.spec.user)
        records = self._records(context)
        session, refresh = await self._begin(user, grant, records)
        await self._check_validity(session, records)
        await self._check_provider(session, user, client, records)
        return await self._response(user, session, refresh)

    async def by_service(self, _context: Context, _form: TokenForm, credentials: OAuthClientCredentials) -> TokenRead:
        """Issue a token to a service. Other clients have no permissions of their own."""
        if credentials.assertion is None:
            raise OAuthError("invalid_request", "mTLS client verification failed: send client_assertion")
        name = await self.clients.assertions.verify(credentials.assertion, credentials.assertion_type)
        if name not in self.settings.system_accounts:
            raise OAuthError("unauthorized_client", "only services have permissions of their own: log a user in")
        issued = await self.tokens.issue_for_service(name)
        return TokenRead(access_token=issued.token, token_type=BEARER, expires_in=issued.expires_in)

    async def _begin(
        self, user: User, source: AuthorizationCode | DeviceGrant, records: TokenAudit
    ) -> tuple[Session, RefreshToken]:
        """Begin the session of an authorization code or a device grant, whose client is authenticated."""
        spec, refresh = source.spec, self.sessions.new_refresh(code=source.name)
        session = await self.sessions.begin(
            user=user,
            client=spec.client,
            scope=_granted(spec.scope),
            provider=spec.provider,
            authenticated=spec.authenticated,
            code=source.name,
            login=spec.login,
            methods=spec.methods,
            refresh=refresh,
            log=await records.of_session(refresh.session, user=user.name, client=spec.client),
        )
        return session, refresh

    def _records(self, context: Context) -> TokenAudit:
        return TokenAudit(store=self.store, operation=TOKEN, trace_id=context.trace_id)

    async def _check_validity(self, session: Session, records: TokenAudit) -> None:
        """End a new session and raise OAuthError if its user has meanwhile logged out or changed the password."""
        if not await is_valid(self.store, session, self.clock.now()):
            await self.sessions.end(session, log=await records.of_forced_end(session))
            raise OAuthError("invalid_grant", "the user has logged out or changed the password: log in again")

    async def _check_provider(self, session: Session, user: User, client: OAuth2Client, records: TokenAudit) -> None:
        """End a session of an organization's own provider, and raise OAuthError, if it is not for this client or user.

        The organization may have lost the domain since the login.
        """
        organization = session.spec.organization
        if not accepts_logins_of(client, organization):
            await self.sessions.end(session, log=await records.of_forced_end(session))
            raise rejected_login()
        if organization and not await is_issued_by(self.store, organization, user.spec.subject):
            await self.sessions.end(session, log=await records.of_forced_end(session))
            raise OAuthError(
                "invalid_grant", "the organization of this provider has not proven the domain: log in again"
            )

    async def _active_user(self, name: str) -> User:
        user = await find_active_user(self.store, name)
        if user is None:
            raise OAuthError("access_denied", "user identity not found or inactive", 401)
        return user

    async def _response(
        self, user: User, session: Session, refresh: RefreshToken, nonce: str | None = None
    ) -> TokenRead:
        """Return the tokens of a session, with an ID token if `nonce` is not None and the scope has `openid`."""
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
        organization, subject = session.spec.organization, user.spec.subject
        has_verified_email = not organization or await is_issued_by(self.store, organization, subject)
        has_email = has_verified_email and "email" in session.spec.scope.split()
        claims = IdClaims(
            iss=self.settings.issuer,
            sub=user.spec.subject,
            aud=(session.spec.client,),
            azp=session.spec.client,
            iat=int(self.clock.now().timestamp()),
            exp=int(issued.expires.timestamp()),
            auth_time=int(authenticated.timestamp()),
            amr=session.spec.methods,
            acr=_ACR[session.spec.proof],
            nonce=nonce,
            at_hash=_at_hash(issued.token),
            sid=session.name,
            email=user.spec.subject if has_email else "",
            email_verified=has_email,
            idp=session.spec.provider if organization else "",
        )
        return await self.tokens.sign(claims, ID)


_ACR: Mapping[LoginProof, str] = {"password": "1", "provider": "", "factor": "2"}
"""The `acr` of a login: the number of factors that were proven to us. What a provider asked for is not known."""


def _require(value: ValueT | None, name: str) -> ValueT:
    if not value:
        raise OAuthError("invalid_request", f"{name} must be specified")
    return value


def _granted(scope: str) -> str:
    requested = scope.split()
    return " ".join(each for each in SCOPES if each in requested)


def _narrowed(scope: str, requested: str) -> str:
    """Return the requested part of the session's scope (RFC 6749, section 6)."""
    if not requested:
        return scope
    granted = _granted(requested)
    if set(granted.split()) - set(scope.split()):
        raise OAuthError("invalid_scope", "scope is wider than that of the login: log in again to extend it")
    return granted


def check_code(code: AuthorizationCode, client: OAuth2Client, form: TokenForm) -> None:
    """Raise OAuthError unless a code belongs to the client and the rest of its request."""
    spec = code.spec
    if spec.client != client.name:
        raise OAuthError("invalid_grant", "code was issued to another client: log in again")
    if spec.redirect_uri != form.redirect_uri:
        raise OAuthError(
            "invalid_grant", "redirect_uri differs from that of the authorization request: send the same one"
        )
    verifier = form.code_verifier.reveal() if form.code_verifier is not None else ""
    if not spec.challenge:
        if needs_challenge(client) or verifier:
            raise OAuthError("invalid_client", "the authorization request had no code_challenge: send one")
        return
    if not verifier or not hmac.compare_digest(s256(verifier), spec.challenge):
        raise OAuthError("invalid_client", "code_verifier does not match the code_challenge")


def _at_hash(token: Secret) -> str:
    """Return the `at_hash` of an access token: the left half of its SHA-512."""
    digest = hashlib.sha512(token.reveal().encode()).digest()
    return to_base64url(digest[: len(digest) // 2])
