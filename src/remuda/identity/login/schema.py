"""Forms and queries of the login pages, and password links."""

from datetime import datetime
from typing import Annotated

import msgspec

from remuda.http.schema import Id, Parameters, Wire
from remuda.kernel.secrets import Secret

_Address = Annotated[str, msgspec.Meta(max_length=320)]
_Name = Annotated[str, msgspec.Meta(max_length=512)]
_Long = Annotated[str, msgspec.Meta(max_length=2048)]
_Sealed = Annotated[str, msgspec.Meta(max_length=16384)]


class LoginForm(Parameters, frozen=True):
    """Login form: a password, a provider's id or type, or an address alone, whose domain selects the provider."""

    state: _Sealed
    email: _Address = ""
    password: Secret | None = None
    provider: _Name = ""
    continue_as_current: _Name = ""
    """Continue as the user who is already logged in."""
    use_password: _Name = ""
    """Log in with a password instead of the organization's provider."""


class CallbackQuery(Parameters, frozen=True):
    """Authorization response of an external provider."""

    state: _Sealed = ""
    code: Annotated[str, msgspec.Meta(max_length=8192)] = ""
    error: _Name = ""
    error_description: _Long = ""
    iss: _Long = ""


class DeviceQuery(Parameters, frozen=True):
    """User code of a device, if the link has it."""

    user_code: Annotated[str, msgspec.Meta(max_length=32)] = ""


class DeviceForm(DeviceQuery, frozen=True):
    """User code of a device or, with its state, the user's decision."""

    state: _Sealed = ""
    decision: _Name = ""


class FactorForm(Parameters, frozen=True):
    """Second factor of a login: a code of an app, a recovery code, or the response of a passkey."""

    state: _Sealed
    code: Secret | None = None
    recovery_code: Secret | None = None
    credential: _Sealed = ""


class EnrolmentForm(Parameters, frozen=True):
    """Enrolment of an authenticator: its kind, then what proves that it works; or the decision to go on without."""

    state: _Sealed
    kind: _Name = ""
    name: _Name = ""
    code: Secret | None = None
    credential: _Sealed = ""
    decline: _Name = ""


class CompletionForm(Parameters, frozen=True):
    """Login to be completed after the recovery codes were shown."""

    state: _Sealed


class FactorsQuery(Parameters, frozen=True):
    """Request to log in again, before second factors can be changed."""

    confirm: _Name = ""


class FactorsForm(Parameters, frozen=True):
    """Kind of an authenticator to add, or the id of one to remove."""

    state: _Sealed
    kind: _Name = ""
    authenticator: _Name = ""


class AccountForm(Parameters, frozen=True):
    """Session or browser login to end, by its id, or all of them."""

    state: _Sealed
    session: _Name = ""
    login: _Name = ""
    everywhere: _Name = ""


class InvitationForm(Parameters, frozen=True):
    """Invitation to accept or to decline, by the id of the membership; without either, the login continues."""

    state: _Sealed
    accept: _Name = ""
    decline: _Name = ""
    later: _Name = ""


class LogoutRequest(Parameters, frozen=True):
    """Parameters of OpenID Connect RP-Initiated Logout. `confirmation` is sent by our own page."""

    id_token_hint: Annotated[str, msgspec.Meta(max_length=8192)] = ""
    post_logout_redirect_uri: _Long = ""
    client_id: _Name = ""
    state: _Long = ""
    confirmation: _Sealed = ""


class PasswordQuery(Parameters, frozen=True):
    """Secret of a password link, if there is one."""

    link: _Name = ""


class NewPassword(Parameters, frozen=True):
    """New password, entered twice."""

    new_password: Secret | None = None
    repeated_password: Secret | None = None


class PasswordForm(NewPassword, frozen=True):
    """New password, with a link or with the current password."""

    link: _Name = ""
    email: _Address = ""
    password: Secret | None = None


class NewPasswordForm(NewPassword, frozen=True, kw_only=True):
    """New password in place of a temporary one."""

    state: _Sealed


class ProceedForm(Parameters, frozen=True):
    """Completed login that goes on."""

    state: _Sealed


class PasswordLinkWrite(Wire, frozen=True, rename={"organization": "organizationID"}):
    """User whose password is to be set."""

    subject: Annotated[str, msgspec.Meta(min_length=1, max_length=320, description="The user's e-mail address.")]
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

    link: Secret
    expiry: datetime


class FactorResetWrite(Wire, frozen=True):
    """User who lost all authenticators and recovery codes."""

    subject: Annotated[str, msgspec.Meta(min_length=1, max_length=320, description="The user's e-mail address.")]
