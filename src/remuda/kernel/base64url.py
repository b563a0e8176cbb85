"""Bytes as text that fits a URL: base64url without padding (RFC 4648).

Each sequence of bytes has one text, and only that is read back: padding, other letters, blanks and unused bits at the
end are refused. So nobody can write one secret, or one signed header, in two ways.
"""

import base64
import binascii

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
