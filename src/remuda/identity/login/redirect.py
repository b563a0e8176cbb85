"""Completion of a login: redirect to the client with an authorization code, or to a page of ours.

A client gets a code without user interaction only if the user already has a session with it. So no site can make a
browser request codes for a client that its user never used. A client that sent an `id_token_hint` gets no code for
another user.

A login at an organization's own provider is for our own clients, and for those that a platform administrator has listed
the organization for: no other client has agreed to believe that provider.
"""

from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from remuda.http.responses import HtmlPage, Redirect
from remuda.identity.kinds.oauth import AuthorizationCodeSpec
from remuda.identity.login.authorization import (
    AuthorizationRequest,
    error_location,
    is_fresh,
    prompts,
    response_location,
)
from remuda.identity.login.browser_sessions import ActiveLogin, BrowserLogins
from remuda.identity.login.browser_state import PendingLogin
from remuda.identity.login.factor_requirement import FactorRequirement
from remuda.identity.login.pages import Pages
from remuda.identity.oauth.clients import Clients, accepts_logins_of, rejected_login
from remuda.identity.oauth.codes import AuthorizationCodes
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.sessions import provider_organization
from remuda.kernel.clock import Clock
from remuda.kernel.errors import OAuthError
from remuda.store.contract import Store

ACCOUNT = "/oauth2/v2/account"
"""Path of the account page."""
FACTORS = "/oauth2/v2/factors"
"""Path of the page of second factors."""

_FORBIDDEN = 403


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginRedirects:
    """Redirects at the end of a login."""

    store: Store
    clock: Clock
    settings: IdentitySettings
    pages: Pages
    logins: BrowserLogins
    codes: AuthorizationCodes
    clients: Clients
    requirement: FactorRequirement

    async def can_skip_login_page(self, pending: PendingLogin, current: ActiveLogin) -> bool:
        """Tell whether a code can be issued without user interaction.

        A public client on the user's machine always needs it: other programs on that machine could impersonate it (RFC
        8252, section 8.6).
        """
        request = pending.authorization
        if request is None or "consent" in prompts(request) or not await self.can_continue(pending, current):
            return False
        client = await self.clients.find(request.client_id)
        if client is None or (client.spec.is_public and urlsplit(request.redirect_uri).scheme != "https"):
            return False
        return any(each.spec.client == request.client_id for each in await self.logins.sessions_of(current.user.name))

    async def is_sufficient(self, pending: PendingLogin, current: ActiveLogin) -> bool:
        """Tell whether the login is of the expected user, and recent and strong enough for the request."""
        request = pending.authorization
        is_recent = request is None or is_fresh(request, current.login.spec.authenticated, self.clock.now())
        if pending.is_elevation or not is_recent or not pending.expects(current.user.spec.subject):
            return False
        return not await self.requirement.is_unmet(current)

    async def can_continue(self, pending: PendingLogin, current: ActiveLogin) -> bool:
        """Tell whether the login is sufficient, and of a sort that the client accepts."""
        provider = current.login.spec.provider
        return await self.is_sufficient(pending, current) and await self.accepts_provider(pending, provider)

    async def accepts_provider(self, pending: PendingLogin, provider: str) -> bool:
        """Tell whether the client accepts logins at this provider. Our own pages accept all."""
        organization = await provider_organization(self.store, provider)
        if not organization or pending.authorization is None:
            return True
        client = await self.clients.find(pending.authorization.client_id)
        return client is not None and accepts_logins_of(client, organization)

    async def location(self, pending: PendingLogin, current: ActiveLogin) -> str:
        """Return the location to which the logged-in user is redirected."""
        issuer = self.settings.issuer
        if pending.authorization is None:
            if pending.user_code:
                return f"{issuer}/oauth2/v2/device?{urlencode({'user_code': pending.user_code})}"
            return f"{issuer}{FACTORS}" if pending.is_elevation else self.settings.home or f"{issuer}{ACCOUNT}"
        if not pending.expects(current.user.spec.subject):
            return error_location(pending.authorization, issuer, user_mismatch())
        if not await self.accepts_provider(pending, current.login.spec.provider):
            return error_location(pending.authorization, issuer, rejected_login())
        code = await self.codes.issue(_code(pending.authorization, current))
        return response_location(pending.authorization, issuer, {"code": code.reveal()})

    def error_response(self, pending: PendingLogin, error: OAuthError) -> HtmlPage | Redirect:
        """Redirect to the client with an error, or show it if no client is involved."""
        if pending.authorization is None:
            text = error.message[:1].upper() + error.message[1:]
            return self.pages.message(
                "You are not logged in", f"{text}.", status=_FORBIDDEN, leads=("Try again", ACCOUNT)
            )
        return Redirect(error_location(pending.authorization, self.settings.issuer, error))


def user_mismatch() -> OAuthError:
    """Return the error for a login of another user than the client expects."""
    return OAuthError(
        "login_required", "another user than that of the id_token_hint is logged in: let the expected user log in"
    )


def _code(request: AuthorizationRequest, current: ActiveLogin) -> AuthorizationCodeSpec:
    spec = current.login.spec
    return AuthorizationCodeSpec(
        user=current.user.name,
        client=request.client_id,
        redirect_uri=request.redirect_uri,
        scope=request.scope,
        nonce=request.nonce,
        challenge=request.code_challenge,
        provider=spec.provider,
        authenticated=spec.authenticated,
        login=current.login.name,
        methods=spec.methods,
    )
