"""Secret: a text that is not shown by accident, and the hooks with which msgspec reads and writes it.

Tokens and private keys are passed around as a Secret. Printing, formatting, logging, pickling or encoding it does not
show the value. Only ``reveal()`` returns it, so every use can be found by searching for that word.

The hooks are for request and response bodies, on the server and in clients.
"""

import hmac
from typing import Any, NoReturn


class Secret:
    """A secret text: immutable, compared in constant time, and hidden unless revealed."""

    __slots__ = ("_value",)
    _value: str

    def __init__(self, value: str) -> None:
        object.__setattr__(self, "_value", value)

    def reveal(self) -> str:
        """Return the text. The caller keeps it no longer than it is used."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    def __format__(self, format_spec: str) -> str:
        return repr(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._bytes(), other._bytes())

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("A Secret cannot be changed: create a new one.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("A Secret cannot be changed: create a new one.")

    def __reduce__(self) -> NoReturn:
        raise TypeError("A Secret cannot be pickled or copied: seal it, or pass the same object on.")

    def _bytes(self) -> bytes:
        # A lone surrogate must not raise here: the encoding error would carry the whole text.
        return self._value.encode("utf-8", "surrogatepass")


def reveal(value: Any) -> str:
    """Return a secret as text, for an encoder of a body that may contain it."""
    if isinstance(value, Secret):
        return value.reveal()
    raise TypeError(f"a {type(value).__name__} cannot be sent")


def hide(kind: type, value: Any) -> Any:
    """Return text as a secret, for a decoder."""
    if kind is Secret and isinstance(value, str):
        return Secret(value)
    raise TypeError(f"a {kind.__name__} cannot be read")
