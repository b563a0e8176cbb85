"""What a service refuses, told to whoever sits at a terminal: its sentence, and what to do about it.

Some sentences are words that existing clients of the API know, and have no remedy of their own; and some have one for
whoever speaks to the API, which commands call otherwise.

Connections to a Remuda. Whom to trust is what this machine trusts, or what SSL_CERT_FILE says.

Waiting, as a command does: nobody else's work stands still meanwhile.

Which argument of a command a fault of a request's body comes from: commands have no JSON pointers.
"""

import re
import ssl
import time
from collections.abc import Iterable, Mapping, Sequence

import httpx2
import msgspec

from remuda.http.remote_errors import error_from
from remuda.kernel.errors import Malformed, RemudaError

_PATIENCE = httpx2.Timeout(40.0, connect=5.0)
"""A stream is never silent for longer than 15 s, and an answer takes no longer than 30."""


def connected(urls: Iterable[str]) -> httpx2.Client:
    """Return what asks these servers."""
    is_encrypted = any(url.startswith("https:") for url in urls)
    trust = ssl.create_default_context() if is_encrypted else _nobody()
    return httpx2.Client(timeout=_PATIENCE, verify=trust, trust_env=False)


def _nobody() -> ssl.SSLContext:
    """Trust nobody: where nothing is encrypted, reading whom to trust would take longer than most requests."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def pause(seconds: float) -> None:
    """Do nothing for a while."""
    time.sleep(seconds)  # noqa: TID251  a command is a process by itself, on the machine's own time


_NAME = "/metadata/name"
_OPTIONS: Mapping[str, str] = {
    "/metadata/description": "--description",
    "/metadata/tags": "--tag",
    "/metadata/tags/[0-9]+/name": "The name of a --tag",
    "/metadata/tags/[0-9]+/value": "The value of a --tag",
    "/spec/rules(/.*)?": "--allow",
    "/spec/dnsNameservers(/.*)?": "--dns",
    "/spec/networking/securityGroups(/.*)?": "--security-group",
    "/spec/networking/allowedSourceAddresses(/.*)?": "--source",
    "/spec/userData": "--user-data",
    "/spec/publicKey": "--key",
    "/spec/uri": "--url",
    "/spec/os/distro": "--distro",
    "/spec/os/family": "--family",
    "/spec/os/version": "--release",
}


def in_options(problems: Sequence[tuple[str, str]], body: bytes) -> str:
    """Return what is wrong with a body in words of the command line, or nothing if that has none for all of it."""
    told = [_about_name(body) if pointer == _NAME else _told(pointer, reason) for pointer, reason in problems]
    return "; ".join(dict.fromkeys(told)) if all(told) else ""


def _about_name(body: bytes) -> str:
    name = msgspec.json.decode(body)["metadata"]["name"]
    return (
        f"NAME {name!r} cannot be: write 1 to 63 letters, digits, '_', '.' and '-', beginning and ending with a letter "
        "or digit"
    )


def _told(pointer: str, reason: str) -> str:
    option = next((option for form, option in _OPTIONS.items() if re.fullmatch(form, pointer)), "")
    return f"{option} {reason}" if option else ""


_REMEDIES = {
    "operation 'update' on endpoint 'identity:quotas'": "whoever runs the platform can do that, so ask them",
    "operation is not allowed by rbac": "ask an administrator of the organization for that right",
    "project quota limit of": (
        "remuda quota show --of project says what is used, and an administrator of the organization can raise it"
    ),
    "quota limit of": "remuda quota show says what is used, and whoever runs the platform can raise it",
    "is not compatible with flavor architecture": "choose a flavor and an image of one architecture, as show says it",
    "is too small for an image of": "choose a flavor with a larger disk, or a smaller image",
    "resource not found": "check the name, and with remuda context list as whom you ask",
    "security group is in use": (
        "take it away with remuda instance update INSTANCE --no-security-group, or name with --security-group those "
        "that stay"
    ),
    "SSH certificate authority is in use": "take it away with remuda instance update INSTANCE --ssh-ca ''",
    "is in use and": "delete first what uses it",
    "in its current state": "see with show what state that is",
}
"""What to do, by a piece of what is told; of several, the first."""
_COMMANDS = {
    "does not match If-Match: read it again, then decide": (
        "is not what it was any more, and nothing was done: look at it again, then decide"
    ),
    "set spec.protection.deletion to false, then delete it": (
        "lift that with remuda instance update --no-protect-deletion, then delete it"
    ),
}
"""What commands call it, by what the API does."""


def refusal(answer: httpx2.Response, url: str) -> RemudaError:
    """Return the error that an answer tells."""
    error = error_from(answer.status_code, answer.headers, answer.content, server=url)
    if isinstance(error, Malformed):
        error.message = in_options(error.problems, answer.request.content) or _with_others(error)
    for words, command in _COMMANDS.items():
        error.message = error.message.replace(words, command)
    error.message = _whole(_with_remedy(error.message, _REMEDIES))
    return error


def _with_others(error: Malformed) -> str:
    """Return the sentence of an error with the problems that it does not name."""
    more = [f"{pointer} {reason}" for pointer, reason in error.problems if pointer not in error.message]
    return f"{error.message} ({'; '.join(more)})" if more else error.message


def _whole(sentence: str) -> str:
    """Return words that existing clients of the API know as a sentence."""
    begun = sentence[:1].upper() + sentence[1:]
    return begun if begun.endswith((".", "?", "!")) else f"{begun}."


def _with_remedy(sentence: str, remedies: Mapping[str, str]) -> str:
    for piece, remedy in remedies.items():
        if piece in sentence and remedy not in sentence:
            return f"{sentence.rstrip('.')}: {remedy}."
    return sentence
