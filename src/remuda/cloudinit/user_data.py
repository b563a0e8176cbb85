"""The parts of user data, whatever it is wrapped in: one payload, a multipart message, or either of them in gzip.

What a part is comes from its own header where that says something, and from its first line where it says only that it
is text, as cloud-init decides it. Unpacking stops at a limit, so that a few bytes cannot become a machine's memory.

Whether user data is something that cloud-init will apply.

On the wire and in the store it is base64; what is checked is the bytes. It often holds secrets, so no refusal repeats
any of it. A client that was told base64 by its own user encodes that again, as the reference's Terraform provider did
until 1.4.0: no cloud-init applies base64, so what it stands for is meant. It is stored and shown as it was sent.
"""

import base64
import zlib
from typing import NamedTuple

from remuda.cloudinit.multipart import (
    DEEPEST,
    Unrecognized,
    content_type_of,
    leaves,
    looks_like_headers,
    read_message,
    unsupported,
)
from remuda.kernel.errors import Invalid, Malformed

LONGEST_UNPACKED = 1024 * 1024
"""How many bytes packed user data may have when it is unpacked."""

_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = zlib.MAX_WBITS | 16
_UNTOLD = ("text/plain", "text/x-not-multipart", "text/x-shellscript")
"""What cloud-init does not take a header's word for: people label anything a shell script."""


class Part(NamedTuple):
    """One part of user data; a payload that is no message has no filename."""

    content_type: str
    filename: str | None
    content: bytes


def is_gzip(data: bytes) -> bool:
    """Tell whether user data is packed."""
    return data.startswith(_GZIP)


def parts(data: bytes, *, deepest: int = DEEPEST) -> list[Part]:
    """Return the parts of user data in order, none where there is no user data, or raise Unrecognized."""
    if not data:
        return []
    payload = _unpacked(data) if is_gzip(data) else data
    told = content_type_of(payload)
    if told is not None:
        return [Part(told, None, payload)]
    if not looks_like_headers(payload):
        raise unsupported()
    _, split = read_message(payload)
    return [
        Part(_effective(part.headers.get_content_type(), content), part.headers.get_filename(), content)
        for part, content in leaves(split, deepest)
    ]


def _effective(told: str, content: bytes) -> str:
    return (content_type_of(content) if told in _UNTOLD else None) or told


def _unpacked(data: bytes) -> bytes:
    unpacking = zlib.decompressobj(_GZIP_WINDOW)
    try:
        content = unpacking.decompress(data, LONGEST_UNPACKED + 1)
    except zlib.error:
        raise Unrecognized("gzip userData cannot be unpacked") from None
    if len(content) > LONGEST_UNPACKED:
        raise Unrecognized(f"gzip userData has more than {LONGEST_UNPACKED} bytes when it is unpacked")
    if not unpacking.eof or unpacking.unused_data:
        raise Unrecognized("gzip userData cannot be unpacked")
    return content


LONGEST_USER_DATA = 64 * 1024
"""How many bytes user data may have."""


def read_user_data(text: str) -> bytes:
    """Return user data as bytes, or raise Malformed; what it says is never repeated."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:  # text beyond ASCII too
        raise Malformed("spec.userData is not base64: encode it with the standard alphabet and padding") from None
    try:
        meant = base64.b64decode(data, validate=True)
        parts(meant)
    except (ValueError, Unrecognized):  # nearly always: what cloud-init applies is never base64 throughout
        return data
    return meant


def check_user_data(data: bytes, *, with_authority: bool) -> None:
    """Raise Invalid unless a server can be made with this user data; empty is fine.

    With an SSH certificate authority we add a part of our own, which packed user data leaves no place for.
    """
    if len(data) > LONGEST_USER_DATA:
        raise Invalid(
            "userData",
            f"is longer than {LONGEST_USER_DATA} bytes",
            remedy="send less, for example an #include of what is too long",
        )
    if with_authority and is_gzip(data):
        raise _unrecognized("gzip userData cannot be combined with managed cloud-init augmentation")
    try:
        parts(data, deepest=DEEPEST - 1)  # one level is left for the message that ours may make around it
    except Unrecognized as error:
        raise _unrecognized(error.reason) from None


def _unrecognized(reason: str) -> Invalid:
    return Invalid("spec.userData", f"userData must be a recognized cloud-init format: {reason}")
