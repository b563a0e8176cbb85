"""One's own account: who one is here, and what acts in one's name, each of which can be ended.

Whoever is not logged in is asked to. What can be ended is what the page shows: its buttons count only from the browser
and the login that it was shown to, and only for what is that user's own.

A login at an organization's own provider is that organization's word alone. Its page is about that organization: it
shows and ends the sessions and logins that came of the same word, and nothing else of the user's (`_Reach`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from remuda.http.responses import Page, Redirect
from remuda.identity.kinds.browsers import BrowserLogin
from remuda.identity.kinds.oauth import OAuth2Provider
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import OrganizationUser, User
from remuda.identity.login.account_view import AccountView, BrowserRow, MembershipRow, SessionRow
from remuda.identity.login.audit import Records
from remuda.identity.login.browser_sessions import LoggedIn, Logins
from remuda.identity.login.login_pages import Entry
from remuda.identity.login.pages import Pages, provider_name
from remuda.identity.login.passwords import Passwords
from remuda.identity.login.redirect import ACCOUNT
from remuda.identity.login.schema import AccountForm
from remuda.identity.login.states import States
from remuda.identity.login.visits import Leaving, Overview, Pending, Visit
from remuda.identity.oauth.clients import Clients
from remuda.identity.rbac.bindings import Bindings
from remuda.identity.rbac.roles import PLATFORM_ADMINISTRATOR, role_id
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.footing import organization_vouching
from remuda.identity.tokens.sessions import Sessions
from remuda.resources.conventions import NAME, ORGANIZATION, organization_of
from remuda.resources.conventions import USER as USER_LABEL
from remuda.resources.crud import find
from remuda.store.contract import Store


@dataclass(frozen=True, slots=True)
class _Reach:
    organization: str
    """The one that vouches for the login, if one does."""
    sessions: Sequence[Session]
    logins: Sequence[BrowserLogin]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountPage:
    """Shows accounts."""

    store: Store
    settings: IdentitySettings
    bindings: Bindings
    states: States
    pages: Pages
    logins: Logins
    sessions: Sessions
    clients: Clients
    passwords: Passwords
    records: Records
    entry: Entry

    async def show(self, visit: Visit) -> Page | Redirect:
        """Show who is logged in, or ask."""
        known = await self.logins.find(visit.cookie)
        if known is None:
            return await self.entry.ask(visit, Pending())
        return self.pages.account(
            await self._view(known),
            state=self.states.seal(Overview(), browser=visit.cookie),
            leaving=self.states.seal(Leaving(), browser=visit.cookie),
        )

    async def change(self, visit: Visit, form: AccountForm) -> Page | Redirect:
        """End a session, or a login in another browser. What is gone by now is ended already."""
        self.states.open(Overview, form.state, browser=visit.cookie)
        known = await self.logins.find(visit.cookie)
        if known is None:
            return await self.entry.ask(visit, Pending())
        await self._end(visit, known, form)
        return Redirect(f"{self.settings.issuer}{ACCOUNT}")

    async def _end(self, visit: Visit, known: LoggedIn, form: AccountForm) -> None:
        user, reach = known.user, await self._reach(known)
        for session in reach.sessions:
            if session.name == form.session:
                await self.sessions.end(session, log=await self.records.succeeded(visit, user))
        for login in reach.logins:
            if login.name == form.login:
                await self.logins.end(login, log=await self.records.succeeded(visit, user))

    async def _reach(self, known: LoggedIn) -> _Reach:
        """Return what a login can show and end."""
        user, login = known.user, known.login
        sessions, logins = await self.logins.sessions_of(user.name), await self.logins.logins_of(user)
        organization = await organization_vouching(self.store, login.spec.provider)
        if not organization:
            return _Reach("", sessions, logins)
        own = (await self.store.list_names(OAuth2Provider, labels={ORGANIZATION: organization})).items
        # Ending a login ends all its sessions, and some may be older than this organization's word for it.
        others = {each.spec.login for each in sessions if each.spec.organization != organization}
        return _Reach(
            organization,
            [each for each in sessions if each.spec.organization == organization],
            [each for each in logins if each.spec.provider in own and each.name not in others],
        )

    async def _view(self, known: LoggedIn) -> AccountView:
        user, login = known.user, known.login
        reach = await self._reach(known)
        others = [each for each in reach.logins if each.name != login.name]
        return AccountView(
            email=user.spec.subject,
            here=await self._browser(login),
            memberships=await self._memberships(user, reach.organization),
            is_administrator=not reach.organization and role_id(PLATFORM_ADMINISTRATOR) in self._roles(user),
            sessions=sorted([await self._session(each, login) for each in reach.sessions], key=SessionRow.order),
            elsewhere=sorted([await self._browser(each) for each in others], key=BrowserRow.order),
            has_password=not reach.organization and await self.passwords.has_password(user.name),
        )

    def _roles(self, user: User) -> frozenset[str]:
        return self.bindings.of_user(user.spec.subject, "", ()).by_name

    async def _memberships(self, user: User, only: str) -> Sequence[MembershipRow]:
        rows = []
        labels = {USER_LABEL: user.name} | ({ORGANIZATION: only} if only else {})
        for each in (await self.store.list(OrganizationUser, labels=labels)).items:
            organization = await find(self.store, Organization, organization_of(each))
            if organization is not None:
                rows.append(MembershipRow(organization.metadata.labels.get(NAME, organization.name), each.spec.state))
        return sorted(rows, key=lambda row: row.name)

    async def _session(self, session: Session, login: BrowserLogin) -> SessionRow:
        spec = session.spec
        return SessionRow(
            id=session.name,
            client=await self.clients.called(spec.client),
            began=session.metadata.creation_timestamp or spec.authenticated,
            used=spec.refreshed,
            is_from_here=spec.login == login.name,
        )

    async def _browser(self, login: BrowserLogin) -> BrowserRow:
        return BrowserRow(id=login.name, began=login.spec.authenticated, provider=await self._provider(login))

    async def _provider(self, login: BrowserLogin) -> str:
        if not login.spec.provider:
            return ""
        provider = await find(self.store, OAuth2Provider, login.spec.provider)
        return "a provider that is gone by now" if provider is None else provider_name(provider)
