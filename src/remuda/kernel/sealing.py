"""Sealing: authenticated encryption of secrets before they are stored, and the file with its keys.

A sealed text is ``sealed:v1:<key id>:<nonce and ciphertext>``, by AES-256-GCM. The context, which names the object, is
authenticated with it: a sealed text that is copied to another object does not open. The nonce is a keyed hash of
context and secret, so an unchanged secret has the same sealed text, and a write without a change is no write. The
price: a reader of two copies of a store sees whether a secret changed between them, and how long it is.

A keyring has one current key, which seals, and previous ones, which only open. Keys for other purposes than sealing
(`Sealer.derived_key`) come from its root, which the first key determines and which no rotation changes.

The key file is JSON: a format number, the keys with the current one first, and the root once there were several keys. A
file that other users can read is rejected, since its keys may be known. Writers lock the directory from reading to
renaming: otherwise concurrent ones could lose a key, and everything it had sealed.
"""

import fcntl
import hmac
import os
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from remuda.kernel.encoding import from_base64url, to_base64url
from remuda.kernel.errors import Invalid, NotFound, Unsealable
from remuda.kernel.files import write_private
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret

_KEY_ID = re.compile(r"[a-z0-9-]{1,32}")
_SEALED = re.compile(r"sealed:v1:(?P<key_id>[a-z0-9-]{1,32}):(?P<payload>[A-Za-z0-9_-]+)")
_KEY_BYTES = 32
_NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class SealingKey:
    """A key with an id. Its material is not part of its repr."""

    id: str
    material: bytes = field(repr=False)
    created: datetime | None = None
    """None for a key that was created before this was recorded."""

    def __post_init__(self) -> None:
        if not _KEY_ID.fullmatch(self.id):
            raise Invalid("key id", "is malformed", remedy="use 1 to 32 lower-case letters, digits and dashes")
        if len(self.material) != _KEY_BYTES:
            raise Invalid(f"key {self.id}", "has the wrong length", remedy=f"use {_KEY_BYTES} random bytes")


@dataclass(frozen=True, slots=True)
class Keyring:
    """The current key, which seals, and the previous ones, which still open."""

    current: SealingKey
    previous: tuple[SealingKey, ...] = ()
    root: bytes = field(default=b"", repr=False)
    """Material of the derived keys: derived from the oldest key, unless given."""

    def __post_init__(self) -> None:
        if len({key.id for key in self.keys}) != len(self.keys):
            raise Invalid("keyring", "has two keys with one id", remedy="give every key an id of its own")
        if not self.root:
            object.__setattr__(self, "root", _derive(self.keys[-1].material, purpose=b"remuda keyring root v1"))
        if len(self.root) != _KEY_BYTES:
            raise Invalid("root", "has the wrong length", remedy=f"use {_KEY_BYTES} bytes")

    @property
    def keys(self) -> tuple[SealingKey, ...]:
        """All keys, the current one first."""
        return (self.current, *self.previous)

    def rotated(self, key: SealingKey) -> "Keyring":
        """Return the keyring with another current key. All others stay, so that what they sealed still opens."""
        return Keyring(key, self.keys, self.root)

    def with_previous(self, other: "Keyring") -> "Keyring":
        """Return the keyring that also opens what another one sealed."""
        known = {key.id: key.material for key in self.keys}
        for key in other.keys:
            if known.get(key.id, key.material) != key.material:
                raise Invalid("keyring", f"has two keys with the id {key.id}", remedy="restore the key files unchanged")
        return replace(self, previous=(*self.previous, *(key for key in other.keys if key.id not in known)))

    def without(self, ids: Collection[str]) -> "Keyring":
        """Return the keyring without these previous keys. What they sealed no longer opens."""
        return replace(self, previous=tuple(key for key in self.previous if key.id not in ids))


class Sealer:
    """Seals secrets with the current key of a keyring, and opens them with any of its keys."""

    def __init__(self, keyring: Keyring) -> None:
        self._root = keyring.root
        self._use(keyring)

    def adopt(self, keyring: Keyring) -> None:
        """Seal and open with the keys of another keyring of the same root from now on, or raise Invalid."""
        if keyring.root != self._root:
            raise Invalid("keyring", "belongs to another system", remedy="restore the key file from its backup")
        self._use(keyring)

    def _use(self, keyring: Keyring) -> None:
        self._ciphers = {key.id: _Cipher(key) for key in keyring.keys}
        self._current_id = keyring.current.id

    def seal(self, secret: Secret, *, context: str) -> str:
        """Return the sealed text of a secret, which opens only in this context."""
        if "\0" in context:
            # NUL ends the context in the hash for the nonce: inside the context it would let two secrets share a nonce.
            raise Invalid("context", "contains a NUL character", remedy="use a context without it")
        key_id = self._current_id  # which another thread may replace
        payload = self._ciphers[key_id].encrypt(_to_bytes(secret.reveal()), context=_to_bytes(context))
        return f"sealed:v1:{key_id}:{to_base64url(payload)}"

    def open(self, sealed: str, *, context: str) -> Secret:
        """Return the secret, or raise Unsealable if the key, the context or the text is a different one."""
        parts = _SEALED.fullmatch(sealed)
        if parts is None:
            raise Unsealable("unknown")
        cipher = self._ciphers.get(parts["key_id"])
        if cipher is None:
            raise Unsealable(parts["key_id"])
        try:
            plain = cipher.decrypt(from_base64url(parts["payload"]), context=_to_bytes(context))
        except (InvalidTag, ValueError):
            raise Unsealable(parts["key_id"]) from None
        return Secret(plain.decode("utf-8", "surrogatepass"))

    def derived_key(self, purpose: str) -> bytes:
        """Return the 32 bytes of a key for one other purpose. They stay the same when the sealing keys are rotated."""
        return _derive(self._root, purpose=f"remuda derived key v1 {purpose}".encode())

    @property
    def current_id(self) -> str:
        """Id of the key that seals."""
        return self._current_id

    @property
    def has_previous_keys(self) -> bool:
        """Whether there are keys that only open."""
        return len(self._ciphers) > 1


