"""What a service refuses, told to whoever sits at a terminal: its sentence, and what to do about it.

Some sentences are words that existing clients of the API know, and have no remedy of their own; and some have one for
whoever speaks to the API, which commands call otherwise.
"""

from collections.abc import Mapping

import httpx2

from remuda.cli.client.pointing import in_options
from remuda.http.transport import error_from
from remuda.kernel.errors import Malformed, RemudaError

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
    "is not what If-Match says: read it again, then decide": (
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
        error.sentence = in_options(error.problems, answer.request.content) or _with_others(error)
    for words, command in _COMMANDS.items():
        error.sentence = error.sentence.replace(words, command)
    error.sentence = _whole(_with_remedy(error.sentence, _REMEDIES))
    return error


def _with_others(error: Malformed) -> str:
    """Return the sentence of an error with the problems that it does not name."""
    more = [f"{pointer} {reason}" for pointer, reason in error.problems if pointer not in error.sentence]
    return f"{error.sentence} ({'; '.join(more)})" if more else error.sentence


def _whole(sentence: str) -> str:
    """Return words that existing clients of the API know as a sentence."""
    begun = sentence[:1].upper() + sentence[1:]
    return begun if begun.endswith((".", "?", "!")) else f"{begun}."


def _with_remedy(sentence: str, remedies: Mapping[str, str]) -> str:
    for piece, remedy in remedies.items():
        if piece in sentence and remedy not in sentence:
            return f"{sentence.rstrip('.')}: {remedy}."
    return sentence
