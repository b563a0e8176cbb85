"""Signatures of public images: with a key, a region offers only those whose ids its owner has signed."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from remuda.kernel.errors import Invalid

SIGNATURE = "unikorn:digest"
"""Property with the ECDSA signature of the SHA-256 digest of the image's id, as ASN.1 in base64."""


class ImageVerifier:
    """Public key that signatures of images are verified with."""

    def __init__(self, pem: bytes) -> None:
        try:
            key = load_pem_public_key(pem)
        except (ValueError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, EllipticCurvePublicKey):
            raise Invalid("signingKey", "is not a public ECDSA key", remedy="give one as PEM")
        self._key = key

    def is_signed(self, document: Mapping[str, Any]) -> bool:
        """Return whether an image of Glance has a valid signature."""
        try:
            signature = base64.b64decode(str(document.get(SIGNATURE, "")), validate=True)
            self._key.verify(signature, str(document["id"]).encode(), ECDSA(SHA256()))
        except (binascii.Error, InvalidSignature):
            return False
        return True
