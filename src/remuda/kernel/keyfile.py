"""The file that holds the sealing keys, outside every store.

It is JSON: a format number, and the keys with the current one first. Only its owner may read it; a file that others can
read is refused, since its keys may be known already. Every write goes to a second file that is flushed and then renamed
over the first, so a crash leaves the old keys or the new ones. Writers hold a lock on the directory from reading to
renaming: without it, two that create or rotate at once would lose a key, and with it all that it had sealed.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from remuda.kernel.errors import Invalid, NotFound
from remuda.kernel.files import write_private
from remuda.kernel.randomness import Randomness
from remuda.kernel.sealing import Keyring, SealingKey

_OPEN_TO_OTHERS = 0o077


class _KeyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file; the keys' own repr hides their material."""

    format: Literal[1]
    keys: tuple[SealingKey, ...]


def load_keyring(path: Path) -> Keyring:
    """Read the keyring; refuse a file that is open to others or that is no key file."""
    content = _read_private(path)
    try:
        current, *previous = msgspec.json.decode(content, type=_KeyFile).keys
        return Keyring(current, tuple(previous))
    except (Invalid, msgspec.MsgspecError, ValueError):
        # The cause is dropped because it may quote the content.
        raise Invalid(str(path), "is not a key file", remedy="restore it from its backup") from None


def create_keyring_file(path: Path, randomness: Randomness) -> Keyring:
    """Make a file with one new key, unless there is a file already, and return the keyring it holds."""
    with _directory_lock(path):
        if path.exists():
            return load_keyring(path)
        keyring = Keyring(_new_key(randomness))
        _replace(path, keyring)
        return keyring


def rotate_keyring_file(path: Path, randomness: Randomness) -> Keyring:
    """Put a new current key in front; all earlier keys stay, so that what they sealed still opens."""
    with _directory_lock(path):
        keyring = Keyring(_new_key(randomness), load_keyring(path).keys)
        _replace(path, keyring)
        return keyring


def _new_key(randomness: Randomness) -> SealingKey:
    return SealingKey(id=randomness.token_bytes(6).hex(), material=randomness.token_bytes(32))


def _read_private(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & _OPEN_TO_OTHERS:
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
    content = msgspec.json.format(msgspec.json.encode(_KeyFile(format=1, keys=keyring.keys)))
    try:
        write_private(path, content)
    except OSError as error:
        raise _inaccessible(path, error) from error


def _inaccessible(path: Path, error: OSError) -> Invalid:
    cause = error.strerror or type(error).__name__
    return Invalid(str(path), f"cannot be used ({cause})", remedy="check the path and its permissions")
