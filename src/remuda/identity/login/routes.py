"""Routes of the pages for browsers, and of password links."""

from collections.abc import Awaitable, Callable
from typing import Any

from remuda.http.responses import HtmlPage, Redirect
from remuda.http.routes import AnyRoute, Call, Method, Route
from remuda.http.schema import Nothing
from remuda.identity.login import schema
from remuda.identity.login.account_pages import UPDATE_USERS, AccountPage, PasswordPages
from remuda.identity.login.authorization import AuthorizationRequest
from remuda.identity.login.browser_state import BrowserRequest
from remuda.identity.login.device_page import DevicePage
from remuda.identity.login.factor_pages import FactorPages, FactorReset
from remuda.identity.login.invitation_pages import InvitationPages
from remuda.identity.login.login_pages import LoginPages, LogoutPages
from remuda.identity.login.login_steps import LoginSteps
from remuda.identity.login.redirect import ACCOUNT, FACTORS

_AUTHORIZATION, _LOGOUT = "/oauth2/v2/authorization", "/oauth2/v2/logout"
_FACTOR_STEP, _COMPLETION, _ENROLMENT = "/oauth2/v2/login/factor", "/oauth2/v2/login/completion", "/oauth2/v2/enrolment"
_REMOVAL, _RECOVERY_CODES = f"{FACTORS}/removal", f"{FACTORS}/recovery-codes"
_INVITATIONS = "/oauth2/v2/invitations"
_LOGIN, _DEVICE, _PASSWORD = "/oauth2/v2/login", "/oauth2/v2/device", "/oauth2/v2/password"
_SUMMARIES = {
    "authorize": "Log a user in to a client",
    "authorize_by_form": "Log a user in to a client, by a form",
    "log_in": "Log in with a password or at a provider",
    "replace_password": "Replace a temporary password, and complete the login",
    "proceed_with_login": "Go on after a report of failed logins",
    "complete_login": "Complete a login at a provider",
    "show_account": "Show the caller's account, or the login page",
    "change_account": "End a session of the caller, or a login in another browser",
    "show_invitations": "Show the organizations that invite the caller",
    "decide_invitations": "Accept or decline an invitation, and continue the login",
    "log_out": "Log out in this browser",
    "log_out_by_form": "Log out in this browser, by a form",
    "show_device": "Show the form for a device's code",
    "connect_device": "Approve or deny a device",
    "verify_factor": "Log in with a second factor, after the password",
    "enrol_factor": "Add an authenticator",
    "complete_enrolment": "Complete a login in which an authenticator was added",
    "show_factors": "Show the caller's second factors",
    "add_factor": "Show the form for a new authenticator",
    "remove_factor": "Remove an authenticator",
    "replace_recovery_codes": "Replace the recovery codes",
    "show_password": "Show the form for a new password",
    "choose_password": "Set a password",
}

Action = Callable[[Any, BrowserRequest, Any], Awaitable[HtmlPage | Redirect]]
"""Method of a service of pages, which takes the request of the browser, and its query or form."""


def _page(method: Method, path: str, name: str, service: type, action: Action, sent: Any, *errors: int) -> AnyRoute:
    """Return the route of a page. `sent` is the type of its query, or of its form if the method is POST."""
    is_form = method == "POST"

    async def handle(pages: Any, call: Call[Any, Any, Any]) -> HtmlPage | Redirect:
        request = pages.requests.read(call, method, path)
        return await action(pages, request, call.body if is_form else call.query)

    return Route(
        method=method,
        path=path,
        name=name,
        summary=_SUMMARIES[name],
        handler=handle,
        service=service,
        scope="public",
        page=True,
        redirects=True,
        form=is_form,
        response_type=HtmlPage,
        headers=("cookie",),
        tag="browser",
        errors=errors,
        **{"body_type" if is_form else "query_type": sent},
    )


def _show_account(pages: AccountPage, request: BrowserRequest, _query: Nothing) -> Awaitable[HtmlPage | Redirect]:
    return pages.show(request)


