"""Encodings with exactly one text per value: canonical JSON, and base64url without padding (RFC 4648).

Canonical JSON sorts keys, pads nothing and is UTF-8. A number that is not finite raises Invalid, a key that is not a
string TypeError. Decoding base64url rejects padding, other characters, blanks and unused bits at the end.
"""

import base64
import binascii
import hashlib
import math
from typing import Any

import msgspec

from remuda.kernel.errors import Invalid

_NOT_BASE64URL = "not base64url without padding"


def to_base64url(raw: bytes) -> str:
    """Return bytes as base64url."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def fingerprint(certificate: bytes) -> str:
    """Return the SHA-256 fingerprint of a certificate (DER), as OpenSSL and browsers show it."""
    return hashlib.sha256(certificate).digest().hex(":").upper()


def from_base64url(text: str | bytes) -> bytes:
    """Return the bytes of a base64url text, or raise ValueError. The error does not quote the text."""
    encoded_text = text if isinstance(text, bytes) else text.encode("ascii", "replace")
    try:
        raw = base64.urlsafe_b64decode(encoded_text + b"=" * (-len(encoded_text) % 4))
    except binascii.Error:
        raise ValueError(_NOT_BASE64URL) from None
    if to_base64url(raw).encode() != encoded_text:
        raise ValueError(_NOT_BASE64URL)
    return raw


def canonical_json(value: Any) -> bytes:
    """Return the canonical JSON of a value made of builtins and msgspec structs."""
    encoded = msgspec.json.encode(value, order="sorted")
    # msgspec writes NaN and infinities as null, so only a text with a null in it can hide one.
    if b"null" in encoded and _has_infinite(msgspec.to_builtins(value)):
        raise Invalid("value", "contains a number that is not finite", remedy="use finite numbers, or leave it out")
    return encoded


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def _has_infinite(value: Any) -> bool:
    match value:
        case float():
            return not math.isfinite(value)
        case dict():
            return any(map(_has_infinite, value.values()))
        case list() | tuple() | set() | frozenset():
            return any(map(_has_infinite, value))
        case _:
            return False
