"""Token exchange (RFC 8693): a service exchanges a caller's token for a passport.

A passport names the caller and the organization and project in scope, for a minute at most, and holds no permissions.
The scope is checked here, so a service need not check the caller's membership again.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from remuda.access.principal import AccessList
from remuda.identity.kinds.tenancy import Organization, Project
from remuda.identity.oauth.schema import BEARER, TokenForm, TokenQuery, TokenRead
from remuda.identity.rbac.service import Permissions
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.bearer import Bearer, Bearers
from remuda.identity.tokens.jwt import NOT_VALID, PASSPORT, PASSPORT_ISSUER, PassportClaims
from remuda.identity.tokens.service import Tokens
from remuda.kernel.clock import Clock
from remuda.kernel.errors import OAuthError, Unauthenticated
from remuda.kernel.ids import random_id
from remuda.kernel.randomness import Randomness
from remuda.resources.crud import each_once, exists, find_in
from remuda.store.contract import Store

TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105  the name of a grant
ACCESS_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105  the name of a type
"""The only accepted `subject_token_type`."""
PASSPORT_TYPE = "urn:nscale:params:oauth:token-type:passport"
"""Type of the issued token."""


def reject_query(query: TokenQuery) -> None:
    """Raise OAuthError if a parameter of the form is in the query, where proxies may log it."""
    for name in query.__struct_fields__:
        if getattr(query, name):
            raise OAuthError("invalid_request", f"{name} must be supplied in the form body")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenExchange:
    """Issuer of passports."""

    store: Store
    clock: Clock
    randomness: Randomness
    settings: IdentitySettings
    tokens: Tokens
    bearers: Bearers
    permissions: Permissions

    async def passport(self, form: TokenForm) -> TokenRead:
        _check_form(form)
        assert form.subject_token is not None, "checked by _check_form"
        try:
            bearer = await self.bearers.identify(form.subject_token.reveal())
        except Unauthenticated:
            raise OAuthError("access_denied", NOT_VALID, 401) from None
        resolved = await self.permissions.of_bearer(bearer, with_groups=False)
        is_home = bearer.type == "service" and form.x_organization_id in resolved.organizations
        await self._check_scope(resolved.access, form.x_organization_id, form.x_project_id, is_home=is_home)
        claims = self._claims(bearer, resolved.organizations, form)
        return TokenRead(
            access_token=await self.tokens.sign(claims, PASSPORT),
            token_type=BEARER,
            expires_in=claims.exp - claims.iat,
            issued_token_type=PASSPORT_TYPE,
        )

    def _claims(self, bearer: Bearer, organizations: tuple[str, ...], form: TokenForm) -> PassportClaims:
        now = self.clock.now()
        audience = each_once((*form.resource[:1], *form.audience[:1]))
        return PassportClaims(
            jti=random_id(self.randomness),
            iss=PASSPORT_ISSUER,
            sub=bearer.subject,
            aud=audience,
            iat=int(now.timestamp()),
            nbf=int(now.timestamp()),
            exp=int(min(now + self.settings.passport_lifetime, bearer.expires).timestamp()),
            typ="passport",
            acctype=bearer.type,
            source=bearer.source,
            src_iss=bearer.issuer,
            org_ids=organizations,
            email=bearer.subject if bearer.type == "user" and bearer.has_verified_email else "",
            org_id=form.x_organization_id,
            project_id=form.x_project_id,
            idp=bearer.provider,
        )

    async def _check_scope(self, access: AccessList, organization: str, project: str, *, is_home: bool) -> None:
        """Raise OAuthError for a scope without permissions; a service account's own organization needs none."""
        if not organization:
            return
        inside = access.organizations.get(organization)
        if not access.everywhere and inside is None and not is_home:
            raise _out_of_scope("organization")
        if inside is None and not await exists(self.store, Organization, organization):
            raise _out_of_scope("organization")
        if not project:
            return
        is_allowed = bool(access.everywhere) or (
            inside is not None and (bool(inside.permissions) or project in inside.projects)
        )
        if not is_allowed or await find_in(self.store, Project, project, organization) is None:
            raise _out_of_scope("project")


def _check_form(form: TokenForm) -> None:
    if form.actor_token is not None or form.actor_token_type:
        raise OAuthError("invalid_request", "actor_token is not supported: leave it and actor_token_type out")
    if form.subject_token is None:
        raise OAuthError("invalid_request", "subject_token must be specified")
    if not form.subject_token_type:
        raise OAuthError("invalid_request", f"subject_token_type must be specified: use {ACCESS_TOKEN_TYPE}")
    if form.subject_token_type != ACCESS_TOKEN_TYPE:
        raise OAuthError("invalid_request", f"subject_token_type is not supported: use {ACCESS_TOKEN_TYPE}")
    if form.requested_token_type not in {"", ACCESS_TOKEN_TYPE, PASSPORT_TYPE}:
        raise OAuthError("invalid_request", f"requested_token_type is not supported: use {PASSPORT_TYPE}")
    if form.x_project_id and not form.x_organization_id:
        raise OAuthError("invalid_request", "x_organization_id must be specified with x_project_id")
    if form.resource and not _is_absolute(form.resource[0]):
        raise OAuthError("invalid_request", "resource must be an absolute URI without a fragment")


def _is_absolute(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return False
    return bool(parts.scheme and (parts.netloc or parts.path)) and "#" not in uri


def _out_of_scope(what: str) -> OAuthError:
    return OAuthError("invalid_scope", f"{what} not in scope")
