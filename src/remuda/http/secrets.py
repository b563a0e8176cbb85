"""Secrets on the wire: text in a body or an answer, and never anywhere else.

msgspec knows no such type, so these are its hooks, the same for requests and answers, server and client.
"""

from typing import Any

from remuda.kernel.secrets import Secret


def reveal(value: Any) -> str:
    """Return a secret as text, for an encoder that may send it."""
    if isinstance(value, Secret):
        return value.reveal()
    raise TypeError(f"a {type(value).__name__} cannot be sent")


def hide(kind: type, value: Any) -> Any:
    """Return text as a secret, for a decoder."""
    if kind is Secret and isinstance(value, str):
        return Secret(value)
    raise TypeError(f"a {kind.__name__} cannot be read")
