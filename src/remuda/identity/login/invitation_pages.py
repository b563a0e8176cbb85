"""Page on which the user accepts or declines invitations. It is shown after a login, and from the account page."""

from contextlib import suppress
from dataclasses import dataclass

from remuda.http.responses import HtmlPage, Redirect
from remuda.identity.consent import accept
from remuda.identity.kinds.users import OrganizationUser
from remuda.identity.login import schema
from remuda.identity.login.browser_sessions import ActiveLogin
from remuda.identity.login.browser_state import BrowserRequest, InvitationsState, PendingLogin
from remuda.identity.login.invitations import Invitations
from remuda.identity.login.login_pages import BrowserPages, LoginPages
from remuda.identity.login.redirect import LoginRedirects
from remuda.kernel.errors import NotFound
from remuda.resources.crud import find


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationPages(BrowserPages):
    """Page of the invitations."""

    invitations: Invitations
    redirects: LoginRedirects
    login: LoginPages

    async def show(self, request: BrowserRequest) -> HtmlPage | Redirect:
        """Show the invitations of the logged-in user, or the login page."""
        current = await self.logins.find(request.cookie)
        if current is None:
            return await self.login.show_login(request, PendingLogin())
        return self.invitations.page(await self.invitations.of(current), PendingLogin(), browser=request.cookie)

    async def decide(self, request: BrowserRequest, form: schema.InvitationForm) -> HtmlPage | Redirect:
        """Accept or decline an invitation, or continue the login. One that was withdrawn is no error."""
        pending = self.states.open(InvitationsState, form.state, browser=request.cookie).pending
        current = await self.logins.find(request.cookie)
        if current is None:
            return await self.login.show_login(request, pending)
        rows = await self.invitations.of(current)
        for row in rows:
            if row.id == form.accept:
                await accept(self.store, row.id, self.records.accepted(request, current.user, row.organization))
            elif row.id == form.decline:
                await self._decline(request, current, row.id)
        if form.accept or form.decline:
            rows = await self.invitations.of(current)
            if rows:
                return self.invitations.page(rows, pending, browser=request.cookie)
        return Redirect(await self.redirects.location(pending, current))

    async def _decline(self, request: BrowserRequest, current: ActiveLogin, membership: str) -> None:
        """Delete the membership, which a controller then removes from the groups."""
        found = await find(self.store, OrganizationUser, membership)
        if found is not None and found.spec.invited:
            with suppress(NotFound):  # the organization has withdrawn it
                log = self.records.declined(request, current.user)
                await self.store.delete(OrganizationUser, found.name, uid=found.uid, log=log)
