"""Connections to the servers of a login, and API errors in terms of the command line.

Requests go through the HTTP client core, `http.transport`. Certificates are verified by what the machine trusts, or by
SSL_CERT_FILE, unless the login has pinned one. An error keeps the server's message, with the option concerned and a
remedy: messages of the reference contract have none, and some remedies of the API are called differently in the CLI.
"""

import re
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from remuda.cli.client.pins import explained_trust, pinned_context
from remuda.http.transport import ClientSettings, HttpTransport, OutboundRequest
from remuda.kernel.clock import Clock, SystemClock
from remuda.kernel.errors import Malformed, NotFound, PreconditionFailed, RemudaError, ServerUnreachable, Unusable
from remuda.kernel.randomness import SystemRandomness

if TYPE_CHECKING:
    import httpx2

    from remuda.access.principal import Context
    from remuda.http.sse import Received

_SETTINGS = ClientSettings(read_s=40.0, silence_s=40.0, attempts=3, first_pause_s=0.2, longest_pause_s=1.0)


class _NoCredentials:
    """Credentials of a transport whose requests bring their own."""

    def headers(self, context: "Context | None") -> Mapping[str, str]:  # noqa: ARG002  there are none
        return {}


class _Transport(HttpTransport):
    """Connections to one server, whose errors about its certificate are those of the command line."""

    is_pinned = False

    async def exchange(self, request: OutboundRequest) -> "httpx2.Response":
        try:
            return await super().exchange(request)
        except ServerUnreachable as error:
            raise explained_trust(error, is_pinned=self.is_pinned) from None

    async def events(
        self, request: OutboundRequest, since: str | None, on_message: Callable[[], None] | None = None
    ) -> "AsyncGenerator[Received | RemudaError]":
        async with aclosing(super().events(request, since, on_message)) as events:
            async for event in events:
                if isinstance(event, ServerUnreachable):
                    yield explained_trust(event, is_pinned=self.is_pinned)
                else:
                    yield event


class Connections(AbstractAsyncContextManager["Connections"]):
    """Transports to the servers of a login, one for each origin. Use it as a context manager."""

    def __init__(
        self, clock: Clock | None = None, settings: ClientSettings = _SETTINGS, *, certificate: str = ""
    ) -> None:
        """Take the only certificate to trust, as PEM; without one, those of the authorities of this machine."""
        self.clock, self._settings, self._certificate = clock or SystemClock(), settings, certificate
        self._transports: dict[str, _Transport] = {}

    async def __aexit__(self, *_: object) -> None:
        for transport in self._transports.values():
            await transport.close()

    def at(self, url: str) -> tuple[HttpTransport, str]:
        """Return the transport to the server of a URL, and the path of the URL."""
        origin, path = _split(url)
        if origin not in self._transports:
            self._transports[origin] = _Transport(
                origin,
                credentials=_NoCredentials(),
                clock=self.clock,
                randomness=SystemRandomness(),
                settings=self._settings,
                tls=_tls(origin, self._certificate),
            )
            self._transports[origin].is_pinned = bool(self._certificate)
        return self._transports[origin], path


