"""The port of the room for browsers: logging in and out, connecting devices, and passwords."""

from dataclasses import dataclass

from remuda.identity.login.account_pages import AccountPage, PasswordPages
from remuda.identity.login.browser_state import BrowserCookie, FamiliarCookie
from remuda.identity.login.device_page import DevicePage
from remuda.identity.login.login_pages import Entry, Exit


@dataclass(frozen=True, slots=True, kw_only=True)
class Browser:
    """Everything that browsers are shown."""

    cookie: BrowserCookie
    familiar: FamiliarCookie
    entry: Entry
    account: AccountPage
    exit: Exit
    devices: DevicePage
    passwords: PasswordPages
