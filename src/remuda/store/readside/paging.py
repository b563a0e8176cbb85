"""Continue tokens: where a list stopped, and the version of its first page."""

import base64
import binascii

import msgspec

from remuda.kernel.errors import Invalid


class Position(msgspec.Struct, frozen=True, array_like=True):
    """How far a list has come."""

    version: int
    after: str


def write_token(position: Position) -> str:
    """Return the opaque text for a position."""
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")


def read_token(token: str) -> Position:
    """Return the position, or raise Invalid if the text is not one of ours."""
    try:
        padded = token + "=" * (-len(token) % 4)
        return msgspec.json.decode(base64.urlsafe_b64decode(padded), type=Position)
    except (binascii.Error, ValueError):
        raise Invalid("continue", "is not a token of this list", remedy="start again without it") from None
