"""Logging in from a terminal: it shows an address and a code, and waits until a browser has said yes (RFC 8628).

What identity gives to somebody who logs in, how it is renewed, and how it ends.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
import msgspec

from remuda.cli.client.contexts import Tokens
from remuda.cli.client.transport import connected
from remuda.http.remote_errors import error_from
from remuda.kernel.errors import Unauthenticated, Unavailable, Unusable
from remuda.kernel.secrets import Secret

CLIENT = "remuda-cli"
"""What the command line calls itself when it logs in."""
_PATH = re.compile(r"/(?:api|oauth2)/")
_NUMBER = re.compile(r"^\[Errno \d+\] ")


def tokens_of(told: Mapping[str, str]) -> Tokens:
    """Return what an answer of the token endpoint holds."""
    refresh = told.get("refresh_token")
    return Tokens(access=Secret(told["access_token"]), refresh=None if refresh is None else Secret(refresh))


def renewed(http: httpx2.Client, identity: str, refresh: Secret) -> Tokens:
    """Return the next tokens, or raise that the login has ended."""
    form = {"grant_type": "refresh_token", "client_id": CLIENT, "refresh_token": refresh.reveal()}
    answer = sent_form(http, identity, "token", form)
    if answer.is_server_error:
        raise Unavailable(f"{identity} cannot renew the login now: try again in a moment.")
    if not answer.is_success:
        raise Unauthenticated("The login has ended: log in again with remuda login.")
    return tokens_of(answer.json())


def end(http: httpx2.Client, identity: str, refresh: Secret) -> None:
    """Have a login be good for nothing from now on."""
    answer = sent_form(http, identity, "revoke", {"client_id": CLIENT, "token": refresh.reveal()})
    if not answer.is_success:
        raise Unavailable(f"{identity} did not end the login ({answer.status_code}): try again in a moment.")


def sent_form(http: httpx2.Client, identity: str, endpoint: str, form: Mapping[str, str]) -> httpx2.Response:
    """Ask an endpoint of OAuth2, and return what it says."""
    try:
        return http.post(f"{identity}/oauth2/v2/{endpoint}", data=dict(form))
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise reach(identity, error) from None


def reach(url: str, error: Exception) -> Unavailable:
    """Return how it is told that a server cannot be reached."""
    server = _PATH.split(url, maxsplit=1)[0]
    if isinstance(error, httpx2.InvalidURL):
        return Unavailable(f"{server} is no address: give one such as http://127.0.0.1:8080.")
    cause = _NUMBER.sub("", str(error)) or type(error).__name__
    return Unavailable(f"{server} does not answer ({cause}): is it running, and is that its address?")


_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_SCOPE = "openid email"
_SLOWER_S = 5.0
_TOO_MANY = 429


class Invitation(msgspec.Struct, frozen=True):
    """Where somebody says yes, and with which code."""

    verification_uri_complete: str
    user_code: str
    device_code: str
    expires_in: int
    interval: float = 5.0


def log_in(identity: str, tell: Callable[[Invitation], None], sleep: Callable[[float], None]) -> Tokens:
    """Return tokens once somebody has said yes. `tell` shows the invitation."""
    with connected([identity]) as http:
        begun = sent_form(http, identity, "device_authorization", {"client_id": CLIENT, "scope": _SCOPE})
        if begun.is_server_error or begun.status_code == _TOO_MANY:
            raise error_from(begun.status_code, begun.headers, begun.content, server=identity)
        try:
            invitation = msgspec.json.decode(begun.content, type=Invitation)
        except msgspec.MsgspecError:
            raise Unusable(f"{identity} is no identity of a Remuda: give the address that remuda up prints.") from None
        tell(invitation)
        return _waited(http, identity, invitation, sleep)


def _waited(http: httpx2.Client, identity: str, invitation: Invitation, sleep: Callable[[float], None]) -> Tokens:
    form = {"grant_type": _GRANT, "client_id": CLIENT, "device_code": invitation.device_code}
    pause_s, waited_s = invitation.interval, 0.0
    while waited_s < invitation.expires_in:
        sleep(pause_s)
        waited_s += pause_s
        answer = sent_form(http, identity, "token", form)
        if answer.is_success:
            return tokens_of(answer.json())
        match _word(answer):
            case "authorization_pending":
                continue
            case "slow_down":
                pause_s += _SLOWER_S
            case "access_denied":
                raise Unauthenticated("Somebody said no in the browser: nothing has changed here.")
            case _:
                break
    raise Unusable("The code ran out before anybody said yes: say remuda login again.")


def _word(answer: httpx2.Response) -> str:
    try:
        told: Any = answer.json()
    except ValueError:
        return ""
    return str(told.get("error", "")) if isinstance(told, dict) else ""
