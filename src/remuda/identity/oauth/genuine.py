"""Recognition of genuine credentials, which never wait for the failures of others at their address.

Client secrets, authorization codes, device codes and refresh tokens have 256 random bits and are stored as hashes, so a
lookup by index tells whether they are ours. It costs the same for each request, needs no request to another process and
changes nothing: what is recognized is verified afterwards like everything else.

Who has to wait learns that a credential is not ours, so a request is genuine only as a whole: the secret of a client
with the code of another one, or a code without its verifier, waits like a forged one.
"""

from dataclasses import dataclass

from remuda.http.authentication import read_bearer
from remuda.identity.kinds.oauth import AuthorizationCode, DeviceGrant, OAuth2Client
from remuda.identity.kinds.tokens import Session
from remuda.identity.oauth.clients import Clients, OAuthClientCredentials
from remuda.identity.oauth.exchange import TOKEN_EXCHANGE
from remuda.identity.oauth.grants import AUTHORIZATION_CODE, CLIENT_CREDENTIALS, DEVICE_CODE, REFRESH_TOKEN, check_code
from remuda.identity.oauth.schema import ClientForm, TokenForm
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.secrets import token_hash
from remuda.identity.tokens.service import Tokens
from remuda.identity.tokens.sessions import RefreshToken, Sessions
from remuda.kernel.clock import Clock
from remuda.kernel.errors import OAuthError, Unauthenticated
from remuda.kernel.secrets import Secret
from remuda.resources.crud import find_by_index
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class GenuineCredentials:
    """Recognition of the credentials in requests to the OAuth 2.0 endpoints."""

    store: Store
    clock: Clock
    settings: IdentitySettings
    tokens: Tokens
    sessions: Sessions
    clients: Clients

    async def is_token(self, token: str) -> bool:
        """Return whether an access token has our signature. One of an external issuer has not."""
        try:
            await self.tokens.verify(token)
        except Unauthenticated:
            return False
        return True

    async def is_bearer(self, authorization: str) -> bool:
        """Return whether the header has an access token with our signature."""
        try:
            token = read_bearer(authorization.encode("latin-1"))
        except Unauthenticated:
            return False
        return await self.is_token(token)

    async def is_client(self, form: ClientForm, authorization: str) -> bool:
        """Return whether the client is a public one, or has its secret or an assertion signed with its key."""
        return await self._client(form, authorization) is not None

    async def is_caller(self, form: ClientForm, authorization: str) -> bool:
        """Return whether the caller is genuine as a client or by an access token."""
        if authorization.lower().startswith("bearer"):
            return await self.is_bearer(authorization)
        return await self.is_client(form, authorization)

    async def is_grant(self, form: TokenForm, authorization: str) -> bool:
        """Return whether a token request has a genuine grant, and comes from the client that it was issued to."""
        if form.grant_type == TOKEN_EXCHANGE:
            return form.subject_token is not None and await self.is_token(form.subject_token.reveal())
        if form.grant_type == CLIENT_CREDENTIALS:
            return await self._is_service(form)
        client = await self._client(form, authorization)
        return client is not None and await self._is_grant_of(client, form)

    async def _is_grant_of(self, client: OAuth2Client, form: TokenForm) -> bool:
        if form.grant_type == AUTHORIZATION_CODE and form.code is not None:
            return await self._is_code(form.code, client, form)
        if form.grant_type == REFRESH_TOKEN and form.refresh_token is not None:
            return await self._is_refresh_token(form.refresh_token, client)
        if form.grant_type == DEVICE_CODE and form.device_code is not None:
            return await self._is_device_code(form.device_code, client)
        return False

    async def _client(self, form: ClientForm, authorization: str) -> OAuth2Client | None:
        try:
            credentials = OAuthClientCredentials.from_request(form, authorization)
        except OAuthError:
            return None
        return await self.clients.recognize(credentials)

    async def _is_service(self, form: ClientForm) -> bool:
        if form.client_assertion is None:
            return False
        return await self.clients.assertions.sender(form.client_assertion) in self.settings.system_accounts

    async def _is_code(self, sent: Secret, client: OAuth2Client, form: TokenForm) -> bool:
        code = await find_by_index(self.store, AuthorizationCode, "code", token_hash(sent.reveal()))
        if code is None or code.spec.is_used or code.spec.expires is None or code.spec.expires <= self.clock.now():
            return False
        try:
            check_code(code, client, form)
        except OAuthError:
            return False
        return True

    async def _is_refresh_token(self, sent: Secret, client: OAuth2Client) -> bool:
        """Return whether this is the refresh token of an active session, or an earlier one, whose use ends it."""
        token = RefreshToken.parse(sent.reveal())
        session = await find_by_index(self.store, Session, "refresh", token.family_hash) if token is not None else None
        return session is not None and self.sessions.is_alive(session) and session.spec.client == client.name

    async def _is_device_code(self, sent: Secret, client: OAuth2Client) -> bool:
        grant = await find_by_index(self.store, DeviceGrant, "device-code", token_hash(sent.reveal()))
        return grant is not None and grant.spec.client == client.name
