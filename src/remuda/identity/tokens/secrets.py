"""Secrets that we hand out and do not keep: what is stored of one is its SHA-256.

They are drawn with 256 bits, so nobody finds one by trying, and a slow hash would add nothing.

PKCE (RFC 7636): what ties a code to whoever asked for it, as we demand it of clients and show it to providers.
"""

import hashlib
import hmac

from remuda.kernel import encoding as base64url
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret

_BYTES = 32


def new_secret(randomness: Randomness) -> Secret:
    """Return a new secret, of 43 characters that fit a URL."""
    return Secret(base64url.encode(randomness.token_bytes(_BYTES)))


def token_hash(token: str) -> str:
    """Return the SHA-256 of a token, in hex."""
    # A lone surrogate must not raise here: the encoding error would carry the whole token.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def is_hash_of(stored: str, token: str) -> bool:
    """Tell whether this token's hash is the stored one. Nothing is the hash of anything."""
    return bool(stored) and hmac.compare_digest(stored, token_hash(token))


def s256(verifier: str) -> str:
    """Return the challenge of a verifier by the method S256."""
    # A lone surrogate must not raise here: the encoding error would carry the verifier.
    return base64url.encode(hashlib.sha256(verifier.encode("utf-8", "surrogatepass")).digest())
