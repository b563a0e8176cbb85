"""Time-based one-time codes (RFC 6238): SHA-1, six digits, 30 seconds, which all authenticator apps support.

A code is accepted in its time step and in the one before and after, for clocks that differ and for users who type
slowly, and only if its step is later than that of the last accepted code.
"""

import base64
import re
from datetime import datetime

import segno
from cryptography.hazmat.primitives import constant_time
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.hotp import HOTP
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret

STEP_S = 30
_DIGITS, _SECRET_BYTES, _WINDOW = 6, 20, 1
_CODE = re.compile(r"[0-9]{6}")
_GROUP = 4


def new_totp_secret(randomness: Randomness) -> Secret:
    """Return a new secret in base32, as apps accept it."""
    return Secret(base64.b32encode(randomness.token_bytes(_SECRET_BYTES)).decode())


def matching_step(secret: Secret, code: str, now: datetime, *, after: int) -> int | None:
    """Return the time step whose code this is, or None. Only steps later than `after` count."""
    typed = "".join(code.split())
    if not _CODE.fullmatch(typed):
        return None
    hotp = HOTP(_key(secret), _DIGITS, SHA1())  # noqa: S303  HMAC-SHA-1, the only algorithm that all apps have
    current = int(now.timestamp()) // STEP_S
    matches = [
        step
        for step in range(max(current - _WINDOW, 0), current + _WINDOW + 1)
        if constant_time.bytes_eq(hotp.generate(step), typed.encode())
    ]
    return next((step for step in matches if step > after), None)


def provisioning_uri(secret: Secret, *, account: str, issuer: str) -> Secret:
    """Return the `otpauth` URI that an app reads from a QR code."""
    totp = TOTP(_key(secret), _DIGITS, SHA1(), STEP_S)  # noqa: S303  same
    return Secret(totp.get_provisioning_uri(account, issuer))


def qr_code(text: Secret) -> str:
    """Return a QR code as an SVG element: dark on light, whatever the colours of the page are."""
    code = segno.make(text.reveal(), error="m", micro=False)
    return code.svg_inline(scale=4, border=4, dark="#000", light="#fff", omitsize=True, svgclass="qr", lineclass=None)


def grouped(secret: Secret) -> str:
    """Return a secret in groups of four characters, for typing."""
    text = secret.reveal()
    return " ".join(text[start : start + _GROUP] for start in range(0, len(text), _GROUP))


def _key(secret: Secret) -> bytes:
    return base64.b32decode(secret.reveal())
