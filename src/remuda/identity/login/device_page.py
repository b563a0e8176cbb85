"""Device authorization page (RFC 8628): the user enters the code, logs in, and approves or denies the device.

User codes are short, so attempts per address are limited, and unknown and expired codes get the same response. The
decision is valid only from the browser and the login that the confirmation was rendered for.
"""

from dataclasses import dataclass

from remuda.http.responses import HtmlPage, Redirect
from remuda.identity.login.browser_sessions import ActiveLogin
from remuda.identity.login.browser_state import BrowserRequest, DeviceConfirmation, PendingLogin
from remuda.identity.login.login_pages import BrowserPages, LoginPages
from remuda.identity.login.redirect import ACCOUNT
from remuda.identity.login.schema import DeviceForm, DeviceQuery
from remuda.identity.oauth.clients import accepts_logins_of
from remuda.identity.oauth.codes import DeviceGrants
from remuda.identity.tokens.secrets import token_hash
from remuda.identity.tokens.sessions import provider_organization

_UNKNOWN = "The code is unknown or has expired: check it, or start again on the device."
_NOT_FOR_APPLICATION = (
    "This application accepts no logins at the provider of your organization: log out, and log in with your password."
)
_BAD_REQUEST = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePage(BrowserPages):
    """Page on which users approve devices."""

    devices: DeviceGrants
    login: LoginPages

    async def show(self, request: BrowserRequest, query: DeviceQuery) -> HtmlPage | Redirect:
        """Show the form for the code or, if the link has it and the user is logged in, the confirmation."""
        current = await self.logins.find(request.cookie)
        if not query.user_code or current is None:
            return self.pages.device(code=query.user_code)
        return await self._confirm(request, query.user_code, current)

    async def submit(self, request: BrowserRequest, form: DeviceForm) -> HtmlPage | Redirect:
        """Show the confirmation of a code, or store the user's decision."""
        if form.state:
            return await self._decide(request, form)
        return await self._confirm(request, form.user_code, await self.logins.find(request.cookie))

    async def _confirm(self, request: BrowserRequest, code: str, current: ActiveLogin | None) -> HtmlPage | Redirect:
        async with self.attempts.code(request.peer, subject=token_hash(code)):
            grant = await self.devices.find(code)
            if grant is None:
                self.attempts.fail_code(request.peer)
        if grant is None:
            return self.pages.device(code=code, problem=_UNKNOWN, status=_BAD_REQUEST)
        pending = PendingLogin(user_code=code)
        if current is None or not await self.login.redirects.is_sufficient(pending, current):
            return await self.login.show_login(request, pending)
        return self.pages.approve(
            state=self.states.seal(DeviceConfirmation(code), browser=request.cookie),
            code=code,
            application=await self.clients.display_name(grant.spec.client),
            scope=grant.spec.scope,
            known=current.user.spec.subject,
        )

    async def _decide(self, request: BrowserRequest, form: DeviceForm) -> HtmlPage:
        confirmation = self.states.open(DeviceConfirmation, form.state, browser=request.cookie)
        current = await self.logins.find(request.cookie)
        if current is None:
            return self.pages.device(problem="You are no longer logged in: enter the code again.", status=_BAD_REQUEST)
        if form.decision == "approve":
            login = current.login.spec
            grant = await self.devices.find(confirmation.user_code)
            client = None if grant is None else await self.clients.find(grant.spec.client)
            organization = await provider_organization(self.store, login.provider)
            if client is not None and not accepts_logins_of(client, organization):
                return self.pages.device(problem=_NOT_FOR_APPLICATION, status=_BAD_REQUEST)
            was_pending = await self.devices.approve(
                confirmation.user_code,
                user=current.user.name,
                authenticated=login.authenticated,
                provider=login.provider,
                methods=login.methods,
                login=current.login.name,
                log=await self.records.succeeded(request, current.user),
            )
            message = ("The device is connected", "Return to your device, which continues automatically.")
        else:
            log = await self.records.denied(request, current.user)
            was_pending = await self.devices.deny(confirmation.user_code, log=log)
            message = ("The device was denied", "It has no access to your account. You can close this page.")
        if not was_pending:
            return self.pages.device(problem=_UNKNOWN, status=_BAD_REQUEST)
        return self.pages.message(*message, leads=("Go to your account", ACCOUNT))
