"""Ids: UUID texts that start with a letter.

An id is also an object's name, and a Kubernetes name that serves as a DNS label has to start with a letter. Ten of the
sixteen hexadecimal digits are not letters: a random id spreads its first byte over the letters, and a derived id is
derived again until its first digit is a letter. A derived id depends only on its namespace and name, so that every
process computes the same one.
"""

import hashlib
import re
from functools import lru_cache
from uuid import UUID

from remuda.kernel.randomness import Randomness

_FIRST_LETTER = 0xA0  # the smallest first byte whose first digit is a letter
_ID = re.compile(r"[a-f][0-9a-f]{7}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def random_id(randomness: Randomness) -> str:
    """Return a new UUIDv4 that starts with a letter."""
    raw = bytearray(randomness.token_bytes(16))
    raw[0] = _FIRST_LETTER + raw[0] * (256 - _FIRST_LETTER) // 256
    return _text(raw, "4")


@lru_cache(maxsize=4096)
def derived_id(namespace: str, name: str) -> str:
    """Return the UUIDv5 of the name, derived again from its own bytes until it starts with a letter."""
    space = UUID(namespace).bytes
    derived = _version_5(space, name.encode())
    while derived[0] < _FIRST_LETTER:
        derived = _version_5(space, derived)
    return _text(derived, "5")


def is_id(text: str) -> bool:
    """Return whether the text is a lower-case UUID of any version that starts with a letter."""
    return _ID.fullmatch(text) is not None


def _version_5(space: bytes, name: bytes) -> bytes:
    # uuid.uuid5 accepts only text before Python 3.12, and deriving again needs bytes.
    raw = bytearray(hashlib.sha1(space + name, usedforsecurity=False).digest()[:16])
    raw[6] = raw[6] & 0x0F | 0x50
    raw[8] = raw[8] & 0x3F | 0x80
    return bytes(raw)


def _text(raw: bytes | bytearray, version: str) -> str:
    """Return bytes as the text of a UUID of this version, five times faster than `uuid.UUID` does."""
    digits = raw.hex()
    variant = "89ab"[raw[8] >> 4 & 3]
    return f"{digits[:8]}-{digits[8:12]}-{version}{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
