"""Key pairs by which a server's first user logs in: Ed25519, as OpenSSH writes them.

The private key is written here rather than by the cryptography library, which puts random bytes of its own into it:
drawn from our randomness alone, a simulation's keys are the same each time, and a key written twice is the same text.
"""

import base64
import textwrap
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret

_TYPE = b"ssh-ed25519"
_SEED_BYTES = 32
_CHECK_BYTES = 4
_BLOCK = 8
_WIDTH = 70


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Both halves as OpenSSH writes them: the private one as a file's text, the public one as a line."""

    private: Secret
    public: str


def new_key_pair(randomness: Randomness) -> KeyPair:
    seed, check = randomness.token_bytes(_SEED_BYTES), randomness.token_bytes(_CHECK_BYTES)
    point = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    public = _text(_TYPE) + _text(point)
    return KeyPair(
        private=Secret(_file(public, check + check + public + _text(seed + point) + _text(b""))),
        public=f"{_TYPE.decode()} {base64.b64encode(public).decode()}",
    )


def _file(public: bytes, private: bytes) -> str:
    """Return the text of an unencrypted private key file (OpenSSH's PROTOCOL.key)."""
    padding = bytes(range(1, 1 + -len(private) % _BLOCK))
    no_cipher = _text(b"none") + _text(b"none") + _text(b"")
    content = b"openssh-key-v1\0" + no_cipher + _number(1) + _text(public) + _text(private + padding)
    lines = textwrap.wrap(base64.b64encode(content).decode(), _WIDTH)
    return "\n".join(["-----BEGIN OPENSSH PRIVATE KEY-----", *lines, "-----END OPENSSH PRIVATE KEY-----", ""])


def _text(content: bytes) -> bytes:
    return _number(len(content)) + content


def _number(value: int) -> bytes:
    return value.to_bytes(4)
