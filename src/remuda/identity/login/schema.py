"""What browsers send to the pages of logging in, and what an administrator sends and reads for a password link."""

from datetime import datetime
from typing import Annotated

import msgspec

from remuda.http.schema import Parameters, Wire
from remuda.kernel.secrets import Secret

_Address = Annotated[str, msgspec.Meta(max_length=320)]
_Name = Annotated[str, msgspec.Meta(max_length=512)]
_Long = Annotated[str, msgspec.Meta(max_length=2048)]
_Sealed = Annotated[str, msgspec.Meta(max_length=16384)]


class LoginForm(Parameters, frozen=True):
    """The login page: a password, a provider's id or type, or an address alone, whose domain finds the provider."""

    state: _Sealed
    email: _Address = ""
    password: Secret | None = None
    provider: _Name = ""
    known: _Name = ""
    """Go on as who is logged in already."""
    stay: _Name = ""
    """Do not go to the provider of the address, but log in here."""


class CallbackQuery(Parameters, frozen=True):
    """How somebody comes back from a provider."""

    state: _Sealed = ""
    code: Annotated[str, msgspec.Meta(max_length=8192)] = ""
    error: _Name = ""
    error_description: _Long = ""
    iss: _Long = ""


class DeviceQuery(Parameters, frozen=True):
    """The code of a device, if the link has it."""

    user_code: Annotated[str, msgspec.Meta(max_length=32)] = ""


class DeviceForm(DeviceQuery, frozen=True):
    """The code of a device; or, with its state, what to answer it."""

    state: _Sealed = ""
    answer: _Name = ""


class AccountForm(Parameters, frozen=True):
    """What to end: a session, or a login in another browser, by its id."""

    state: _Sealed
    session: _Name = ""
    login: _Name = ""


class LogoutRequest(Parameters, frozen=True):
    """OpenID Connect RP-Initiated Logout. `confirmation` is what our own page sends."""

    id_token_hint: Annotated[str, msgspec.Meta(max_length=8192)] = ""
    post_logout_redirect_uri: _Long = ""
    client_id: _Name = ""
    state: _Long = ""
    confirmation: _Sealed = ""


class PasswordQuery(Parameters, frozen=True):
    """What makes a link good, if it is one."""

    link: _Name = ""


class PasswordForm(PasswordQuery, frozen=True):
    """A new password, with a link or with the present one."""

    email: _Address = ""
    password: Secret | None = None
    chosen: Secret | None = None
    again: Secret | None = None


class PasswordLinkWrite(Wire, frozen=True):
    """Whose password is to be set."""

    subject: Annotated[str, msgspec.Meta(min_length=1, max_length=320, description="The user's e-mail address.")]


class PasswordLinkRead(Wire, frozen=True):
    """A link by which a password can be set once. Whoever has it can: hand it to the user and to nobody else."""

    link: Secret
    expiry: datetime
