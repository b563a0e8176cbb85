"""Forms and queries of the login pages, and password links."""

from typing import Annotated

import msgspec

from remuda.http.schema import Id, Moment, Parameters, Wire
from remuda.kernel.secrets import Secret

_Address = Annotated[str, msgspec.Meta(max_length=320)]
_Name = Annotated[str, msgspec.Meta(max_length=512)]
_Long = Annotated[str, msgspec.Meta(max_length=2048)]
_Sealed = Annotated[str, msgspec.Meta(max_length=16384)]


class LoginForm(Parameters, frozen=True):
    """Login form: a password, a provider's id or type, or an address alone, whose domain selects the provider."""

    state: Annotated[
        _Sealed,
        msgspec.Meta(description="Sealed state of the login, from the page.", examples=["the-state-of-the-page"]),
    ]
    email: Annotated[
        _Address, msgspec.Meta(description="E-mail address of the user.", examples=["ada@example.com"])
    ] = ""
    password: Annotated[
        Secret | None, msgspec.Meta(description="Password of the user.", examples=["a horse that reads the manual"])
    ] = None
    provider: Annotated[_Name, msgspec.Meta(description="Id or type of the provider to log in at.")] = ""
    continue_as_current: Annotated[
        _Name, msgspec.Meta(description="Continue as the user who is already logged in.")
    ] = ""
    use_password: Annotated[
        _Name, msgspec.Meta(description="Log in with a password instead of the organization's provider.")
    ] = ""


class CallbackQuery(Parameters, frozen=True):
    """Authorization response of an external provider."""

    state: Annotated[_Sealed, msgspec.Meta(description="Sealed state of the login.")] = ""
    code: Annotated[str, msgspec.Meta(max_length=8192, description="Code of the provider.")] = ""
    error: Annotated[_Name, msgspec.Meta(description="Error of the provider.")] = ""
    error_description: Annotated[_Long, msgspec.Meta(description="Description of the error.")] = ""
    iss: Annotated[_Long, msgspec.Meta(description="Issuer of the response (RFC 9207).")] = ""


class DeviceQuery(Parameters, frozen=True):
    """User code of a device, if the link has it."""

    user_code: Annotated[
        str, msgspec.Meta(max_length=32, description="Code that the device shows.", examples=["BCDF-GHJK"])
    ] = ""


class DeviceForm(DeviceQuery, frozen=True):
    """User code of a device or, with its state, the user's decision."""

    state: Annotated[_Sealed, msgspec.Meta(description="Sealed state of the page.")] = ""
    decision: Annotated[_Name, msgspec.Meta(description="Decision of the user.")] = ""


class FactorForm(Parameters, frozen=True):
    """Second factor of a login: a code of an app, a recovery code, or the response of a passkey."""

    state: Annotated[
        _Sealed,
        msgspec.Meta(description="Sealed state of the login, from the page.", examples=["the-state-of-the-page"]),
    ]
    code: Annotated[Secret | None, msgspec.Meta(description="Code of an authenticator app.", examples=["123456"])] = (
        None
    )
    recovery_code: Annotated[Secret | None, msgspec.Meta(description="Recovery code, which is used up.")] = None
    credential: Annotated[_Sealed, msgspec.Meta(description="Response of a passkey, as JSON.")] = ""


class EnrolmentForm(Parameters, frozen=True):
    """Enrolment of an authenticator: its kind, then what proves that it works; or the decision to go on without."""

    state: Annotated[
        _Sealed,
        msgspec.Meta(description="Sealed state of the login, from the page.", examples=["the-state-of-the-page"]),
    ]
    kind: Annotated[_Name, msgspec.Meta(description="Kind of the authenticator to add.", examples=["app"])] = ""
    name: Annotated[_Name, msgspec.Meta(description="Name of the authenticator, for the user.")] = ""
    code: Annotated[Secret | None, msgspec.Meta(description="First code of the app.")] = None
    credential: Annotated[_Sealed, msgspec.Meta(description="Response of the new passkey, as JSON.")] = ""
    decline: Annotated[_Name, msgspec.Meta(description="Go on without a second factor.")] = ""


class CompletionForm(Parameters, frozen=True):
    """Login to be completed after the recovery codes were shown."""

    state: Annotated[
        _Sealed,
        msgspec.Meta(description="Sealed state of the login, from the page.", examples=["the-state-of-the-page"]),
    ]


class FactorsQuery(Parameters, frozen=True):
    """Request to log in again, before second factors can be changed."""

    confirm: Annotated[_Name, msgspec.Meta(description="Log in again, so that second factors can be changed.")] = ""


