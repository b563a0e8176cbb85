"""Random secrets of 256 bits, of which only the SHA-256 is stored, and PKCE (RFC 7636)."""

import hashlib
import hmac

from remuda.kernel.encoding import to_base64url
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret

_BYTES = 32


def new_secret(randomness: Randomness) -> Secret:
    """Return a new secret of 43 URL-safe characters."""
    return Secret(to_base64url(randomness.token_bytes(_BYTES)))


def token_hash(token: str) -> str:
    # A lone surrogate must not raise here: the encoding error would carry the whole token.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def is_hash_of(stored: str, token: str) -> bool:
    """Return whether a stored hash is that of this token. An empty hash matches nothing."""
    return bool(stored) and hmac.compare_digest(stored, token_hash(token))


def s256(verifier: str) -> str:
    # A lone surrogate must not raise here: the encoding error would carry the verifier.
    return to_base64url(hashlib.sha256(verifier.encode("utf-8", "surrogatepass")).digest())
