"""The parts of user data, whatever it is wrapped in: one payload, a multipart message, or either of them in gzip.

What a part is comes from its own header where that says something, and from its first line where it says only that it
is text, as cloud-init decides it. Unpacking stops at a limit, so that a few bytes cannot become a machine's memory.
"""

import zlib
from typing import NamedTuple

from remuda.cloudinit.multipart import DEEPEST, leaves, looks_like_headers, read_message
from remuda.cloudinit.recognising import Unrecognized, content_type_of, unsupported

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
