"""Ids: UUID text that starts with a letter.

An id doubles as an object's name, and a Kubernetes name that also serves as a DNS label has to begin with a letter. Ten
of the sixteen possible first digits are no letters: a random id spreads its first byte over the letters, and a derived
one is derived again until a letter comes up. A derived id is for things that must get the same id whoever computes it:
it depends on its namespace and name alone.
"""

import hashlib
import re
from functools import lru_cache
from uuid import UUID

from remuda.kernel.randomness import Randomness

_FIRST_LETTER = 0xA0  # the least first byte whose first digit is a letter
_ID = re.compile(r"[a-f][0-9a-f]{7}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def random_id(randomness: Randomness) -> str:
    """Return a fresh UUIDv4 that starts with a letter."""
    drawn = bytearray(randomness.token_bytes(16))
    drawn[0] = _FIRST_LETTER + drawn[0] * (256 - _FIRST_LETTER) // 256
    return _text(drawn, "4")


@lru_cache(maxsize=4096)
def derived_id(namespace: str, name: str) -> str:
    """Return the UUIDv5 of the name, derived again from its own bytes until it starts with a letter.

    Remembered, because whatever looks after a new object derives the same few ids again.
    """
    space = UUID(namespace).bytes
    derived = _version_5(space, name.encode())
    while derived[0] < _FIRST_LETTER:
        derived = _version_5(space, derived)
    return _text(derived, "5")


def is_id(text: str) -> bool:
    """Tell whether the text is a lower-case UUID that starts with a letter, whichever its UUID version."""
    return _ID.fullmatch(text) is not None


def _version_5(space: bytes, name: bytes) -> bytes:
    # uuid.uuid5 takes only text before Python 3.12, and deriving again needs raw bytes.
    drawn = bytearray(hashlib.sha1(space + name, usedforsecurity=False).digest()[:16])
    drawn[6] = drawn[6] & 0x0F | 0x50
    drawn[8] = drawn[8] & 0x3F | 0x80
    return bytes(drawn)


def _text(drawn: bytes | bytearray, version: str) -> str:
    """Return bytes as the text of a UUID of this version, in a fifth of the time that the class for it takes."""
    digits = drawn.hex()
    variant = "89ab"[drawn[8] >> 4 & 3]
    return f"{digits[:8]}-{digits[8:12]}-{version}{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
