"""Logging out (OpenID Connect RP-Initiated Logout).

A client that shows an ID token of the very user who is logged in here is believed that the user wants to leave.
Everybody else who sends a browser here has its user asked: no page on the web logs somebody out by a link. After that
the browser goes to the client's home page, if the client has one and asks for exactly that.
"""

from dataclasses import dataclass

from remuda.http.pages import with_query
from remuda.http.responses import Page, Redirect
from remuda.identity.kinds.oauth import OAuth2Client
from remuda.identity.login.audit import Records
from remuda.identity.login.browser_sessions import LoggedIn, Logins
from remuda.identity.login.cookies import BrowserCookie
from remuda.identity.login.hints import hinted
from remuda.identity.login.pages import Pages
from remuda.identity.login.redirect import ACCOUNT
from remuda.identity.login.schema import LogoutRequest
from remuda.identity.login.states import States
from remuda.identity.login.visits import Leaving, Visit, query_of
from remuda.identity.oauth.clients import Clients
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.jwt import IdClaims
from remuda.identity.tokens.service import Tokens
from remuda.kernel.errors import Malformed


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """Lets people out."""

    settings: IdentitySettings
    cookie: BrowserCookie
    states: States
    pages: Pages
    logins: Logins
    clients: Clients
    tokens: Tokens
    records: Records

    async def leave(self, visit: Visit, request: LogoutRequest, *, is_form: bool) -> Page | Redirect:
        """Log somebody out, or ask first."""
        if request.confirmation:
            return await self._confirmed(visit, request.confirmation)
        if is_form and not visit.cookie:
            # A form from another site comes without our cookie. Coming back by itself, the browser brings it.
            return Redirect(f"{self.settings.issuer}/oauth2/v2/logout?{query_of(request)}")
        hint = await hinted(self.tokens, request.id_token_hint)
        location = _location(request, await self._client(request, hint))
        known = await self.logins.find(visit.cookie)
        if known is not None and not (hint is not None and hint.sub == known.user.spec.subject):
            state = self.states.seal(Leaving(location), browser=visit.cookie)
            return self.pages.logout(state=state, known=known.user.spec.subject)
        return await self._leave(visit, known, location)

    async def _confirmed(self, visit: Visit, confirmation: str) -> Page | Redirect:
        asked = self.states.open(Leaving, confirmation, browser=visit.cookie)
        known = await self.logins.find(visit.cookie)
        return await self._leave(visit, known, asked.location)

    async def _leave(self, visit: Visit, known: LoggedIn | None, location: str) -> Page | Redirect:
        if known is not None:
            await self.logins.end(known.login, log=await self.records.succeeded(visit, known.user))
        else:
            await self.logins.see_through(visit.cookie)
        cookies = (self.cookie.clear(),) if visit.cookie else ()
        if location:
            return Redirect(location, cookies=cookies)
        return self.pages.message(
            "You are logged out", "You can close this page.", cookies=cookies, leads=("Log in again", ACCOUNT)
        )

    async def _client(self, request: LogoutRequest, hint: IdClaims | None) -> OAuth2Client | None:
        name = request.client_id or (hint.azp if hint is not None else "")
        if hint is not None and name not in hint.aud:
            raise Malformed("client_id and id_token_hint are of two applications: tell whoever runs them.")
        return await self.clients.find(name) if name else None


def _location(request: LogoutRequest, client: OAuth2Client | None) -> str:
    """Return where to go after, if that is the client's home page. An address of anybody's choice it must not be."""
    wanted = request.post_logout_redirect_uri
    if not wanted:
        return ""
    if client is None or not client.spec.home_uri or wanted != client.spec.home_uri:
        raise Malformed(
            "The application wants you sent to an address that is not registered as its home page, so you stay here: "
            "tell whoever runs it that post_logout_redirect_uri has to be that address, letter by letter."
        )
    if not request.state:
        return wanted
    return with_query(wanted, {"state": request.state})
