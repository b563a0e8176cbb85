"""The handlers of the pages: each gathers what a browser brought, and asks the service."""

from typing import Any

from remuda.http.responses import Page, Redirect
from remuda.http.routes import Call, Nothing
from remuda.identity.login.authorization import AuthorizationRequest
from remuda.identity.login.facade import Browser
from remuda.identity.login.redirect import ACCOUNT
from remuda.identity.login.schema import (
    AccountForm,
    CallbackQuery,
    DeviceForm,
    DeviceQuery,
    LoginForm,
    LogoutRequest,
    PasswordForm,
    PasswordLinkRead,
    PasswordLinkWrite,
    PasswordQuery,
)
from remuda.identity.login.visits import Visit


def _visit(browser: Browser, call: Call[Any, Any, Any], verb: str, route: str) -> Visit:
    sent = call.headers.get("cookie", "")
    return Visit(
        cookie=browser.cookie.read(sent),
        peer=call.peer,
        trace_id=call.context.trace_id,
        verb=verb,
        route=route,
        familiar=browser.familiar.read(sent),
    )


async def ask_authorization(browser: Browser, call: Call[Nothing, AuthorizationRequest, Nothing]) -> Page | Redirect:
    """Answer a client's request."""
    visit = _visit(browser, call, "GET", "/oauth2/v2/authorization")
    return await browser.entry.authorize(visit, call.query, is_form=False)


async def post_authorization(browser: Browser, call: Call[Nothing, Nothing, AuthorizationRequest]) -> Page | Redirect:
    """Answer a client's request that came as a form."""
    visit = _visit(browser, call, "POST", "/oauth2/v2/authorization")
    return await browser.entry.authorize(visit, call.body, is_form=True)


async def log_in(browser: Browser, call: Call[Nothing, Nothing, LoginForm]) -> Page | Redirect:
    return await browser.entry.login(_visit(browser, call, "POST", "/oauth2/v2/login"), call.body)


async def come_back(browser: Browser, call: Call[Nothing, CallbackQuery, Nothing]) -> Page | Redirect:
    """Take somebody back from a provider."""
    return await browser.entry.callback(_visit(browser, call, "GET", "/oidc/callback"), call.query)


async def log_out(browser: Browser, call: Call[Nothing, LogoutRequest, Nothing]) -> Page | Redirect:
    """Log somebody out, or ask first."""
    return await browser.exit.leave(_visit(browser, call, "GET", "/oauth2/v2/logout"), call.query, is_form=False)


async def post_logout(browser: Browser, call: Call[Nothing, Nothing, LogoutRequest]) -> Page | Redirect:
    """Log somebody out who said so, or ask first."""
    return await browser.exit.leave(_visit(browser, call, "POST", "/oauth2/v2/logout"), call.body, is_form=True)


async def show_account(browser: Browser, call: Call[Nothing, Nothing, Nothing]) -> Page | Redirect:
    return await browser.account.show(_visit(browser, call, "GET", ACCOUNT))


async def change_account(browser: Browser, call: Call[Nothing, Nothing, AccountForm]) -> Page | Redirect:
    """End what somebody chose to end."""
    return await browser.account.change(_visit(browser, call, "POST", ACCOUNT), call.body)


async def show_device(browser: Browser, call: Call[Nothing, DeviceQuery, Nothing]) -> Page | Redirect:
    """Ask for a device's code."""
    return await browser.devices.show(_visit(browser, call, "GET", "/oauth2/v2/device"), call.query.user_code)


async def connect_device(browser: Browser, call: Call[Nothing, Nothing, DeviceForm]) -> Page | Redirect:
    """Take a device's code, or what somebody says to it."""
    return await browser.devices.answer(_visit(browser, call, "POST", "/oauth2/v2/device"), call.body)


async def show_password(browser: Browser, call: Call[Nothing, PasswordQuery, Nothing]) -> Page | Redirect:
    """Ask for a new password."""
    return await browser.passwords.show(_visit(browser, call, "GET", "/oauth2/v2/password"), call.query.link)


async def choose_password(browser: Browser, call: Call[Nothing, Nothing, PasswordForm]) -> Page | Redirect:
    """Take a new password."""
    return await browser.passwords.choose(_visit(browser, call, "POST", "/oauth2/v2/password"), call.body)


async def make_password_link(browser: Browser, call: Call[Nothing, Nothing, PasswordLinkWrite]) -> PasswordLinkRead:
    """Make a link by which a password can be set once."""
    return await browser.passwords.make_link(call.context, call.body.subject)
