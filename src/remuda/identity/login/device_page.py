"""The page of a device: somebody types its code, says who they are, and then whether it may act for them.

Codes are short, so how often an address may try is limited, and the answer is the same for one that never was and one
that is over. What is asked names the client and the code, and the answer counts only from the browser and the login
that were asked: nobody can have somebody else's browser say yes.
"""

from dataclasses import dataclass

from remuda.http.responses import HtmlPage, Redirect
from remuda.identity.login.audit import Records
from remuda.identity.login.browser_sessions import LoggedIn, Logins
from remuda.identity.login.browser_state import BrowserRequest, BrowserRequestReader, Pairing, Pending, States
from remuda.identity.login.login_pages import Attempts, LoginPages
from remuda.identity.login.pages import Pages
from remuda.identity.login.redirect import ACCOUNT
from remuda.identity.login.schema import DeviceForm
from remuda.identity.oauth.clients import Clients
from remuda.identity.oauth.codes import Devices

_UNKNOWN = "No device waits under this code: look whether you typed what it shows, or let it begin again."
_BAD = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePage:
    """Connects devices."""

    requests: BrowserRequestReader
    states: States
    pages: Pages
    logins: Logins
    attempts: Attempts
    devices: Devices
    clients: Clients
    records: Records
    entry: LoginPages

    async def show(self, visit: BrowserRequest, code: str) -> HtmlPage | Redirect:
        """Ask for the code; or, if the link has it and the user is logged in, whether the device may come in."""
        known = await self.logins.find(visit.cookie)
        if not code or known is None:
            return self.pages.device(code=code)
        return await self._look_up(visit, code, known)

    async def answer(self, visit: BrowserRequest, form: DeviceForm) -> HtmlPage | Redirect:
        """Take a code, or what somebody says to a device."""
        if form.state:
            return await self._decide(visit, form)
        return await self._look_up(visit, form.user_code, await self.logins.find(visit.cookie))

    async def _look_up(self, visit: BrowserRequest, code: str, known: LoggedIn | None) -> HtmlPage | Redirect:
        self.attempts.code(visit.peer)
        grant = await self.devices.find(code)
        if grant is None:
            return self.pages.device(code=code, problem=_UNKNOWN, status=_BAD)
        if known is None:
            return await self.entry.ask(visit, Pending(device=code))
        return self.pages.approve(
            state=self.states.seal(Pairing(code), browser=visit.cookie),
            code=code,
            application=await self.clients.called(grant.spec.client),
            scope=grant.spec.scope,
            known=known.user.spec.subject,
        )

    async def _decide(self, visit: BrowserRequest, form: DeviceForm) -> HtmlPage:
        asked = self.states.open(Pairing, form.state, browser=visit.cookie)
        known = await self.logins.find(visit.cookie)
        if known is None:
            return self.pages.device(problem="You are no longer logged in: type the code again.", status=_BAD)
        if form.answer == "approve":
            login = known.login.spec
            when, where = login.authenticated, login.provider
            was_there = await self.devices.approve(
                asked.device,
                user=known.user.name,
                authenticated=when,
                provider=where,
                log=await self.records.succeeded(visit, known.user),
            )
            said = ("The device is connected", "Go back to your device: it goes on there by itself.")
        else:
            was_there = await self.devices.deny(asked.device, log=await self.records.denied(visit, known.user))
            said = ("The device was turned away", "It cannot act for you. You can close this page.")
        if not was_there:
            return self.pages.device(problem=_UNKNOWN, status=_BAD)
        return self.pages.message(*said, leads=("See your account", ACCOUNT))