def _show_invitations(
    pages: InvitationPages, request: BrowserRequest, _query: Nothing
) -> Awaitable[HtmlPage | Redirect]:
    return pages.show(request)


ROUTES: list[AnyRoute] = [
    _page("GET", _AUTHORIZATION, "authorize", LoginPages, LoginPages.authorize, AuthorizationRequest),
    _page("POST", _AUTHORIZATION, "authorize_by_form", LoginPages, LoginPages.authorize, AuthorizationRequest),
    _page("POST", _LOGIN, "log_in", LoginPages, LoginPages.login, schema.LoginForm, 401),
    _page(
        "POST",
        f"{_LOGIN}/password",
        "replace_password",
        LoginSteps,
        LoginSteps.replace_password,
        schema.NewPasswordForm,
    ),
    _page("POST", f"{_LOGIN}/continue", "proceed_with_login", LoginSteps, LoginSteps.proceed, schema.ProceedForm),
    _page("GET", "/oidc/callback", "complete_login", LoginPages, LoginPages.callback, schema.CallbackQuery, 403),
    _page("GET", ACCOUNT, "show_account", AccountPage, _show_account, Nothing),
    _page("POST", ACCOUNT, "change_account", AccountPage, AccountPage.change, schema.AccountForm),
    _page("GET", _INVITATIONS, "show_invitations", InvitationPages, _show_invitations, Nothing),
    _page("POST", _INVITATIONS, "decide_invitations", InvitationPages, InvitationPages.decide, schema.InvitationForm),
    _page("GET", _LOGOUT, "log_out", LogoutPages, LogoutPages.log_out, schema.LogoutRequest),
    _page("POST", _LOGOUT, "log_out_by_form", LogoutPages, LogoutPages.log_out, schema.LogoutRequest),
    _page("GET", _DEVICE, "show_device", DevicePage, DevicePage.show, schema.DeviceQuery),
    _page("POST", _DEVICE, "connect_device", DevicePage, DevicePage.submit, schema.DeviceForm),
    _page("POST", _FACTOR_STEP, "verify_factor", FactorPages, FactorPages.verify, schema.FactorForm, 401),
    _page("POST", _ENROLMENT, "enrol_factor", FactorPages, FactorPages.enrol, schema.EnrolmentForm),
    _page("POST", _COMPLETION, "complete_enrolment", FactorPages, FactorPages.complete, schema.CompletionForm),
    _page("GET", FACTORS, "show_factors", FactorPages, FactorPages.show, schema.FactorsQuery),
    _page("POST", FACTORS, "add_factor", FactorPages, FactorPages.add, schema.FactorsForm),
    _page("POST", _REMOVAL, "remove_factor", FactorPages, FactorPages.remove, schema.FactorsForm),
    _page(
        "POST", _RECOVERY_CODES, "replace_recovery_codes", FactorPages, FactorPages.replace_codes, schema.FactorsForm
    ),
    _page("GET", _PASSWORD, "show_password", PasswordPages, PasswordPages.show, schema.PasswordQuery),
    _page("POST", _PASSWORD, "choose_password", PasswordPages, PasswordPages.choose, schema.PasswordForm, 401),
    Route(
        method="POST",
        path="/api/v1/passwords",
        name="create_password_link",
        summary="Create a link with which a user can set a password once",
        scope="everywhere",
        permission=UPDATE_USERS,
        body_type=schema.PasswordLinkWrite,
        response_type=schema.PasswordLinkRead,
        success=201,
        errors=(404,),
        has_secret=True,
        service=PasswordPages,
        calls=PasswordPages.create_link,
    ),
    Route(
        method="POST",
        path="/api/v1/secondfactorresets",
        name="reset_second_factors",
        summary="Remove all second factors of a user who lost them, and end the user's sessions",
        scope="everywhere",
        permission=UPDATE_USERS,
        body_type=schema.FactorResetWrite,
        success=204,
        errors=(404,),
        service=FactorReset,
        calls=FactorReset.reset,
    ),
]
