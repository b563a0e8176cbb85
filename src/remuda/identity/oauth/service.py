"""Service of the token, device authorization, revocation, introspection and userinfo endpoints.

The endpoints are public: callers authenticate as a client, by a token, or by the grant.
"""

from dataclasses import dataclass

from remuda.access.principal import Context
from remuda.http.authentication import read_bearer
from remuda.http.ratelimit import RateLimiter, anonymous
from remuda.identity.oauth.audit import REVOKE, TokenAudit
from remuda.identity.oauth.clients import Clients, OAuthClientCredentials
from remuda.identity.oauth.codes import DeviceGrants
from remuda.identity.oauth.exchange import TOKEN_EXCHANGE, TokenExchange, reject_query
from remuda.identity.oauth.genuine import GenuineCredentials
from remuda.identity.oauth.grants import TokenGrants
from remuda.identity.oauth.schema import (
    BEARER,
    Authz,
    DeviceAuthorization,
    DeviceAuthorizationForm,
    IntrospectionRead,
    TokenForm,
    TokenQuery,
    TokenRead,
    TokenReferenceForm,
    UserinfoRead,
)
from remuda.identity.rbac.service import Permissions
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.bearer import Bearer, Bearers
from remuda.identity.tokens.jwt import Claims
from remuda.identity.tokens.service import Tokens
from remuda.identity.tokens.sessions import RefreshToken, Sessions
from remuda.kernel.errors import OAuthError, Unauthenticated
from remuda.kernel.fields import common_fields

_same_claims = common_fields(Claims, IntrospectionRead)


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuth:
    """Service of the OAuth 2.0 endpoints for clients."""

    settings: IdentitySettings
    tokens: Tokens
    sessions: Sessions
    bearers: Bearers
    permissions: Permissions
    clients: Clients
    devices: DeviceGrants
    device_limit: RateLimiter
    """Rate limit of device authorizations per address."""
    grants: TokenGrants
    exchange: TokenExchange
    genuine: GenuineCredentials

    async def token(self, context: Context, form: TokenForm, query: TokenQuery, authorization: str) -> TokenRead:
        reject_query(query)
        if form.grant_type == TOKEN_EXCHANGE:
            return await self.exchange.passport(form)
        grant = self.grants.by_type.get(form.grant_type)
        if grant is None:
            raise OAuthError("invalid_request", "token grant type is not supported")
        return await grant(context, form, OAuthClientCredentials.from_request(form, authorization))

    async def authorize_device(
        self, form: DeviceAuthorizationForm, authorization: str, *, peer: str
    ) -> DeviceAuthorization:
        """Start a device authorization. The rate per address is limited, because each one is stored."""
        self.device_limit.take(anonymous((peer, 0)))
        client = await self.clients.authenticate(OAuthClientCredentials.from_request(form, authorization))
        return await self.devices.begin(client.name, form.scope)

    async def userinfo(self, token: str) -> UserinfoRead:
        bearer = await self.bearers.identify(token)
        resolved = await self.permissions.of_bearer(bearer, with_groups=False)
        has_email = bearer.type == "user" and "email" in bearer.scope.split() and bearer.has_verified_email
        return UserinfoRead(
            sub=bearer.subject,
            authz=Authz(acctype=bearer.type, org_ids=resolved.organizations),
            email=bearer.subject if has_email else "",
            email_verified=has_email,
            name=bearer.display_name,
            idp=bearer.provider,
        )

    async def revoke(self, context: Context, form: TokenReferenceForm, authorization: str) -> None:
        """Revoke a token. An invalid or unknown token is no error (RFC 7009)."""
        caller = await self._caller(form, authorization)
        records = self._records(context, caller)
        refresh = RefreshToken.parse(form.token.reveal())
        if refresh is not None:
            await self._revoke_refresh(refresh, caller, records)
            return
        try:
            claims = await self.tokens.verify(form.token.reveal())
        except Unauthenticated:
            return
        _check_own(caller, client=claims.cid, user=claims.uid, subject=claims.sub)
        await self.tokens.revoke(claims.jti, expires=claims.expires, log=await records.of_revocation(claims))

    async def introspect(self, form: TokenReferenceForm, authorization: str) -> IntrospectionRead:
        """Return the state of a token (RFC 7662), to a service or to the client that it was issued to."""
        caller = await self._caller(form, authorization)
        if isinstance(caller, Bearer) and caller.type != "system":
            raise OAuthError(
                "access_denied", "only services and clients may introspect tokens: send a service's token", 401
            )
        if isinstance(caller, str) and not await self._is_confidential(caller):
            raise OAuthError("unauthorized_client", "a public client cannot introspect tokens: use one with a secret")
        refresh = RefreshToken.parse(form.token.reveal())
        if refresh is not None:
            return await self._introspect_refresh(refresh, caller)
        try:
            bearer = await self.bearers.identify(form.token.reveal())
        except Unauthenticated:
            return IntrospectionRead(active=False)
        claims = bearer.claims
        if claims is None or (isinstance(caller, str) and claims.cid != caller):
            return IntrospectionRead(active=False)
        return IntrospectionRead(
            active=True,
            scope=claims.sco,
            client_id=claims.cid,
            username=bearer.subject if bearer.type == "user" else "",
            token_type=BEARER,
            **_same_claims(claims),
        )

    async def _revoke_refresh(self, refresh: RefreshToken, caller: Bearer | str, records: TokenAudit) -> None:
        session = await self.sessions.of_refresh(refresh)
        if session is None:
            return
        user, client = session.spec.user, session.spec.client
        _check_own(caller, client=client, user=user)
        await self.sessions.end(session, log=await records.of_session(session.name, user=user, client=client))

    def _records(self, context: Context, caller: Bearer | str) -> TokenAudit:
        operator = caller.operator if isinstance(caller, Bearer) else ""
        return TokenAudit(store=self.sessions.store, operation=REVOKE, trace_id=context.trace_id, operator=operator)

    async def _introspect_refresh(self, refresh: RefreshToken, caller: Bearer | str) -> IntrospectionRead:
        session = await self.sessions.of_refresh(refresh)
        if session is None or not refresh.matches(session.spec.refresh_hash):
            return IntrospectionRead(active=False)
        spec = session.spec
        end = self.sessions.end_time(session)
        if end is None or (isinstance(caller, str) and caller != spec.client):
            return IntrospectionRead(active=False)
        return IntrospectionRead(
            active=True,
            scope=spec.scope,
            client_id=spec.client,
            exp=int(end.timestamp()),
            iss=self.settings.issuer,
        )

    async def _caller(self, form: TokenReferenceForm, authorization: str) -> Bearer | str:
        """Return the bearer of a token, or the id of an authenticated client."""
        if authorization.lower().startswith("bearer"):
            try:
                return await self.bearers.identify(read_bearer(authorization.encode("latin-1")))
            except Unauthenticated as error:
                raise OAuthError("access_denied", error.message, 401) from None
        return (await self.clients.authenticate(OAuthClientCredentials.from_request(form, authorization))).name

    async def _is_confidential(self, client: str) -> bool:
        found = await self.clients.find(client)
        return found is not None and not found.spec.is_public


def _check_own(caller: Bearer | str, *, client: str, user: str, subject: str = "") -> None:
    """Raise OAuthError if the token was issued to another client or belongs to another user."""
    if isinstance(caller, str):
        is_own = caller == client
    else:
        is_own = caller.subject == subject or (caller.user is not None and caller.user.name == user)
    if not is_own:
        raise OAuthError(
            "unauthorized_client", "the token was issued to another client or user: only that one may revoke it"
        )
