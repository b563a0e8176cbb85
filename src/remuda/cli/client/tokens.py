"""What identity gives to somebody who logs in, how it is renewed, and how it ends."""

import re
from collections.abc import Mapping

import httpx2

from remuda.cli.client.contexts import Tokens
from remuda.kernel.errors import Unauthenticated, Unavailable
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
