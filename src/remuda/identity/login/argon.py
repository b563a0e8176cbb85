"""Passwords under argon2id.

The parameters are here and nowhere else (RFC 9106: the second recommended option, with one lane). A hash says which
ones it was made with, so they can be changed at any time: at its next login an account's hash is made again.

A hash takes 64 MiB and some tenths of a second of one core, so it runs aside, and only a few at once: a hundred logins
wait for each other instead of taking all memory. Whoever has no password here is checked against a decoy, which costs
the same and never fits, so that nobody learns by the clock who has one.
"""

import asyncio
import base64
import unicodedata
from dataclasses import dataclass

import argon2
from argon2.exceptions import InvalidHashError, VerificationError

from remuda.identity.ports import Aside
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret

MOST_BYTES = 1024
"""The longest password, as `hashed_bytes` has it."""

_SALT_BYTES, _HASH_BYTES = 16, 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Hashing:
    """What a hash costs."""

    memory_kib: int = 65_536
    passes: int = 3
    lanes: int = 1
    at_once: int = 2
    """How many are made at the same time."""


HASHING = Hashing()
"""What we use."""


class Hasher:
    """Makes and checks hashes."""

    def __init__(self, *, aside: Aside, randomness: Randomness, hashing: Hashing = HASHING) -> None:
        self._aside, self._randomness = aside, randomness
        self._argon2 = argon2.PasswordHasher(
            time_cost=hashing.passes,
            memory_cost=hashing.memory_kib,
            parallelism=hashing.lanes,
            hash_len=_HASH_BYTES,
            salt_len=_SALT_BYTES,
        )
        self._turns = asyncio.Semaphore(hashing.at_once)
        salt, digest = (_to_base64(randomness.token_bytes(count)) for count in (_SALT_BYTES, _HASH_BYTES))
        self._decoy = f"$argon2id$v=19$m={hashing.memory_kib},t={hashing.passes},p={hashing.lanes}${salt}${digest}"

    async def hash(self, password: Secret) -> Secret:
        plain, salt = hashed_bytes(password), self._randomness.token_bytes(_SALT_BYTES)
        async with self._turns:
            return await self._aside(lambda: Secret(self._argon2.hash(plain, salt=salt)))

    async def fits(self, stored: Secret | None, password: Secret) -> bool:
        """Tell whether the hash is that of the password; with no hash the answer is no, and costs as much."""
        plain = hashed_bytes(password)
        is_real = stored is not None and len(plain) <= MOST_BYTES
        target = stored.reveal() if stored is not None and is_real else self._decoy
        async with self._turns:
            return await self._aside(lambda: self._verify(target, plain[:MOST_BYTES])) and is_real

    def is_outdated(self, stored: Secret) -> bool:
        """Tell whether a hash was made with other parameters than we use now."""
        return self._argon2.check_needs_rehash(stored.reveal())

    def _verify(self, stored: str, plain: bytes) -> bool:
        try:
            return self._argon2.verify(stored, plain)
        except (VerificationError, InvalidHashError):
            return False


def hashed_bytes(password: Secret) -> bytes:
    """Return the bytes of a password: the same ones however a keyboard composes its letters."""
    return unicodedata.normalize("NFKC", password.reveal()).encode("utf-8", "surrogatepass")


def _to_base64(raw: bytes) -> str:
    return base64.b64encode(raw).rstrip(b"=").decode()
