"""What a service refuses, told to whoever sits at a terminal: its sentence, and what to do about it.

Some sentences are words that existing clients of the API know, and have no remedy of their own.
"""

from collections.abc import Mapping

import httpx2

from remuda.http.refusals import error_from
from remuda.kernel.errors import Malformed, RemudaError

__all__ = ["refusal"]

_REMEDIES = {
    "operation is not allowed by rbac": "ask an administrator of the organization for that right",
    "would exceed quota limit": "remuda quota show says what is used, and an administrator can raise it",
    "resource not found": "check the name, and with remuda context list as whom you ask",
    "is in use": "delete first what uses it",
    "in its current state": "see with show what state that is",
}
"""What to do, by a piece of what is told."""


def refusal(answer: httpx2.Response, url: str) -> RemudaError:
    """Return the error that an answer tells."""
    error = error_from(answer.status_code, answer.headers, answer.content, server=url)
    if isinstance(error, Malformed):
        more = [f"{pointer} {reason}" for pointer, reason in error.problems if pointer not in error.sentence]
        error.sentence += f" ({'; '.join(more)})" if more else ""
    error.sentence = _with_remedy(error.sentence, _REMEDIES)
    return error


def _with_remedy(sentence: str, remedies: Mapping[str, str]) -> str:
    for piece, remedy in remedies.items():
        if piece in sentence and remedy not in sentence:
            return f"{sentence.rstrip('.')}: {remedy}."
    return sentence
