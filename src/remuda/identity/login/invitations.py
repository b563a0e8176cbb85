"""Invitations: memberships that the logged-in user can accept or decline, on a page after the login.

A login at an organization's own provider decides about none: its administrators control who that provider says the user
is. The decision is valid only in the browser and the login that the page was rendered for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from remuda.http.responses import HtmlPage
from remuda.identity.consent import invitations
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.login.browser_sessions import ActiveLogin
from remuda.identity.login.browser_state import InvitationsState, PendingLogin, States
from remuda.identity.login.pages import InvitationRow, Pages
from remuda.identity.tokens.sessions import provider_organization
from remuda.resources.conventions import NAME, organization_of
from remuda.resources.crud import find
from remuda.store.contract import Store

MAX_SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitations:
    """Invitations of the logged-in user, and the page that shows them."""

    store: Store
    states: States
    pages: Pages

    async def of(self, current: ActiveLogin) -> Sequence[InvitationRow]:
        """Return the invitations that a login may decide about, by the name of the organization."""
        if await provider_organization(self.store, current.login.spec.provider):
            return ()
        rows = []
        for each in await invitations(self.store, current.user):
            organization = await find(self.store, Organization, organization_of(each), include_deleting=False)
            if organization is not None:
                name = organization.metadata.labels.get(NAME, organization.name)
                rows.append(InvitationRow(id=each.name, organization=organization.name, name=name))
        return sorted(rows, key=lambda row: (row.name, row.organization))[:MAX_SHOWN]

    def page(
        self, rows: Sequence[InvitationRow], pending: PendingLogin, *, browser: str, cookies: tuple[str, ...] = ()
    ) -> HtmlPage:
        """Return the page, after which the login continues."""
        state = self.states.seal(InvitationsState(pending), browser=browser)
        return self.pages.invitations(rows, state=state, cookies=cookies)
