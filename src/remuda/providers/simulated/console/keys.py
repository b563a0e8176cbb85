"""SSH keys: those of a server's sshd, which are real ones, and the fingerprints that people compare."""

import base64
import binascii
import hashlib
from itertools import pairwise

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of the group of P-256


def host_keys(seed: str) -> list[tuple[str, str]]:
    """Return the names and OpenSSH lines of the public keys of a server, the same ones for the same seed."""
    edwards = Ed25519PrivateKey.from_private_bytes(_secret("ed25519", seed)).public_key()
    number = int.from_bytes(_secret("ecdsa", seed)) % (_ORDER - 1) + 1
    curve = derive_private_key(number, SECP256R1()).public_key()
    return [
        (name, key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode())
        for name, key in (("ECDSA", curve), ("ED25519", edwards))
    ]


def fingerprint(line: str) -> str | None:
    """Return the SHA256 fingerprint of an OpenSSH public key as `ssh-keygen -l` prints it; None if it is none."""
    words = line.split()
    for sort, blob in pairwise(words):
        try:
            raw = base64.b64decode(blob, validate=True)
        except (binascii.Error, ValueError):
            continue
        if raw[4 : 4 + len(sort)] == sort.encode():  # the key says again what sort it is
            digest = hashlib.sha256(raw).digest()
            return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"
    return None


def _secret(sort: str, seed: str) -> bytes:
    return hashlib.sha256(f"{sort} host key of {seed}".encode()).digest()
