"""Routes of the pages for browsers, and of the links by which an administrator lets a user set a password.

The handlers read cookies and the peer from the call.
"""

from typing import Any

from remuda.http.responses import HtmlPage, Redirect
from remuda.http.routes import AnyRoute, Call, Nothing, Route
from remuda.identity.login.account_pages import UPDATE_USERS
from remuda.identity.login.authorization import AuthorizationRequest
from remuda.identity.login.browser_state import Visit
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


async def ask_authorization(
    browser: Browser, call: Call[Nothing, AuthorizationRequest, Nothing]
) -> HtmlPage | Redirect:
    """Answer a client's request."""
    visit = _visit(browser, call, "GET", "/oauth2/v2/authorization")
    return await browser.entry.authorize(visit, call.query, is_form=False)


async def post_authorization(
    browser: Browser, call: Call[Nothing, Nothing, AuthorizationRequest]
) -> HtmlPage | Redirect:
    """Answer a client's request that came as a form."""
    visit = _visit(browser, call, "POST", "/oauth2/v2/authorization")
    return await browser.entry.authorize(visit, call.body, is_form=True)


async def log_in(browser: Browser, call: Call[Nothing, Nothing, LoginForm]) -> HtmlPage | Redirect:
    return await browser.entry.login(_visit(browser, call, "POST", "/oauth2/v2/login"), call.body)


async def come_back(browser: Browser, call: Call[Nothing, CallbackQuery, Nothing]) -> HtmlPage | Redirect:
    """Take somebody back from a provider."""
    return await browser.entry.callback(_visit(browser, call, "GET", "/oidc/callback"), call.query)


async def log_out(browser: Browser, call: Call[Nothing, LogoutRequest, Nothing]) -> HtmlPage | Redirect:
    """Log somebody out, or ask first."""
    return await browser.exit.leave(_visit(browser, call, "GET", "/oauth2/v2/logout"), call.query, is_form=False)


async def post_logout(browser: Browser, call: Call[Nothing, Nothing, LogoutRequest]) -> HtmlPage | Redirect:
    """Log somebody out who said so, or ask first."""
    return await browser.exit.leave(_visit(browser, call, "POST", "/oauth2/v2/logout"), call.body, is_form=True)


async def show_account(browser: Browser, call: Call[Nothing, Nothing, Nothing]) -> HtmlPage | Redirect:
    return await browser.account.show(_visit(browser, call, "GET", ACCOUNT))


async def change_account(browser: Browser, call: Call[Nothing, Nothing, AccountForm]) -> HtmlPage | Redirect:
    """End what somebody chose to end."""
    return await browser.account.change(_visit(browser, call, "POST", ACCOUNT), call.body)


async def show_device(browser: Browser, call: Call[Nothing, DeviceQuery, Nothing]) -> HtmlPage | Redirect:
    """Ask for a device's code."""
    return await browser.devices.show(_visit(browser, call, "GET", "/oauth2/v2/device"), call.query.user_code)


async def connect_device(browser: Browser, call: Call[Nothing, Nothing, DeviceForm]) -> HtmlPage | Redirect:
    """Take a device's code, or what somebody says to it."""
    return await browser.devices.answer(_visit(browser, call, "POST", "/oauth2/v2/device"), call.body)


async def show_password(browser: Browser, call: Call[Nothing, PasswordQuery, Nothing]) -> HtmlPage | Redirect:
    """Ask for a new password."""
    return await browser.passwords.show(_visit(browser, call, "GET", "/oauth2/v2/password"), call.query.link)


async def choose_password(browser: Browser, call: Call[Nothing, Nothing, PasswordForm]) -> HtmlPage | Redirect:
    """Take a new password."""
    return await browser.passwords.choose(_visit(browser, call, "POST", "/oauth2/v2/password"), call.body)


async def make_password_link(browser: Browser, call: Call[Nothing, Nothing, PasswordLinkWrite]) -> PasswordLinkRead:
    """Make a link by which a password can be set once."""
    return await browser.passwords.make_link(call.context, call.body.subject)


def _page(method: str, path: str, name: str, summary: str, handler: Any, **more: Any) -> AnyRoute:
    given: dict[str, Any] = {
        "method": method,
        "path": path,
        "name": name,
        "summary": summary,
        "service": Browser,
        "handler": handler,
        "scope": "public",
        "page": True,
        "redirects": True,
        "form": method == "POST",
        "response_type": HtmlPage,
        "headers": ("cookie",),
        "tag": "browser",
    }
    return Route(**given | more)


def _login() -> list[AnyRoute]:
    authorization, ask = "/oauth2/v2/authorization", "Ask for somebody to log in to a client"
    return [
        _page("GET", authorization, "authorize", ask, ask_authorization, query_type=AuthorizationRequest),
        _page(
            "POST",
            authorization,
            "authorize_by_form",
            f"{ask}, by a form",
            post_authorization,
            body_type=AuthorizationRequest,
        ),
        _page(
            "POST",
            "/oauth2/v2/login",
            "log_in",
            "Log in with a password, or go to a provider",
            log_in,
            body_type=LoginForm,
            errors=(401,),
        ),
        _page(
            "GET",
            "/oidc/callback",
            "come_back",
            "Come back from a provider",
            come_back,
            query_type=CallbackQuery,
            errors=(403,),
        ),
    ]


def _account() -> list[AnyRoute]:
    return [
        _page("GET", ACCOUNT, "show_account", "Show one's own account, or ask who one is", show_account),
        _page(
            "POST",
            ACCOUNT,
            "change_account",
            "End a session of one's own, or a login in another browser",
            change_account,
            body_type=AccountForm,
        ),
    ]


def _logout() -> list[AnyRoute]:
    path, summary = "/oauth2/v2/logout", "Log out in this browser"
    return [
        _page("GET", path, "log_out", summary, log_out, query_type=LogoutRequest),
        _page("POST", path, "log_out_by_form", f"{summary}, by a form", post_logout, body_type=LogoutRequest),
    ]


def _device() -> list[AnyRoute]:
    path = "/oauth2/v2/device"
    return [
        _page("GET", path, "show_device", "Ask for a device's code", show_device, query_type=DeviceQuery),
        _page("POST", path, "connect_device", "Let a device in", connect_device, body_type=DeviceForm),
    ]


def _password() -> list[AnyRoute]:
    path = "/oauth2/v2/password"
    return [
        _page("GET", path, "show_password", "Ask for a password", show_password, query_type=PasswordQuery),
        _page(
            "POST",
            path,
            "choose_password",
            "Set a password",
            choose_password,
            body_type=PasswordForm,
            errors=(401,),
        ),
        Route(
            method="POST",
            path="/api/v1/passwords",
            name="make_password_link",
            summary="Make a link by which a user can choose a password, once",
            scope="everywhere",
            permission=UPDATE_USERS,
            body_type=PasswordLinkWrite,
            response_type=PasswordLinkRead,
            success=201,
            errors=(404,),
            holds_secret=True,
            service=Browser,
            handler=make_password_link,
        ),
    ]


ROUTES: list[AnyRoute] = [*_login(), *_account(), *_logout(), *_device(), *_password()]