class _Cipher:
    """One key, split into an encryption key and a key for nonces."""

    def __init__(self, key: SealingKey) -> None:
        self._aead = AESGCM(_derive(key.material, purpose=b"remuda sealing v1 encryption"))
        self._nonce_key = _derive(key.material, purpose=b"remuda sealing v1 nonce")

    def encrypt(self, plain: bytes, *, context: bytes) -> bytes:
        nonce = hmac.digest(self._nonce_key, context + b"\0" + plain, "sha256")[:_NONCE_BYTES]
        return nonce + self._aead.encrypt(nonce, plain, context)

    def decrypt(self, payload: bytes, *, context: bytes) -> bytes:
        return self._aead.decrypt(payload[:_NONCE_BYTES], payload[_NONCE_BYTES:], context)


def _derive(material: bytes, *, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=None, info=purpose).derive(material)


def _to_bytes(text: str) -> bytes:
    # A lone surrogate must not raise here: the encoding error would carry the whole secret.
    return text.encode("utf-8", "surrogatepass")


_OTHERS_PERMISSIONS = 0o077


class _KeyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The content of the key file. The keys' own repr hides their material."""

    format: Literal[1]
    keys: tuple[SealingKey, ...]
    root: bytes = b""


def load_keyring(path: Path) -> Keyring:
    """Read the keyring. Raise Invalid if other users can read the file, or if it is not a key file."""
    content = _read_private(path)
    try:
        file = msgspec.json.decode(content, type=_KeyFile)
        current, *previous = file.keys
        return Keyring(current, tuple(previous), file.root)
    except (Invalid, msgspec.MsgspecError, ValueError):
        # The cause is dropped because it may quote the content.
        raise Invalid(str(path), "is not a key file", remedy="restore it from its backup") from None


def create_keyring_file(path: Path, randomness: Randomness, *, now: datetime | None = None) -> Keyring:
    """Create a file with one new key unless there is one already, and return its keyring."""
    with _directory_lock(path):
        if path.exists():
            return load_keyring(path)
        keyring = Keyring(_new_key(randomness, now))
        _replace(path, keyring)
        return keyring


def rotate_keyring_file(path: Path, randomness: Randomness, *, now: datetime | None = None) -> Keyring:
    """Add a new current key. All earlier keys stay, so that what they sealed still opens."""
    return _change_file(path, lambda keyring: keyring.rotated(_new_key(randomness, now)))


def remove_previous_keys(path: Path, ids: Collection[str]) -> Keyring:
    """Remove previous keys. What they sealed no longer opens."""
    return _change_file(path, lambda keyring: keyring.without(ids))


def write_keyring_file(path: Path, keyring: Keyring) -> None:
    """Replace the file by one with these keys."""
    with _directory_lock(path):
        _replace(path, keyring)


def _change_file(path: Path, change: Callable[[Keyring], Keyring]) -> Keyring:
    with _directory_lock(path):
        keyring = change(load_keyring(path))
        _replace(path, keyring)
        return keyring


def _new_key(randomness: Randomness, now: datetime | None) -> SealingKey:
    return SealingKey(id=randomness.token_bytes(6).hex(), material=randomness.token_bytes(32), created=now)


def _read_private(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & _OTHERS_PERMISSIONS:
                raise Invalid(str(path), "can be read or written by other users", remedy=f"run chmod 600 {path}")
            return file.read()
    except FileNotFoundError:
        raise NotFound("key file", str(path)) from None
    except OSError as error:
        raise _inaccessible(path, error) from error


@contextmanager
def _directory_lock(path: Path) -> Iterator[None]:
    try:
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise _inaccessible(path.parent, error) from error
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def _replace(path: Path, keyring: Keyring) -> None:
    is_implied = keyring.root == Keyring(keyring.keys[-1]).root
    root = b"" if is_implied and not keyring.previous else keyring.root
    content = msgspec.json.format(msgspec.json.encode(_KeyFile(format=1, keys=keyring.keys, root=root)))
    try:
        write_private(path, content)
    except OSError as error:
        raise _inaccessible(path, error) from error


def _inaccessible(path: Path, error: OSError) -> Invalid:
    cause = error.strerror or type(error).__name__
    return Invalid(str(path), f"cannot be used ({cause})", remedy="check the path and its permissions")
