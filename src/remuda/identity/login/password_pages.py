"""Setting a password: by a link that an administrator made, or by the present password.

Both are forms that only whoever knows a secret can send, so neither needs to know who is logged in. Passwords belong to
users of the whole system. That is why making a link asks for the right to change users *everywhere*: a user may be in
several organizations, and an administrator of one of them who could set the password would be that user in all others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from remuda.access.checks import allow_everywhere
from remuda.access.principal import Context
from remuda.http.responses import Page
from remuda.identity.kinds.oauth import PASSWORD
from remuda.identity.kinds.users import User, user_id
from remuda.identity.login.attempts import Attempts
from remuda.identity.login.audit import Records
from remuda.identity.login.browser_sessions import Logins
from remuda.identity.login.login_pages import WRONG
from remuda.identity.login.pages import Pages
from remuda.identity.login.passwords import Passwords
from remuda.identity.login.redirect import ACCOUNT
from remuda.identity.login.schema import PasswordForm, PasswordLinkRead
from remuda.identity.login.visits import Visit
from remuda.identity.lookups import organizations_to_tell
from remuda.identity.permissions import permission
from remuda.identity.settings import IdentitySettings
from remuda.kernel.errors import Invalid
from remuda.kernel.secrets import Secret
from remuda.resources.crud import find
from remuda.store.contract import Store
from remuda.store.logs import Record

UPDATE_USERS = permission("users", "update")
"""The right that making a link needs, everywhere."""

_DONE = ("Your password is set", "You were logged out everywhere: log in with it from now on.")
_UNAUTHORIZED, _BAD = 401, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordPages:
    """Sets passwords."""

    store: Store
    settings: IdentitySettings
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

    async def show(self, visit: Visit, link: str) -> Page:
        """Ask for a new password."""
        if not link:
            known = await self.logins.find(visit.cookie)
            return self.pages.password(email="" if known is None else known.user.spec.subject)
        return self.pages.password(link=link, email=(await self.passwords.user_of_link(link)).spec.subject)

    async def choose(self, visit: Visit, form: PasswordForm) -> Page:
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
                return self._again(form, user.spec.subject, invalid.sentence)
            return self.pages.message(*_DONE, leads=("Log in", ACCOUNT))
        return await self._change(visit, form, chosen)

    async def _link_records(self, context: Context, user: User) -> Sequence[Record]:
        """Tell the organizations that the user is a member of, and the system, which comes last: failures are its."""
        told = [*await organizations_to_tell(self.store, user), None]
        witnessed = (context.witness(PASSWORD.plural, user.name, organization=each) for each in told)
        return [record for records in witnessed for record in records]

    async def _change(self, visit: Visit, form: PasswordForm, chosen: Secret) -> Page:
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
            return self._again(form, form.email, invalid.sentence)
        return self.pages.message(*_DONE, leads=("Log in", ACCOUNT))

    def _again(self, form: PasswordForm, email: str, problem: str) -> Page:
        return self.pages.password(link=form.link, email=email, problem=problem, status=_BAD)


def _difference(form: PasswordForm) -> str:
    return "" if form.chosen == form.again else "The two new passwords are not the same: type them again."
