"""Percent-encoding (RFC 3986), and the pairs of queries and forms.

A percent sign that begins no escape is an error, found before anything is decoded. `urllib` leaves it as it is, at the
cost of an exception for each, and makes an object of each escape: a request of 64 kB would block the event loop for
tens of milliseconds. Quoted-printable differs from percent-encoding in its escape character only, and the standard
library decodes it in C.
"""

import re
from binascii import a2b_qp

_NO_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


def percent_decoded(encoded: bytes) -> bytes:
    """Return the decoded bytes, or raise ValueError if a percent sign begins no escape. A plus sign stays one."""
    if b"%" not in encoded:
        return encoded
    if _NO_ESCAPE.search(encoded):
        raise ValueError("a percent sign begins no escape")
    return a2b_qp(encoded.replace(b"=", b"=3D").replace(b"%", b"="))


def read_pairs(encoded: bytes, *, most: int) -> list[tuple[str, str]]:
    """Return the names and values of a query or a form; a name without a value has an empty one.

    Raise ValueError if there are too many, if a percent sign begins no escape, or for anything but UTF-8 in ASCII.
    """
    if not encoded:
        return []
    if not encoded.isascii() or encoded.count(b"&") >= most:
        raise ValueError("not ASCII, or too many pairs")
    pairs = []
    for pair in encoded.replace(b"+", b" ").split(b"&"):
        if pair:
            name, _, value = pair.partition(b"=")
            pairs.append((percent_decoded(name).decode(), percent_decoded(value).decode()))
    return pairs
