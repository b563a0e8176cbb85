"""One JSON text for one value.

The order in which a mapping was filled leaves no trace: keys are sorted, nothing is padded, text is UTF-8. That makes
the bytes fit for comparing and for hashing. What JSON cannot say is refused rather than blurred: a number that is not
finite raises Invalid, a key that is no text TypeError.

Bytes as text that fits a URL: base64url without padding (RFC 4648).

Each sequence of bytes has one text, and only that is read back: padding, other letters, blanks and unused bits at the
end are refused. So nobody can write one secret, or one signed header, in two ways.
"""

import base64
import binascii
import hashlib
import math
from typing import Any

import msgspec

from remuda.kernel.errors import Invalid

_UNLIKE = "not base64url without padding"


def encode(raw: bytes) -> str:
    """Return bytes as text."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(text: str | bytes) -> bytes:
    """Return the bytes whose text this is, or raise ValueError, which does not quote it."""
    written = text if isinstance(text, bytes) else text.encode("ascii", "replace")
    try:
        raw = base64.urlsafe_b64decode(written + b"=" * (-len(written) % 4))
    except binascii.Error:
        raise ValueError(_UNLIKE) from None
    if encode(raw).encode() != written:
        raise ValueError(_UNLIKE)
    return raw


def canonical_json(value: Any) -> bytes:
    """Return the canonical JSON of a value made of builtins and msgspec structs."""
    encoded = msgspec.json.encode(value, order="sorted")
    # msgspec writes NaN and infinities as null, so only a text with a null in it can hide one.
    if b"null" in encoded and _holds_infinite(msgspec.to_builtins(value)):
        raise Invalid("value", "holds a number that is not finite", remedy="use finite numbers, or leave it out")
    return encoded


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def _holds_infinite(value: Any) -> bool:
    match value:
        case float():
            return not math.isfinite(value)
        case dict():
            return any(map(_holds_infinite, value.values()))
        case list() | tuple() | set() | frozenset():
            return any(map(_holds_infinite, value))
        case _:
            return False
