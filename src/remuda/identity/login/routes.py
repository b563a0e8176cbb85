"""Routes of the pages for browsers, and of the links by which an administrator lets a user set a password.

The handlers read cookies and the peer from the call.
"""

from typing import Any

from remuda.http.responses import HtmlPage, Redirect
from remuda.http.routes import AnyRoute, Call, Nothing, Route
from remuda.identity.login.account_pages import UPDATE_USERS, AccountPage, PasswordPages
from remuda.identity.login.authorization import AuthorizationRequest
from remuda.identity.login.device_page import DevicePage
from remuda.identity.login.login_pages import LoginPages, LogoutPages
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


async def ask_authorization(
    login: LoginPages, call: Call[Nothing, AuthorizationRequest, Nothing]
) -> HtmlPage | Redirect:
    """Answer a client's request."""
    visit = login.requests.read(call, "GET", "/oauth2/v2/authorization")
    return await login.authorize(visit, call.query, is_form=False)


async def post_authorization(
    login: LoginPages, call: Call[Nothing, Nothing, AuthorizationRequest]
) -> HtmlPage | Redirect:
    """Answer a client's request that came as a form."""
    visit = login.requests.read(call, "POST", "/oauth2/v2/authorization")
    return await login.authorize(visit, call.body, is_form=True)


async def log_in(login: LoginPages, call: Call[Nothing, Nothing, LoginForm]) -> HtmlPage | Redirect:
    return await login.login(login.requests.read(call, "POST", "/oauth2/v2/login"), call.body)


async def come_back(login: LoginPages, call: Call[Nothing, CallbackQuery, Nothing]) -> HtmlPage | Redirect:
    """Take somebody back from a provider."""
    return await login.callback(login.requests.read(call, "GET", "/oidc/callback"), call.query)


async def log_out(logout: LogoutPages, call: Call[Nothing, LogoutRequest, Nothing]) -> HtmlPage | Redirect:
    """Log somebody out, or ask first."""
    return await logout.leave(logout.requests.read(call, "GET", "/oauth2/v2/logout"), call.query, is_form=False)


async def post_logout(logout: LogoutPages, call: Call[Nothing, Nothing, LogoutRequest]) -> HtmlPage | Redirect:
    """Log somebody out who said so, or ask first."""
    return await logout.leave(logout.requests.read(call, "POST", "/oauth2/v2/logout"), call.body, is_form=True)


async def show_account(account: AccountPage, call: Call[Nothing, Nothing, Nothing]) -> HtmlPage | Redirect:
    return await account.show(account.requests.read(call, "GET", ACCOUNT))


async def change_account(account: AccountPage, call: Call[Nothing, Nothing, AccountForm]) -> HtmlPage | Redirect:
    """End what somebody chose to end."""
    return await account.change(account.requests.read(call, "POST", ACCOUNT), call.body)


async def show_device(devices: DevicePage, call: Call[Nothing, DeviceQuery, Nothing]) -> HtmlPage | Redirect:
    """Ask for a device's code."""
    return await devices.show(devices.requests.read(call, "GET", "/oauth2/v2/device"), call.query.user_code)


async def connect_device(devices: DevicePage, call: Call[Nothing, Nothing, DeviceForm]) -> HtmlPage | Redirect:
    """Take a device's code, or what somebody says to it."""
    return await devices.answer(devices.requests.read(call, "POST", "/oauth2/v2/device"), call.body)


async def show_password(passwords: PasswordPages, call: Call[Nothing, PasswordQuery, Nothing]) -> HtmlPage | Redirect:
    """Ask for a new password."""
    return await passwords.show(passwords.requests.read(call, "GET", "/oauth2/v2/password"), call.query.link)


async def choose_password(passwords: PasswordPages, call: Call[Nothing, Nothing, PasswordForm]) -> HtmlPage | Redirect:
    """Take a new password."""
    return await passwords.choose(passwords.requests.read(call, "POST", "/oauth2/v2/password"), call.body)


async def make_password_link(
    passwords: PasswordPages, call: Call[Nothing, Nothing, PasswordLinkWrite]
) -> PasswordLinkRead:
    """Make a link by which a password can be set once."""
    return await passwords.make_link(call.context, call.body.subject)


def _page(method: str, path: str, name: str, summary: str, handler: Any, **more: Any) -> AnyRoute:
    given: dict[str, Any] = {
        "method": method,
        "path": path,
        "name": name,
        "summary": summary,
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
        _page(
            "GET",
            authorization,
            "authorize",
            ask,
            ask_authorization,
            query_type=AuthorizationRequest,
            service=LoginPages,
        ),
        _page(
            "POST",
            authorization,
            "authorize_by_form",
            f"{ask}, by a form",
            post_authorization,
            body_type=AuthorizationRequest,
            service=LoginPages,
        ),
        _page(
            "POST",
            "/oauth2/v2/login",
            "log_in",
            "Log in with a password, or go to a provider",
            log_in,
            body_type=LoginForm,
            errors=(401,),
            service=LoginPages,
        ),
        _page(
            "GET",
            "/oidc/callback",
            "come_back",
            "Come back from a provider",
            come_back,
            query_type=CallbackQuery,
            errors=(403,),
            service=LoginPages,
        ),
    ]


def _account() -> list[AnyRoute]:
    return [
        _page(
            "GET",
            ACCOUNT,
            "show_account",
            "Show one's own account, or ask who one is",
            show_account,
            service=AccountPage,
        ),
        _page(
            "POST",
            ACCOUNT,
            "change_account",
            "End a session of one's own, or a login in another browser",
            change_account,
            body_type=AccountForm,
            service=AccountPage,
        ),
    ]


def _logout() -> list[AnyRoute]:
    path, summary = "/oauth2/v2/logout", "Log out in this browser"
    return [
        _page("GET", path, "log_out", summary, log_out, query_type=LogoutRequest, service=LogoutPages),
        _page(
            "POST",
            path,
            "log_out_by_form",
            f"{summary}, by a form",
            post_logout,
            body_type=LogoutRequest,
            service=LogoutPages,
        ),
    ]


def _device() -> list[AnyRoute]:
    path = "/oauth2/v2/device"
    return [
        _page(
            "GET",
            path,
            "show_device",
            "Ask for a device's code",
            show_device,
            query_type=DeviceQuery,
            service=DevicePage,
        ),
        _page(
            "POST", path, "connect_device", "Let a device in", connect_device, body_type=DeviceForm, service=DevicePage
        ),
    ]


def _password() -> list[AnyRoute]:
    path = "/oauth2/v2/password"
    return [
        _page(
            "GET",
            path,
            "show_password",
            "Ask for a password",
            show_password,
            query_type=PasswordQuery,
            service=PasswordPages,
        ),
        _page(
            "POST",
            path,
            "choose_password",
            "Set a password",
            choose_password,
            body_type=PasswordForm,
            errors=(401,),
            service=PasswordPages,
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
            service=PasswordPages,
            handler=make_password_link,
        ),
    ]


ROUTES: list[AnyRoute] = [*_login(), *_account(), *_logout(), *_device(), *_password()]
