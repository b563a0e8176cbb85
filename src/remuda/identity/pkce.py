"""PKCE (RFC 7636): what ties a code to whoever asked for it, as we demand it of clients and show it to providers."""

import hashlib

from remuda.kernel import encoding as base64url


def s256(verifier: str) -> str:
    """Return the challenge of a verifier by the method S256."""
    # A lone surrogate must not raise here: the encoding error would carry the verifier.
    return base64url.encode(hashlib.sha256(verifier.encode("utf-8", "surrogatepass")).digest())
