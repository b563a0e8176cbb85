"""OAuth 2 client of the CLI: device login (RFC 8628), token refresh and revocation."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar
from urllib.parse import urlencode

import msgspec

from remuda.cli.client.contexts import LoginTokens
from remuda.cli.client.transport import Connections
from remuda.http.transport import OutboundRequest
from remuda.kernel.errors import RemudaError, ServerUnreachable, TooMany, Unauthenticated, Unavailable, Unusable
from remuda.kernel.secrets import Secret, hide

CLIENT = "remuda-cli"
"""Client id of the CLI."""
_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_SCOPE = "openid email"
_SLOW_DOWN_S = 5.0
ResponseT = TypeVar("ResponseT")


class _TokenResponse(msgspec.Struct, frozen=True):
    access_token: Secret
    refresh_token: Secret | None = None


class DeviceAuthorizationResponse(msgspec.Struct, frozen=True):
    """Response of the device authorization endpoint: the page to open and the code to confirm."""

    verification_uri_complete: str
    user_code: str
    device_code: str
    expires_in: int
    interval: float = 5.0


async def refresh_tokens(connections: Connections, identity: str, refresh: Secret) -> LoginTokens:
    """Return new tokens for a refresh token, which is then spent."""
    form = {"grant_type": "refresh_token", "client_id": CLIENT, "refresh_token": refresh.reveal()}
    try:
        return await _tokens(connections, identity, form)
    except (Unavailable, TooMany):
        raise Unavailable(f"{identity} cannot refresh the login now: try again in a moment.") from None
    except RemudaError:
        raise Unauthenticated("The login has expired: log in again with remuda login.") from None


async def revoke_token(connections: Connections, identity: str, refresh: Secret) -> None:
    try:
        await _post(connections, identity, "revoke", {"client_id": CLIENT, "token": refresh.reveal()})
    except Unavailable:
        raise
    except RemudaError as error:
        raise Unavailable(f"{identity} did not end the login ({error.message}): try again in a moment.") from None


async def log_in(
    connections: Connections,
    identity: str,
    announce: Callable[[DeviceAuthorizationResponse], None],
    sleep: Callable[[float], Awaitable[None]],
) -> LoginTokens:
    """Return tokens once the user has confirmed the code in a browser. `announce` shows the page and the code."""
    form = {"client_id": CLIENT, "scope": _SCOPE}
    try:
        begun = _decoded(await _post(connections, identity, "device_authorization", form), DeviceAuthorizationResponse)
    except (Unavailable, TooMany, Unusable):
        raise
    except (RemudaError, msgspec.MsgspecError, UnicodeDecodeError):
        message = f"{identity} is not the identity service of Remuda: give the address that remuda up prints."
        raise Unusable(message) from None
    announce(begun)
    return await _poll(connections, identity, begun, sleep)


async def _poll(
    connections: Connections,
    identity: str,
    begun: DeviceAuthorizationResponse,
    sleep: Callable[[float], Awaitable[None]],
) -> LoginTokens:
    form = {"grant_type": _DEVICE_GRANT, "client_id": CLIENT, "device_code": begun.device_code}
    interval_s, waited_s = begun.interval, 0.0
    while waited_s < begun.expires_in:
        await sleep(interval_s)
        waited_s += interval_s
        try:
            return await _tokens(connections, identity, form)
        except RemudaError as error:
            match getattr(error, "error", ""):
                case "authorization_pending":
                    continue
                case "slow_down":
                    interval_s += _SLOW_DOWN_S
                case "access_denied":
                    raise Unauthenticated("The login was denied in the browser: nothing has changed here.") from None
                case _:
                    break
    raise Unusable("The code expired before it was confirmed: run remuda login again.")


async def _tokens(connections: Connections, identity: str, form: Mapping[str, str]) -> LoginTokens:
    content = await _post(connections, identity, "token", form)
    try:
        response = _decoded(content, _TokenResponse)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ServerUnreachable(identity, "its response has no token") from None
    return LoginTokens(access=response.access_token, refresh=response.refresh_token)


async def _post(connections: Connections, identity: str, endpoint: str, form: Mapping[str, str]) -> bytes:
    transport, path = connections.at(identity)
    request = OutboundRequest(
        name=endpoint,
        method="POST",
        target=f"{path}/oauth2/v2/{endpoint}",
        body=urlencode(form).encode(),
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    return (await transport.exchange(request)).content


def _decoded(content: bytes, response_type: type[ResponseT]) -> ResponseT:
    return msgspec.json.decode(content, type=response_type, dec_hook=hide)
