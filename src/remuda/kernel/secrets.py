"""A text that does not slip out.

Tokens and private keys travel through the program as a Secret. Whatever prints, formats, logs, pickles or encodes one
sees no value: only an explicit ``reveal()`` gives it, so every place that does can be found by searching for the word.

Secrets on the wire: text in a body or an answer, and never anywhere else.

msgspec knows no such type, so these are its hooks, the same for requests and answers, server and client.
"""

import hmac
from typing import Any, NoReturn


class Secret:
    """One secret text: immutable, comparable in constant time, and mute unless revealed."""

    __slots__ = ("_value",)
    _value: str

    def __init__(self, value: str) -> None:
        object.__setattr__(self, "_value", value)

    def reveal(self) -> str:
        """Return the text itself; keep it no longer than its use."""
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
        raise AttributeError("A Secret cannot be changed: make a new one.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("A Secret cannot be changed: make a new one.")

    def __reduce__(self) -> NoReturn:
        raise TypeError("A Secret cannot be pickled or copied: seal it, or pass the same object on.")

    def _bytes(self) -> bytes:
        # A lone surrogate must not raise here: the encoding error would carry the whole text.
        return self._value.encode("utf-8", "surrogatepass")


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
