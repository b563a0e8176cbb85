"""Encodings in which a secret could be written to a file."""

import base64
from collections.abc import Iterator


def disguises(secret: str) -> Iterator[bytes]:
    """Return the secret in every form in which somebody might have written it."""
    plain = secret.encode()
    yield plain
    yield plain[::-1]
    yield plain.hex().encode()
    yield plain.hex().upper().encode()
    yield secret.encode("utf-16-le")
    yield secret.encode("utf-16-be")
    yield base64.b32encode(plain).rstrip(b"=")
    for shift in range(3):  # wherever it begins within a group of three bytes
        encoded = base64.b64encode(plain[shift : shift + (len(plain) - shift) // 3 * 3])
        yield encoded
        yield encoded.translate(bytes.maketrans(b"+/", b"-_"))
