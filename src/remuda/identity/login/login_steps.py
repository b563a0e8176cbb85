"""Pages between a correct password and the end of a login.

A temporary password, such as that of the bootstrap, only lets its user choose another one: the login goes on with the
new password. After failed logins from other addresses a page reports them, and the login goes on from there. The state
of both is sealed to the browser; neither page is left by other means than its form.
"""

from dataclasses import dataclass

from remuda.http.responses import HtmlPage, Redirect
from remuda.identity.login import schema
from remuda.identity.login.browser_state import BrowserRequest, CompletedLogin, PasswordReplacement
from remuda.identity.login.login_pages import BrowserPages, LoginPages
from remuda.kernel.errors import Invalid
from remuda.kernel.secrets import Secret

_BAD_REQUEST = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSteps(BrowserPages):
    """Steps between the password and the redirect."""

    login: LoginPages

    async def replace_password(self, request: BrowserRequest, form: schema.NewPasswordForm) -> HtmlPage | Redirect:
        """Replace a temporary password, and complete the login."""
        replacement = self.states.open(PasswordReplacement, form.state, browser=request.cookie)
        user = await self.login.user_of(replacement.login)
        try:
            new_password = chosen_password(form)
            log = await self.records.succeeded(request, user)
            await self.passwords.replace_temporary(user.name, replacement.set_at, new_password, log=log)
        except Invalid as invalid:
            return self.pages.temporary_password(
                state=form.state, email=user.spec.subject, problem=invalid.message, status=_BAD_REQUEST
            )
        return await self.login.proceed(request, replacement.login.pending, user)

    async def proceed(self, request: BrowserRequest, form: schema.ProceedForm) -> HtmlPage | Redirect:
        """Go on with a completed login."""
        completed = self.states.open(CompletedLogin, form.state, browser=request.cookie)
        current = await self.logins.find(request.cookie)
        if current is None:
            return await self.login.show_login(request, completed.pending)
        return await self.login.leave(completed.pending, current, browser=request.cookie)


def chosen_password(form: schema.NewPassword) -> Secret:
    """Return the new password of a form, or raise Invalid if it was not entered twice."""
    if form.new_password != form.repeated_password:
        raise Invalid("password", "The two new passwords differ: enter them again.")
    return form.new_password or Secret("")
