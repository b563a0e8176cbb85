"""The routes for browsers, and the one by which an administrator gets a link for somebody's password."""

from typing import Any

from remuda.http.responses import Page
from remuda.http.routes import AnyRoute, Route
from remuda.identity.login import routes as handlers
from remuda.identity.login.authorization import AuthorizationRequest
from remuda.identity.login.password_pages import UPDATE_USERS
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


def routes() -> list[AnyRoute]:
    """Return them."""
    return [*_login(), *_account(), *_logout(), *_device(), *_password()]


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
        "answer_type": Page,
        "headers": ("cookie",),
        "tag": "browser",
    }
    return Route(**given | more)


def _login() -> list[AnyRoute]:
    authorization, ask = "/oauth2/v2/authorization", "Ask for somebody to log in to a client"
    return [
        _page("GET", authorization, "authorize", ask, handlers.ask_authorization, query_type=AuthorizationRequest),
        _page(
            "POST",
            authorization,
            "authorize_by_form",
            f"{ask}, by a form",
            handlers.post_authorization,
            body_type=AuthorizationRequest,
        ),
        _page(
            "POST",
            "/oauth2/v2/login",
            "log_in",
            "Log in with a password, or go to a provider",
            handlers.log_in,
            body_type=LoginForm,
            errors=(401,),
        ),
        _page(
            "GET",
            "/oidc/callback",
            "come_back",
            "Come back from a provider",
            handlers.come_back,
            query_type=CallbackQuery,
            errors=(403,),
        ),
    ]


def _account() -> list[AnyRoute]:
    return [
        _page("GET", ACCOUNT, "show_account", "Show one's own account, or ask who one is", handlers.show_account),
        _page(
            "POST",
            ACCOUNT,
            "change_account",
            "End a session of one's own, or a login in another browser",
            handlers.change_account,
            body_type=AccountForm,
        ),
    ]


def _logout() -> list[AnyRoute]:
    path, summary = "/oauth2/v2/logout", "Log out in this browser"
    return [
        _page("GET", path, "log_out", summary, handlers.log_out, query_type=LogoutRequest),
        _page("POST", path, "log_out_by_form", f"{summary}, by a form", handlers.post_logout, body_type=LogoutRequest),
    ]


def _device() -> list[AnyRoute]:
    path = "/oauth2/v2/device"
    return [
        _page("GET", path, "show_device", "Ask for a device's code", handlers.show_device, query_type=DeviceQuery),
        _page("POST", path, "connect_device", "Let a device in", handlers.connect_device, body_type=DeviceForm),
    ]


def _password() -> list[AnyRoute]:
    path = "/oauth2/v2/password"
    return [
        _page("GET", path, "show_password", "Ask for a password", handlers.show_password, query_type=PasswordQuery),
        _page(
            "POST",
            path,
            "choose_password",
            "Set a password",
            handlers.choose_password,
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
            answer_type=PasswordLinkRead,
            success=201,
            errors=(404,),
            holds_secret=True,
            handler=handlers.make_password_link,
        ),
    ]