class FactorsForm(Parameters, frozen=True):
    """Kind of an authenticator to add, or the id of one to remove."""

    state: Annotated[_Sealed, msgspec.Meta(description="Sealed state of the page.", examples=["the-state-of-the-page"])]
    kind: Annotated[_Name, msgspec.Meta(description="Kind of the authenticator to add.", examples=["app"])] = ""
    authenticator: Annotated[_Name, msgspec.Meta(description="Id of the authenticator to remove.")] = ""


class AccountForm(Parameters, frozen=True):
    """Session or browser login to end, by its id, or all of them."""

    state: Annotated[_Sealed, msgspec.Meta(description="Sealed state of the page.", examples=["the-state-of-the-page"])]
    session: Annotated[_Name, msgspec.Meta(description="Id of the session to end.")] = ""
    login: Annotated[_Name, msgspec.Meta(description="Id of the browser login to end.")] = ""
    everywhere: Annotated[_Name, msgspec.Meta(description="End all of them.", examples=["yes"])] = ""


class InvitationForm(Parameters, frozen=True):
    """Invitation to accept or to decline, by the id of the membership; without either, the login continues."""

    state: Annotated[
        _Sealed,
        msgspec.Meta(description="Sealed state of the login, from the page.", examples=["the-state-of-the-page"]),
    ]
    accept: Annotated[
        _Name,
        msgspec.Meta(description="Id of the membership to accept.", examples=["e2b7c9d4-1a2b-4c3d-8e4f-5a6b7c8d9e01"]),
    ] = ""
    decline: Annotated[_Name, msgspec.Meta(description="Id of the membership to decline.")] = ""
    later: Annotated[_Name, msgspec.Meta(description="Decide later.")] = ""


class LogoutRequest(Parameters, frozen=True):
    """Parameters of OpenID Connect RP-Initiated Logout. `confirmation` is sent by our own page."""

    id_token_hint: Annotated[str, msgspec.Meta(max_length=8192, description="ID token of the login that ends.")] = ""
    post_logout_redirect_uri: Annotated[_Long, msgspec.Meta(description="Page of the client to return to.")] = ""
    client_id: Annotated[_Name, msgspec.Meta(description="Id of the client.", examples=["remuda-cli"])] = ""
    state: Annotated[_Long, msgspec.Meta(description="Value that the redirect repeats.")] = ""
    confirmation: Annotated[_Sealed, msgspec.Meta(description="Sealed confirmation of our own page.")] = ""


class PasswordQuery(Parameters, frozen=True):
    """Secret of a password link, if there is one."""

    link: Annotated[_Name, msgspec.Meta(description="Secret of the password link.")] = ""


class NewPassword(Parameters, frozen=True):
    """New password, entered twice."""

    new_password: Annotated[
        Secret | None, msgspec.Meta(description="New password.", examples=["a horse that reads the manual"])
    ] = None
    repeated_password: Annotated[
        Secret | None, msgspec.Meta(description="New password again.", examples=["a horse that reads the manual"])
    ] = None


class PasswordForm(NewPassword, frozen=True):
    """New password, with a link or with the current password."""

    link: Annotated[
        _Name, msgspec.Meta(description="Secret of the password link.", examples=["the-secret-of-the-link"])
    ] = ""
    email: Annotated[_Address, msgspec.Meta(description="E-mail address of the user, without a link.")] = ""
    password: Annotated[Secret | None, msgspec.Meta(description="Current password, without a link.")] = None


class NewPasswordForm(NewPassword, frozen=True, kw_only=True):
    """New password in place of a temporary one."""

    state: Annotated[
        _Sealed,
        msgspec.Meta(description="Sealed state of the login, from the page.", examples=["the-state-of-the-page"]),
    ]


class ProceedForm(Parameters, frozen=True):
    """Completed login that goes on."""

    state: Annotated[
        _Sealed,
        msgspec.Meta(description="Sealed state of the login, from the page.", examples=["the-state-of-the-page"]),
    ]


class PasswordLinkWrite(Wire, frozen=True, rename={"organization": "organizationID"}):
    """User whose password is to be set."""

    subject: Annotated[
        str,
        msgspec.Meta(
            min_length=1, max_length=320, description="The user's e-mail address.", examples=["ada@example.com"]
        ),
    ]
    organization: (
        Annotated[
            Id,
            msgspec.Meta(
                description="Organization for which the link is made: the user's first password accepts its invitation."
            ),
        ]
        | None
    ) = None


class PasswordLinkRead(Wire, frozen=True):
    """Link that sets a password once. Anyone who has it can use it: give it to the user only."""

    link: Annotated[Secret, msgspec.Meta(description="URL of the page where the user sets the password.")]
    expiry: Annotated[Moment, msgspec.Meta(description="Time at which the link expires.")]


class FactorResetWrite(Wire, frozen=True):
    """User who lost all authenticators and recovery codes."""

    subject: Annotated[
        str,
        msgspec.Meta(
            min_length=1, max_length=320, description="The user's e-mail address.", examples=["ada@example.com"]
        ),
    ]
