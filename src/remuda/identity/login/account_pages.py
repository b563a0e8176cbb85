"""Account page and password pages.

The account page shows a user's sessions and browser logins, and ends them. A form of it is valid only in the browser
and the login that it was rendered for. A login through an organization's own provider is limited to that organization:
the page shows and ends only what belongs to the same organization (`_AccountScope`).

A password is set with a link that a platform administrator created, or with the current password. A link can be made
for an organization: the first password that is set with it accepts the invitation of that organization. Passwords
belong to users of the whole system, and a user may be a member of several organizations. That is why creating a link
needs the permission to update users *everywhere*.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from remuda.access.checks import require_everywhere
from remuda.access.principal import Context
from remuda.http.responses import HtmlPage, Redirect
from remuda.identity.consent import accept, agreed_memberships
from remuda.identity.factors.service import Authenticators
from remuda.identity.kinds.oauth import PASSWORD, BrowserLogin, OAuth2Provider
from remuda.identity.kinds.tenancy import Organization
from remuda.identity.kinds.tokens import Session
from remuda.identity.kinds.users import OrganizationUser, User, membership_id, user_id
from remuda.identity.login import schema
from remuda.identity.login.browser_sessions import ActiveLogin
from remuda.identity.login.browser_state import (
    AccountPageState,
    BrowserRequest,
    KnownBrowserCookie,
    LogoutConfirmation,
    PendingLogin,
)
from remuda.identity.login.failed_logins import FailureReport
from remuda.identity.login.invitations import Invitations
from remuda.identity.login.login_pages import LOGIN_FAILED, BrowserPages, LoginPages
from remuda.identity.login.login_steps import chosen_password
from remuda.identity.login.pages import AccountView, BrowserRow, MembershipRow, SessionRow, newest_first, provider_name
from remuda.identity.login.passwords import link_url
from remuda.identity.login.redirect import ACCOUNT
from remuda.identity.lookups import audited_organizations
from remuda.identity.names import permission
from remuda.identity.rbac.acl import Bindings
from remuda.identity.rbac.roles import PLATFORM_ADMINISTRATOR, role_id
from remuda.identity.tokens.sessions import Sessions, provider_organization
from remuda.kernel.errors import Invalid
from remuda.kernel.secrets import Secret
from remuda.resources.conventions import NAME, ORGANIZATION, organization_of
from remuda.resources.crud import exists, find
from remuda.store.logs import Record


@dataclass(frozen=True, slots=True)
class _AccountScope:
    """Sessions and logins that one login may show and end."""

    organization: str
    """The organization whose own provider the user logged in with, or empty."""
    sessions: Sequence[Session]
    logins: Sequence[BrowserLogin]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountPage(BrowserPages):
    """Account page of the logged-in user."""

    bindings: Bindings
    sessions: Sessions
    authenticators: Authenticators
    invitations: Invitations
    login: LoginPages

    async def show(self, request: BrowserRequest) -> HtmlPage | Redirect:
        """Show the account of the logged-in user, or the login page."""
        current = await self.logins.find(request.cookie)
        if current is None:
            return await self.login.show_login(request, PendingLogin())
        return self.pages.account(
            await self._view(current),
            state=self.states.seal(AccountPageState(), browser=request.cookie),
            logout_state=self.states.seal(LogoutConfirmation(), browser=request.cookie),
        )

    async def change(self, request: BrowserRequest, form: schema.AccountForm) -> HtmlPage | Redirect:
        """End a session, a login in another browser, or all. One that no longer exists counts as ended."""
        self.states.open(AccountPageState, form.state, browser=request.cookie)
        current = await self.logins.find(request.cookie)
        if current is None:
            return await self.login.show_login(request, PendingLogin())
        await self._end_selected(request, current, form)
        return Redirect(f"{self.settings.issuer}{ACCOUNT}")

    async def _end_selected(self, request: BrowserRequest, current: ActiveLogin, form: schema.AccountForm) -> None:
        user, scope = current.user, await self._scope(current)
        for login in scope.logins:
            if form.everywhere or login.name == form.login:
                await self.logins.end(login, log=await self.records.succeeded(request, user))
        for session in scope.sessions:
            if form.everywhere or session.name == form.session:
                await self.sessions.end(session, log=await self.records.succeeded(request, user))

    async def _scope(self, current: ActiveLogin) -> _AccountScope:
        user, login = current.user, current.login
        sessions, logins = await self.logins.sessions_of(user.name), await self.logins.logins_of(user)
        organization = await provider_organization(self.store, login.spec.provider)
        if not organization:
            return _AccountScope("", sessions, logins)
        own = (await self.store.list_names(OAuth2Provider, labels={ORGANIZATION: organization})).items
        # Ending a login ends all its sessions, and some may not belong to this organization.
        others = {each.spec.login for each in sessions if each.spec.organization != organization}
        return _AccountScope(
            organization,
            [each for each in sessions if each.spec.organization == organization],
            [each for each in logins if each.spec.provider in own and each.name not in others],
        )

    async def _view(self, current: ActiveLogin) -> AccountView:
        user, login = current.user, current.login
        scope = await self._scope(current)
        others = [each for each in scope.logins if each.name != login.name]
        roles = self.bindings.of_user(user.spec.subject, "", ()).by_name
        return AccountView(
            email=user.spec.subject,
            here=await self._browser(login),
            memberships=await self._memberships(user, scope.organization),
            invitations=len(await self.invitations.of(current)),
            is_administrator=not scope.organization and role_id(PLATFORM_ADMINISTRATOR) in roles,
            sessions=sorted([await self._session(each, login) for each in scope.sessions], key=newest_first),
            elsewhere=sorted([await self._browser(each) for each in others], key=newest_first),
            has_password=not scope.organization and await self.passwords.has_password(user.name),
            failures=await self._failures(current, scope),
            second_factor="" if scope.organization else await self._second_factor(user),
        )

    async def _failures(self, current: ActiveLogin, scope: _AccountScope) -> FailureReport | None:
        if scope.organization:
            return None
        return await self.failures.report(current.user.name, before=current.login.spec.authenticated)

    async def _memberships(self, user: User, only: str) -> Sequence[MembershipRow]:
        rows = []
        for each in await agreed_memberships(self.store, user.name):
            organization = await find(self.store, Organization, organization_of(each))
            if organization is not None and only in {"", organization.name}:
                rows.append(MembershipRow(organization.metadata.labels.get(NAME, organization.name), each.spec.state))
        return sorted(rows, key=lambda row: row.name)

    async def _session(self, session: Session, login: BrowserLogin) -> SessionRow:
        spec = session.spec
        return SessionRow(
            id=session.name,
            client=await self.clients.display_name(spec.client),
            began=session.metadata.creation_timestamp or spec.authenticated,
            used=spec.refreshed,
            is_from_here=spec.login == login.name,
        )

    async def _browser(self, login: BrowserLogin) -> BrowserRow:
        return BrowserRow(id=login.name, began=login.spec.authenticated, provider=await self._provider(login))

    async def _second_factor(self, user: User) -> str:
        factors = await self.authenticators.of_user(user.name)
        count = len(factors.apps) + len(factors.passkeys)
        if not count:
            return "None: a password alone is enough to log in"
        return f"{_counted(count, 'authenticator')}, {_counted(len(factors.recovery_hashes), 'recovery code')} left"

    async def _provider(self, login: BrowserLogin) -> str:
        if not login.spec.provider:
            return ""
        provider = await find(self.store, OAuth2Provider, login.spec.provider)
        return "a deleted provider" if provider is None else provider_name(provider)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


UPDATE_USERS = permission("users", "update")
"""Permission that creating a password link needs, everywhere."""

_FACTOR_FIRST = (
    "You have a second factor: log in with it first, and then change your password. If you cannot, ask an "
    "administrator for a link."
)
_DONE = ("Your password is set", "You are logged out everywhere. Log in with the new password.")
_UNAUTHORIZED, _BAD_REQUEST = 401, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordPages(BrowserPages):
    """Pages that set passwords. The browser of a user who has set one is known."""

    known_browser_cookie: KnownBrowserCookie
    authenticators: Authenticators

    async def create_link(self, context: Context, body: schema.PasswordLinkWrite) -> schema.PasswordLinkRead:
        """Return a link that lets a user set a password once. It replaces any earlier link."""
        require_everywhere(context.principal, UPDATE_USERS)
        user = await self.store.get(User, user_id(body.subject))
        log = await self._link_records(context, user)
        created = await self.passwords.create_link(user.name, organization=await self._inviting(body, user), log=log)
        link = link_url(self.settings.issuer, created.secret)
        return schema.PasswordLinkRead(link=link, expiry=created.expires)

    async def _inviting(self, body: schema.PasswordLinkWrite, user: User) -> str:
        """Return the organization of the link, if it has one, or raise Invalid if the user is not entered there."""
        organization = body.organization or ""
        member = membership_id(organization, user.name)
        if organization and not await exists(self.store, OrganizationUser, member, include_deleting=False):
            remedy = "add the user to the organization first, or leave it out"
            raise Invalid("organizationID", "is not an organization of this user", remedy=remedy)
        return organization

    async def show(self, request: BrowserRequest, query: schema.PasswordQuery) -> HtmlPage:
        if not query.link:
            current = await self.logins.find(request.cookie)
            return self.pages.password(email="" if current is None else current.user.spec.subject)
        user = await self.passwords.user_of_link(query.link)
        return self.pages.password(link=query.link, email=user.spec.subject)

    async def choose(self, request: BrowserRequest, form: schema.PasswordForm) -> HtmlPage:
        """Set a new password from the form, which has a link or the current password."""
        if form.link:
            user = await self.passwords.user_of_link(form.link)
            email = user.spec.subject
        else:
            verified = await self.verified_user(request, form.email, form.password or Secret(""))
            if verified is None:
                return self.pages.password(email=form.email, problem=LOGIN_FAILED, status=_UNAUTHORIZED)
            user, email = verified, form.email
        is_proven = await self._has_proven_factor(request, user)
        if not form.link and not is_proven:
            return self.pages.password(email=email, problem=_FACTOR_FIRST, status=_UNAUTHORIZED)
        try:
            await self._set_password(request, form, user)
        except Invalid as invalid:
            return self.pages.password(link=form.link, email=email, problem=invalid.message, status=_BAD_REQUEST)
        cookies = (self.known_browser_cookie.write(request.known_browser, user.name),) if is_proven else ()
        return self.pages.message(*_DONE, leads=("Log in", ACCOUNT), cookies=cookies)

    async def _has_proven_factor(self, request: BrowserRequest, user: User) -> bool:
        """Tell whether the browser is logged in with a second factor, or the user has none."""
        if not (await self.authenticators.of_user(user.name)).has_authenticator:
            return True
        current = await self.logins.find(request.cookie)
        return current is not None and current.user.name == user.name and current.login.spec.proof == "factor"

    async def _set_password(self, request: BrowserRequest, form: schema.PasswordForm, user: User) -> None:
        new_password = chosen_password(form)
        log = [*await self.records.succeeded(request, user), self.failures.success(request, user.name)]
        if form.link:
            organization = await self.passwords.inviting_organization(form.link)
            await self.passwords.set_by_link(form.link, new_password, log=log)
            if organization:
                records = self.records.accepted(request, user, organization)
                await accept(self.store, membership_id(organization, user.name), records)
        else:
            await self.passwords.set_password(user.name, new_password, log=log)

    async def _link_records(self, context: Context, user: User) -> Sequence[Record]:
        """Return audit records for the user's organizations and, last, for the system, which also receives failures."""
        organizations = [*await audited_organizations(self.store, user), None]
        audited = (context.audit(PASSWORD.plural, user.name, organization=each) for each in organizations)
        return [record for records in audited for record in records]
