"""The port of the room for programs: tokens for grants, and questions about tokens.

Its endpoints are public: whoever asks proves itself here, as a client, by a token, or by what is exchanged.
"""

from dataclasses import dataclass

from remuda.access.principal import Context
from remuda.http.authentication import read_bearer
from remuda.http.ratelimit import RateLimiter, anonymous
from remuda.identity.oauth.audit import REVOKE, Records
from remuda.identity.oauth.clients import ClientProof, Clients
from remuda.identity.oauth.codes import Devices
from remuda.identity.oauth.exchange import TOKEN_EXCHANGE, Exchange, refuse_query
from remuda.identity.oauth.grants import Grants
from remuda.identity.oauth.registration import Registration
from remuda.identity.oauth.schema import (
    BEARER,
    Authz,
    DeviceAuthorization,
    DeviceAuthorizationForm,
    IntrospectionRead,
    ShownToken,
    TokenForm,
    TokenQuery,
    TokenRead,
    UserinfoRead,
)
from remuda.identity.rbac.service import Permissions
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.bearer import Bearer, Bearers
from remuda.identity.tokens.service import Tokens
from remuda.identity.tokens.sessions import RefreshToken, Sessions
from remuda.kernel.errors import OAuthError, Unauthenticated


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuth:
    """The service."""

    settings: IdentitySettings
    tokens: Tokens
    sessions: Sessions
    bearers: Bearers
    permissions: Permissions
    clients: Clients
    devices: Devices
    beginnings: RateLimiter
    """How often one address may have a device begin."""
    grants: Grants
    exchange: Exchange
    registration: Registration

    async def token(self, context: Context, form: TokenForm, query: TokenQuery, authorization: str) -> TokenRead:
        refuse_query(query)
        if form.grant_type == TOKEN_EXCHANGE:
            return await self.exchange.passport(form)
        grant = self.grants.known.get(form.grant_type)
        if grant is None:
            raise OAuthError("invalid_request", "token grant type is not supported")
        return await grant(context, form, ClientProof.of(form, authorization))

    async def authorize_device(
        self, form: DeviceAuthorizationForm, authorization: str, *, peer: str
    ) -> DeviceAuthorization:
        """Begin to let a device in. How often one address may is limited, because each time something is stored."""
        self.beginnings.take(anonymous((peer, 0)))
        client = await self.clients.authenticate(ClientProof.of(form, authorization))
        return await self.devices.begin(client.name, form.scope)

    async def userinfo(self, token: str) -> UserinfoRead:
        """Return who the bearer of a token is."""
        bearer = await self.bearers.identify(token)
        standing = await self.permissions.of_bearer(bearer, with_groups=False)
        has_email = bearer.type == "user" and "email" in bearer.scope.split()
        return UserinfoRead(
            sub=bearer.subject,
            authz=Authz(acctype=bearer.type, org_ids=standing.organizations),
            email=bearer.subject if has_email else "",
            email_verified=has_email,
        )

    async def revoke(self, context: Context, form: ShownToken, authorization: str) -> None:
        """Let a token be good no more. One that is not good, or not known, is fine already (RFC 7009)."""
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

    async def introspect(self, form: ShownToken, authorization: str) -> IntrospectionRead:
        """Return what a token is good for (RFC 7662): to a service, and to the client that it was given to."""
        caller = await self._caller(form, authorization)
        if isinstance(caller, Bearer) and caller.type != "system":
            raise OAuthError("access_denied", "only services and clients may ask: show a service's token", 401)
        if isinstance(caller, str) and not await self._keeps_secrets(caller):
            raise OAuthError("unauthorized_client", "a public client cannot prove who asks: use one with a secret")
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
            exp=claims.exp,
            iat=claims.iat,
            nbf=claims.nbf,
            sub=claims.sub,
            aud=claims.aud,
            iss=claims.iss,
            jti=claims.jti,
        )

    async def _revoke_refresh(self, refresh: RefreshToken, caller: Bearer | str, records: Records) -> None:
        session = await self.sessions.of_refresh(refresh)
        if session is None:
            return
        user, client = session.spec.user, session.spec.client
        _check_own(caller, client=client, user=user)
        await self.sessions.end(session, log=await records.of_session(session.name, user=user, client=client))

    def _records(self, context: Context, caller: Bearer | str) -> Records:
        operator = caller.operator if isinstance(caller, Bearer) else ""
        return Records(store=self.sessions.store, operation=REVOKE, trace_id=context.trace_id, operator=operator)

    async def _introspect_refresh(self, refresh: RefreshToken, caller: Bearer | str) -> IntrospectionRead:
        session = await self.sessions.of_refresh(refresh)
        if session is None or not refresh.matches(session.spec.refresh_hash):
            return IntrospectionRead(active=False)
        spec = session.spec
        if spec.expires is None or (isinstance(caller, str) and caller != spec.client):
            return IntrospectionRead(active=False)
        return IntrospectionRead(
            active=True,
            scope=spec.scope,
            client_id=spec.client,
            exp=int(spec.expires.timestamp()),
            iss=self.settings.issuer,
        )

    async def _caller(self, form: ShownToken, authorization: str) -> Bearer | str:
        """Return who asks: the bearer of a token, or a client by its id."""
        if authorization.lower().startswith("bearer"):
            try:
                return await self.bearers.identify(read_bearer(authorization.encode("latin-1")))
            except Unauthenticated as error:
                raise OAuthError("access_denied", error.message, 401) from None
        return (await self.clients.authenticate(ClientProof.of(form, authorization))).name

    async def _keeps_secrets(self, client: str) -> bool:
        found = await self.clients.find(client)
        return found is not None and not found.spec.is_public


def _check_own(caller: Bearer | str, *, client: str, user: str, subject: str = "") -> None:
    """Refuse to revoke what was given to another client, or is another user's."""
    if isinstance(caller, str):
        is_own = caller == client
    else:
        is_own = caller.subject == subject or (caller.user is not None and caller.user.name == user)
    if not is_own:
        raise OAuthError("unauthorized_client", "the token is not yours to revoke: ask whoever it was given to")
