"""Revision of the code: what a process may use of what an earlier one derived from the same data."""

import hashlib
from pathlib import Path

import msgspec

import remuda

_DIGEST_BYTES = 16


def code_revision() -> str:
    """Return a digest of this program's source and of the library with which it encodes: each change has another."""
    root = Path(remuda.__file__).parent
    digest = hashlib.blake2b(msgspec.__version__.encode(), digest_size=_DIGEST_BYTES)
    for path in sorted(root.rglob("*.py")):
        digest.update(f"\n{path.relative_to(root)}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
