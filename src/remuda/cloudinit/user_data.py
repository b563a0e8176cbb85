"""User data: its parts, in a single payload or a multipart message, plain or gzipped, and its validation.

The type of a part is that of its header, or of its first line if the header only says that it is text, as in
cloud-init. In the API and the store user data is base64, and no error quotes it, because it often contains secrets. If
its content is base64 again, as the reference's Terraform provider sent it until 1.4.0, the inner data is used; it is
stored and shown as it was sent.
"""

import base64
import zlib
from typing import NamedTuple

from remuda.cloudinit.multipart import (
    DEEPEST,
    UnrecognizedUserData,
    content_type_of,
    leaves,
    looks_like_headers,
    read_message,
    unsupported,
)
from remuda.kernel.errors import Invalid, Malformed

MAX_UNPACKED = 1024 * 1024
"""Largest size of decompressed user data in bytes."""
MAX_LINES = 20_000
"""Largest number of lines of decompressed user data."""

_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = zlib.MAX_WBITS | 16
_UNTRUSTED_TYPES = ("text/plain", "text/x-not-multipart", "text/x-shellscript")
"""Types for which cloud-init does not trust the header: users label anything a shell script."""


class Part(NamedTuple):
    """One part of user data; a payload outside a message has no filename."""

    content_type: str
    filename: str | None
    content: bytes


def is_gzip(data: bytes) -> bool:
    return data.startswith(_GZIP)


def parts(data: bytes, *, deepest: int = DEEPEST) -> list[Part]:
    """Return the parts of user data in order, none if it is empty, or raise UnrecognizedUserData."""
    if not data:
        return []
    payload = _unpacked(data) if is_gzip(data) else data
    if payload.count(b"\n") > MAX_LINES:
        raise UnrecognizedUserData(f"userData has more than {MAX_LINES} lines")
    declared = content_type_of(payload)
    if declared is not None:
        return [Part(declared, None, payload)]
    if not looks_like_headers(payload):
        raise unsupported()
    _, split = read_message(payload)
    return [
        Part(_effective(part.content_type, content), part.filename, content) for part, content in leaves(split, deepest)
    ]


def _effective(declared: str, content: bytes) -> str:
    return (content_type_of(content) if declared in _UNTRUSTED_TYPES else None) or declared


def _unpacked(data: bytes) -> bytes:
    decompressor = zlib.decompressobj(_GZIP_WINDOW)
    try:
        content = decompressor.decompress(data, MAX_UNPACKED + 1)
    except zlib.error:
        raise UnrecognizedUserData("gzip userData cannot be unpacked") from None
    if len(content) > MAX_UNPACKED:
        raise UnrecognizedUserData(f"gzip userData has more than {MAX_UNPACKED} bytes when it is unpacked")
    if not decompressor.eof or decompressor.unused_data:
        raise UnrecognizedUserData("gzip userData cannot be unpacked")
    return content


MAX_USER_DATA = 64 * 1024
"""Largest size of user data in bytes."""


def read_user_data(text: str) -> bytes:
    """Return user data as bytes, or raise Malformed, which quotes nothing of it."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:  # also for text beyond ASCII
        raise Malformed("spec.userData is not base64: encode it with the standard alphabet and padding") from None
    try:
        inner = base64.b64decode(data, validate=True)
        parts(inner)
    except (ValueError, UnrecognizedUserData):  # the usual case: data for cloud-init is not base64 itself
        return data
    return inner


def check_user_data(data: bytes, *, with_authority: bool) -> None:
    """Raise Invalid unless a server can be created with this user data; an SSH authority excludes gzip."""
    if len(data) > MAX_USER_DATA:
        raise Invalid(
            "userData",
            f"is longer than {MAX_USER_DATA} bytes",
            remedy="send less, for example an #include of a long part",
        )
    if with_authority and is_gzip(data):
        raise _unrecognized("gzip userData cannot be combined with managed cloud-init augmentation")
    try:
        parts(data, deepest=DEEPEST - 1)  # one level is left for the message that we may wrap around it
    except UnrecognizedUserData as error:
        raise _unrecognized(error.reason) from None


def _unrecognized(reason: str) -> Invalid:
    return Invalid("spec.userData", f"userData must be a recognized cloud-init format: {reason}")
