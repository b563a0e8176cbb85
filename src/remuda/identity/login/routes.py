"""Routes of the pages for browsers, and of password links. The handlers read cookies and the peer from the call."""

from typing import Any

from remuda.http.responses import HtmlPage, Redirect
from remuda.http.routes import AnyRoute, Call, Method, Route
from remuda.http.schema import Nothing
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

_AUTHORIZATION, _LOGOUT = "/oauth2/v2/authorization", "/oauth2/v2/logout"
_DEVICE, _PASSWORD = "/oauth2/v2/device", "/oauth2/v2/password"


async def authorize(login: LoginPages, call: Call[Nothing, AuthorizationRequest, Nothing]) -> HtmlPage | Redirect:
    """Handle an authorization request."""
    browser = login.requests.read(call, "GET", _AUTHORIZATION)
    return await login.authorize(browser, call.query, is_form=False)


async def authorize_by_form(
    login: LoginPages, call: Call[Nothing, Nothing, AuthorizationRequest]
) -> HtmlPage | Redirect:
    """Handle an authorization request sent as a form."""
    browser = login.requests.read(call, "POST", _AUTHORIZATION)
    return await login.authorize(browser, call.body, is_form=True)


async def log_in(login: LoginPages, call: Call[Nothing, Nothing, LoginForm]) -> HtmlPage | Redirect:
    return await login.login(login.requests.read(call, "POST", "/oauth2/v2/login"), call.body)


async def complete_login(login: LoginPages, call: Call[Nothing, CallbackQuery, Nothing]) -> HtmlPage | Redirect:
    """Handle the callback of an external provider."""
    return await login.callback(login.requests.read(call, "GET", "/oidc/callback"), call.query)


async def log_out(logout: LogoutPages, call: Call[Nothing, LogoutRequest, Nothing]) -> HtmlPage | Redirect:
    """Log the user out, or ask for confirmation."""
    return await logout.log_out(logout.requests.read(call, "GET", _LOGOUT), call.query, is_form=False)


async def log_out_by_form(logout: LogoutPages, call: Call[Nothing, Nothing, LogoutRequest]) -> HtmlPage | Redirect:
    """Log the user out, or ask for confirmation, by a form."""
    return await logout.log_out(logout.requests.read(call, "POST", _LOGOUT), call.body, is_form=True)


async def show_account(account: AccountPage, call: Call[Nothing, Nothing, Nothing]) -> HtmlPage | Redirect:
    return await account.show(account.requests.read(call, "GET", ACCOUNT))


async def change_account(account: AccountPage, call: Call[Nothing, Nothing, AccountForm]) -> HtmlPage | Redirect:
    """End the selected session or login."""
    return await account.change(account.requests.read(call, "POST", ACCOUNT), call.body)


async def show_device(devices: DevicePage, call: Call[Nothing, DeviceQuery, Nothing]) -> HtmlPage | Redirect:
    """Show the form for a user code."""
    return await devices.show(devices.requests.read(call, "GET", _DEVICE), call.query.user_code)


async def connect_device(devices: DevicePage, call: Call[Nothing, Nothing, DeviceForm]) -> HtmlPage | Redirect:
    """Look a user code up, or store the user's decision."""
    return await devices.submit(devices.requests.read(call, "POST", _DEVICE), call.body)


async def show_password(passwords: PasswordPages, call: Call[Nothing, PasswordQuery, Nothing]) -> HtmlPage | Redirect:
    """Show the form for a new password."""
    return await passwords.show(passwords.requests.read(call, "GET", _PASSWORD), call.query.link)


async def choose_password(passwords: PasswordPages, call: Call[Nothing, Nothing, PasswordForm]) -> HtmlPage | Redirect:
    """Set a new password."""
    return await passwords.choose(passwords.requests.read(call, "POST", _PASSWORD), call.body)


async def make_password_link(
    passwords: PasswordPages, call: Call[Nothing, Nothing, PasswordLinkWrite]
) -> PasswordLinkRead:
    """Create a link that sets a password once."""
    return await passwords.make_link(call.context, call.body.subject)


def _page(method: Method, path: str, handler: Any, service: type, sent: Any, summary: str, *errors: int) -> AnyRoute:
    """Return the route of a page. The handler's name is the route's; `sent` is the type of its query or form."""
    parameters = {"body_type" if method == "POST" else "query_type": sent}
    return Route(
        method=method,
        path=path,
        name=handler.__name__,
        summary=summary,
        handler=handler,
        service=service,
        scope="public",
        page=True,
        redirects=True,
        form=method == "POST",
        response_type=HtmlPage,
        headers=("cookie",),
        tag="browser",
        errors=errors,
        **parameters,
    )


_AUTHORIZE, _LOG_OUT = "Log a user in to a client", "Log out in this browser"
_END = "End a session of the caller, or a login in another browser"

ROUTES: list[AnyRoute] = [
    _page("GET", _AUTHORIZATION, authorize, LoginPages, AuthorizationRequest, _AUTHORIZE),
    _page("POST", _AUTHORIZATION, authorize_by_form, LoginPages, AuthorizationRequest, f"{_AUTHORIZE}, by a form"),
    _page("POST", "/oauth2/v2/login", log_in, LoginPages, LoginForm, "Log in with a password or at a provider", 401),
    _page("GET", "/oidc/callback", complete_login, LoginPages, CallbackQuery, "Complete a login at a provider", 403),
    _page("GET", ACCOUNT, show_account, AccountPage, Nothing, "Show the caller's account, or the login page"),
    _page("POST", ACCOUNT, change_account, AccountPage, AccountForm, _END),
    _page("GET", _LOGOUT, log_out, LogoutPages, LogoutRequest, _LOG_OUT),
    _page("POST", _LOGOUT, log_out_by_form, LogoutPages, LogoutRequest, f"{_LOG_OUT}, by a form"),
    _page("GET", _DEVICE, show_device, DevicePage, DeviceQuery, "Show the form for a device's code"),
    _page("POST", _DEVICE, connect_device, DevicePage, DeviceForm, "Approve or deny a device"),
    _page("GET", _PASSWORD, show_password, PasswordPages, PasswordQuery, "Show the form for a new password"),
    _page("POST", _PASSWORD, choose_password, PasswordPages, PasswordForm, "Set a password", 401),
    Route(
        method="POST",
        path="/api/v1/passwords",
        name="make_password_link",
        summary="Create a link with which a user can set a password once",
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
