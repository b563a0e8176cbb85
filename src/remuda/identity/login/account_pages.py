"""One's own account: who one is here, and what acts in one's name, each of which can be ended.

Whoever is not logged in is asked to. What can be ended is what the page shows: its buttons count only from the browser
and the login that it was shown to, and only for what is that user's own.

A login at an organization's own provider is that organization's word alone. Its page is about that organization: it
shows and ends the sessions and logins that came of the same word, and nothing else of the user's (`_Reach`).

Setting a password: by a link that an administrator made, or by the present password.

Both are forms that only whoever knows a secret can send, so neither needs to know who is logged in. Passwords belong to
users of the whole system. That is why making a link asks for the right to change users *everywhere*: a user may be in
several organizations, and an administrator of one of them who could set the password would be that user in all others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from remuda.access.checks import allow_everywhere
from remuda.access.principal import Context
from remuda.http.responses import HtmlPage, Redirect
from remuda.identity.kinds.oauth import PASSWORD, BrowserLogin, OAuth2Provider
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import OrganizationUser, User, user_id
from remuda.identity.login.audit import Records
from remuda.identity.login.browser_sessions import LoggedIn, Logins
from remuda.identity.login.browser_state import BrowserRequest, BrowserRequestReader, Leaving, Overview, Pending, States
from remuda.identity.login.login_pages import WRONG, Attempts, LoginPages
from remuda.identity.login.pages import AccountView, BrowserRow, MembershipRow, Pages, SessionRow, provider_name
from remuda.identity.login.passwords import Passwords
from remuda.identity.login.redirect import ACCOUNT
from remuda.identity.login.schema import AccountForm, PasswordForm, PasswordLinkRead
from remuda.identity.lookups import audited_organizations
from remuda.identity.names import permission
from remuda.identity.oauth.clients import Clients
from remuda.identity.rbac.acl import Bindings
from remuda.identity.rbac.roles import PLATFORM_ADMINISTRATOR, role_id
from remuda.identity.settings import IdentitySettings
from remuda.identity.tokens.sessions import Sessions, provider_organization
from remuda.kernel.errors import Invalid
from remuda.kernel.secrets import Secret
from remuda.resources.conventions import NAME, ORGANIZATION, organization_of
from remuda.resources.conventions import USER as USER_LABEL
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.logs import Record


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
    requests: BrowserRequestReader
    states: States
    pages: Pages
    logins: Logins
    sessions: Sessions
    clients: Clients
    passwords: Passwords
    records: Records
    entry: LoginPages

    async def show(self, visit: BrowserRequest) -> HtmlPage | Redirect:
        """Show who is logged in, or ask."""
        known = await self.logins.find(visit.cookie)
        if known is None:
            return await self.entry.ask(visit, Pending())
        return self.pages.account(
            await self._view(known),
            state=self.states.seal(Overview(), browser=visit.cookie),
            leaving=self.states.seal(Leaving(), browser=visit.cookie),
        )

    async def change(self, visit: BrowserRequest, form: AccountForm) -> HtmlPage | Redirect:
        """End a session, or a login in another browser. What is gone by now is ended already."""
        self.states.open(Overview, form.state, browser=visit.cookie)
        known = await self.logins.find(visit.cookie)
        if known is None:
            return await self.entry.ask(visit, Pending())
        await self._end(visit, known, form)
        return Redirect(f"{self.settings.issuer}{ACCOUNT}")

    async def _end(self, visit: BrowserRequest, known: LoggedIn, form: AccountForm) -> None:
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
        organization = await provider_organization(self.store, login.spec.provider)
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


UPDATE_USERS = permission("users", "update")
"""The right that making a link needs, everywhere."""

_DONE = ("Your password is set", "You were logged out everywhere: log in with it from now on.")
_UNAUTHORIZED, _BAD = 401, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordPages:
    """Sets passwords."""

    store: Store
    settings: IdentitySettings
    requests: BrowserRequestReader
    pages: Pages
    logins: Logins
    passwords: Passwords
    attempts: Attempts
    records: Records

    async def make_link(self, context: Context, subject: str) -> PasswordLinkRead:
        """Return a link by which a user can choose a password, in the place of any earlier one."""
        allow_everywhere(context.principal, UPDATE_USERS)
        user = await self.store.get(User, user_id(subject))
        made = await self.passwords.make_link(user.name, log=await self._link_records(context, user))
        link = Secret(f"{self.settings.issuer}/oauth2/v2/password?link={made.secret.reveal()}")
        return PasswordLinkRead(link=link, expiry=made.expires)

    async def show(self, visit: BrowserRequest, link: str) -> HtmlPage:
        """Ask for a new password."""
        if not link:
            known = await self.logins.find(visit.cookie)
            return self.pages.password(email="" if known is None else known.user.spec.subject)
        return self.pages.password(link=link, email=(await self.passwords.user_of_link(link)).spec.subject)

    async def choose(self, visit: BrowserRequest, form: PasswordForm) -> HtmlPage:
        """Take a new password."""
        chosen = form.chosen or Secret("")
        if form.link:
            user = await self.passwords.user_of_link(form.link)
            if problem := _difference(form):
                return self._again(form, user.spec.subject, problem)
            log = await self.records.succeeded(visit, user)
            try:
                await self.passwords.set_by_link(form.link, chosen, log=log)
            except Invalid as invalid:
                return self._again(form, user.spec.subject, invalid.message)
            return self.pages.message(*_DONE, leads=("Log in", ACCOUNT))
        return await self._change(visit, form, chosen)

    async def _link_records(self, context: Context, user: User) -> Sequence[Record]:
        """Tell the organizations that the user is a member of, and the system, which comes last: failures are its."""
        told = [*await audited_organizations(self.store, user), None]
        witnessed = (context.audit(PASSWORD.plural, user.name, organization=each) for each in told)
        return [record for records in witnessed for record in records]

    async def _change(self, visit: BrowserRequest, form: PasswordForm, chosen: Secret) -> HtmlPage:
        account = user_id(form.email)
        self.attempts.password(account, peer=visit.peer, browser=visit.familiar.number_for(account))
        is_right = await self.passwords.verify(account, form.password or Secret(""))
        user = await find(self.store, User, account)
        if user is None or not user.is_active or not is_right:
            await self.records.failed(visit, user)
            return self.pages.password(email=form.email, problem=WRONG, status=_UNAUTHORIZED)
        if problem := _difference(form):
            return self._again(form, form.email, problem)
        try:
            log = await self.records.succeeded(visit, user)
            await self.passwords.set_password(user.name, chosen, log=log)
        except Invalid as invalid:
            return self._again(form, form.email, invalid.message)
        return self.pages.message(*_DONE, leads=("Log in", ACCOUNT))

    def _again(self, form: PasswordForm, email: str, problem: str) -> HtmlPage:
        return self.pages.password(link=form.link, email=email, problem=problem, status=_BAD)


def _difference(form: PasswordForm) -> str:
    return "" if form.chosen == form.again else "The two new passwords are not the same: type them again."
