"""Sending somebody on, once it is clear who they are: to the client with a code, or to a page of ours.

Somebody is let through to a client without being asked only if they have a session with it already: the first time they
say who they are, or, where this browser knows them, press a button. So no page on the web can have a browser make codes
for a client that its user never used.

A client that says whom it expects (`id_token_hint`) gets no code for anybody else.
"""

from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlencode, urlsplit

from remuda.http.responses import HtmlPage, Redirect
from remuda.identity.kinds.oauth import AuthorizationCodeSpec
from remuda.identity.login.authorization import AuthorizationRequest, answer_location, error_location, is_fresh, prompts
from remuda.identity.login.browser_sessions import LoggedIn, Logins
from remuda.identity.login.browser_state import Pending
from remuda.identity.login.pages import Pages
from remuda.identity.oauth.clients import Clients
from remuda.identity.oauth.codes import Codes
from remuda.identity.settings import IdentitySettings
from remuda.kernel.clock import Clock
from remuda.kernel.errors import OAuthError

ACCOUNT = "/oauth2/v2/account"
"""Where somebody goes who logs in for nothing in particular."""

_FORBIDDEN = 403


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing:
    """Sends people on."""

    clock: Clock
    settings: IdentitySettings
    pages: Pages
    logins: Logins
    codes: Codes
    clients: Clients

    async def is_open(self, pending: Pending, known: LoggedIn) -> bool:
        """Tell whether somebody need not be asked anything.

        A program on the machine itself that has no secret is always asked for: any other that listens there could take
        its place, and any page in the browser begin it (RFC 8252, 8.6).
        """
        request = pending.request
        if request is None or "consent" in prompts(request) or not self.is_enough(pending, known):
            return False
        client = await self.clients.find(request.client_id)
        if client is None or (client.spec.is_public and urlsplit(request.redirect_uri).scheme != "https"):
            return False
        return any(each.spec.client == request.client_id for each in await self.logins.sessions_of(known.user.name))

    def is_enough(self, pending: Pending, known: LoggedIn) -> bool:
        """Tell whether it is the login of whom it takes, and recent enough for what it is needed for."""
        request = pending.request
        is_recent = request is None or is_fresh(request, known.login.spec.authenticated, self.clock.now())
        return is_recent and pending.expects(known.user.spec.subject)

    async def onward(self, pending: Pending, known: LoggedIn) -> str:
        """Return where somebody goes who is logged in."""
        here = self.settings.issuer
        if pending.request is None:
            device = f"/oauth2/v2/device?{urlencode({'user_code': pending.device})}"
            return f"{here}{device if pending.device else ACCOUNT}"
        if not pending.expects(known.user.spec.subject):
            return error_location(pending.request, here, unexpected())
        code = await self.codes.issue(_code(pending.request, known))
        return answer_location(pending.request, here, {"code": code.reveal()})

    def refused(self, pending: Pending, refusal: OAuthError) -> HtmlPage | Redirect:
        """Tell the client, or whoever came by themselves, that nobody was let in."""
        if pending.request is None:
            text = refusal.message[:1].upper() + refusal.message[1:]
            return self.pages.message(
                "You are not logged in", f"{text}.", status=_FORBIDDEN, leads=("Try again", ACCOUNT)
            )
        return Redirect(error_location(pending.request, self.settings.issuer, refusal))


def unexpected() -> OAuthError:
    """Return what a client is told that expects somebody else."""
    return OAuthError("login_required", "the user of the id_token_hint is not logged in: let them log in again")


def _code(request: AuthorizationRequest, known: LoggedIn) -> AuthorizationCodeSpec:
    spec = known.login.spec
    return AuthorizationCodeSpec(
        user=known.user.name,
        client=request.client_id,
        redirect_uri=request.redirect_uri,
        scope=request.scope,
        nonce=request.nonce,
        challenge=request.code_challenge,
        challenge_method=_method(request),
        provider=spec.provider,
        authenticated=spec.authenticated,
        login=known.login.name,
    )


def _method(request: AuthorizationRequest) -> Literal["", "plain", "S256"]:
    if not request.code_challenge:
        return ""
    return "S256" if request.code_challenge_method == "S256" else "plain"
