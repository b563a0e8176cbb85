"""Logging in from a terminal: it shows an address and a code, and waits until a browser has said yes (RFC 8628)."""

from collections.abc import Callable
from typing import Any

import httpx2
import msgspec

from remuda.cli.client.connecting import connected
from remuda.cli.client.contexts import Tokens
from remuda.cli.client.tokens import CLIENT, sent_form, tokens_of
from remuda.http.transport import error_from
from remuda.kernel.errors import Unauthenticated, Unusable

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