def _split(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise Unusable(f"{url} is not a valid address: give one such as http://127.0.0.1:8080.")
    return f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")


def _tls(origin: str, certificate: str) -> ssl.SSLContext:
    """Return TLS settings; without https, none are loaded, because that takes longer than most requests."""
    if not origin.startswith("https:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return pinned_context(certificate) if certificate else ssl.create_default_context()


_NAME = "/metadata/name"
_OPTIONS: Mapping[str, str] = {
    "/metadata/tags": "--tag",
    "/metadata/tags/[0-9]+/name": "The name of a --tag",
    "/metadata/tags/[0-9]+/value": "The value of a --tag",
    "/spec/rules(/.*)?": "--allow",
    "/spec/dnsNameservers(/.*)?": "--dns",
    "/spec/networking/securityGroups(/.*)?": "--security-group",
    "/spec/networking/allowedSourceAddresses(/.*)?": "--source",
    "/spec/publicKey": "--key",
    "/spec/uri": "--url",
    "/spec/os/distro": "--distro",
    "/spec/os/family": "--family",
    "/spec/os/version": "--release",
    "/spec/organizationIDs(/.*)?": "--visible-to",
}
"""Options by the JSON pointer of the value that they set in a request, if they have another name than the value."""
_SAME_NAME = re.compile(r"/(?:metadata|spec)/(?!\w*Id$)(\w+)")
"""The pointer of a value whose option has its name. An id was looked up, so no option sets it as it is."""
_CHANGED = "The resource was changed in the meantime, and nothing was done: show it again, then decide."
_NOT_FOUND = "check the name, and the login with remuda context list"
REMEDIES: Mapping[str, str] = {
    "operation 'update' on endpoint 'identity:quotas'": "ask the operator of the platform",
    "no global-scope permissions": "ask a platform administrator",
    "operation is not allowed by rbac": "ask an administrator of the organization for this permission",
    "project quota limit of": (
        "remuda quota show --scope project shows the usage, and an administrator of the organization can raise the "
        "limit"
    ),
    "quota limit of": "remuda quota show shows the usage, and the operator of the platform can raise the limit",
    "is not compatible with flavor architecture": "choose a flavor and an image of the same architecture",
    "is too small for an image of": "choose a flavor with a larger disk, or a smaller image",
    "security group is in use": (
        "remove it with remuda instance update INSTANCE --no-security-group, or name the groups to keep with "
        "--security-group"
    ),
    "SSH certificate authority is in use": "remove it with remuda instance update INSTANCE --ssh-ca ''",
    "is in use and": "delete first what uses it",
    "in its current state": "see its state with show",
}
"""Remedies by a part of the message, for errors of one code that have several causes; the first match counts.

A test ties each part to the code that says it.
"""
COMMANDS: Mapping[str, str] = {
    "set spec.protection.deletion to false, then delete it": (
        "remove the protection with remuda instance update --no-protect-deletion, then delete it"
    )
}
"""Remedies of the API, and the commands for them. The test ties these, too."""


def explained(error: RemudaError, body: bytes | None) -> RemudaError:
    """Return the error of a request with a message for the user of a command."""
    message = error.message
    match error:
        case Malformed():
            message = _in_options(error.problems, body or b"null") or _with_all_problems(error)
        case PreconditionFailed():
            message = _CHANGED
        case NotFound():
            message = _with_remedy(message, _NOT_FOUND)
    for words, command in COMMANDS.items():
        message = message.replace(words, command)
    remedy = next((remedy for part, remedy in REMEDIES.items() if part in message), "")
    error.message = _capitalized(_with_remedy(message, remedy))
    return error


def _in_options(problems: Sequence[tuple[str, str]], body: bytes) -> str:
    """Return the problems of a body with the options that caused them, or nothing if one has no option."""
    found = [_name_problem(body) if pointer == _NAME else _problem(pointer, reason) for pointer, reason in problems]
    return "; ".join(dict.fromkeys(found)) if all(found) else ""


def _name_problem(body: bytes) -> str:
    name = msgspec.json.decode(body)["metadata"]["name"]
    return (
        f"NAME {name!r} is not valid: use 1 to 63 letters, digits, '_', '.' and '-', beginning and ending with a "
        "letter or digit"
    )


def _problem(pointer: str, reason: str) -> str:
    option = option_of(pointer)
    return f"{option} {reason}" if option else ""


def option_of(pointer: str) -> str:
    """Return the option that sets the value at a JSON pointer of a request, or an empty string."""
    for form, option in _OPTIONS.items():
        if re.fullmatch(form, pointer):
            return option
    same = _SAME_NAME.fullmatch(pointer)
    return "" if same is None else "--" + re.sub("[A-Z]+", lambda capital: f"-{capital[0].lower()}", same[1])


def _with_all_problems(error: Malformed) -> str:
    more = [f"{pointer} {reason}" for pointer, reason in error.problems if pointer not in error.message]
    return f"{error.message} ({'; '.join(more)})" if more else error.message


def _with_remedy(message: str, remedy: str) -> str:
    return message if remedy in message else f"{message.rstrip('.')}: {remedy}."


def _capitalized(message: str) -> str:
    """Return a message with an initial capital and a full stop."""
    capitalized = message[:1].upper() + message[1:]
    return capitalized if capitalized.endswith((".", "?", "!")) else f"{capitalized}."
