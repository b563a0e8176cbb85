"""Passwords of local accounts: checking them, setting them, and links by which they are set once.

A password belongs to a user of the whole system. Setting one ends all of the user's sessions. That is several writes,
in an order that is safe wherever it breaks off: sessions end first, then the password is written, then whatever session
began in between ends. What breaks off before the write has changed nothing but that the user has to log in again, and
the link can still be used. (A browser login that is older than the password is not believed in any case: `logins`.)

A link is good once, for a day; making another one takes the earlier one's place.

Passwords under argon2id.

The parameters are here and nowhere else (RFC 9106: the second recommended option, with one lane). A hash says which
ones it was made with, so they can be changed at any time: at its next login an account's hash is made again.

A hash takes 64 MiB and some tenths of a second of one core, so it runs aside, and only a few at once: a hundred logins
wait for each other instead of taking all memory. Whoever has no password here is checked against a decoy, which costs
the same and never fits, so that nobody learns by the clock who has one.
"""

import asyncio
import base64
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import argon2
import msgspec
from argon2.exceptions import InvalidHashError, VerificationError

from remuda.identity.kinds.oauth import Password, PasswordSpec
from remuda.identity.kinds.users import User
from remuda.identity.ports import Aside
from remuda.identity.tokens.secrets import new_secret, token_hash
from remuda.kernel.clock import Clock
from remuda.kernel.errors import AlreadyExists, Conflict, Invalid, Malformed, NotFound
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret
from remuda.resources.crud import find, retry_on_conflict
from remuda.store.contract import Store
from remuda.store.logs import Record
from remuda.store.objects import Metadata

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


LEAST_CHARACTERS = 12
"""The shortest password."""
LINK_LIFE = timedelta(hours=24)
"""How long a link can be used."""

_SPENT = "This link is no longer good: it was used, replaced, or is older than a day. Ask for a new one."


class EndsSessions(Protocol):
    """Ends sessions, as `Sessions` does."""

    async def end_all(self, user: str) -> object:
        """End every session of a user."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLink:
    """What makes a link good, shown this once."""

    secret: Secret
    expires: datetime


class Passwords:
    """Keeps the passwords of local accounts."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        randomness: Randomness,
        aside: Aside,
        sessions: EndsSessions,
        hashing: Hashing = HASHING,
    ) -> None:
        self._store, self._clock, self._randomness, self._sessions = store, clock, randomness, sessions
        self._hasher = Hasher(aside=aside, randomness=randomness, hashing=hashing)

    async def verify(self, user: str, password: Secret) -> bool:
        """Tell whether it is this user's password. Who has none, or is not there at all, costs the same."""
        found = await self._find(user)
        stored = None if found is None else found.spec.hash
        is_right = await self._hasher.fits(stored, password)
        if is_right and found is not None and stored is not None and self._hasher.is_outdated(stored):
            await self._renew(found, password)
        return is_right

    async def has_password(self, user: str) -> bool:
        """Tell whether a user can log in with a password at all."""
        found = await self._find(user)
        return found is not None and found.spec.hash is not None

    async def set_password(self, user: str, password: Secret, log: Sequence[Record] = ()) -> None:
        """Give a user a password, and end all its sessions."""
        await self._set(user, password, link=None, log=log)

    async def set_by_link(self, link: str, password: Secret, log: Sequence[Record] = ()) -> None:
        """Give the user of a link a password. The link is spent in the same write."""
        user = await self.user_of_link(link)
        await self._set(user.name, password, link=link, log=log)

    async def make_link(self, user: str, log: Sequence[Record] = ()) -> NewLink:
        """Return a link by which the user's password can be set, in the place of any earlier one."""
        secret, expires = new_secret(self._randomness), self._clock.now() + LINK_LIFE
        await self._change(user, log, reset_hash=token_hash(secret.reveal()), reset_expires=expires)
        return NewLink(secret=secret, expires=expires)

    async def user_of_link(self, link: str) -> User:
        """Return whose password a link sets, or raise Malformed if it is no longer good."""
        for found in (await self._store.list(Password, index=("link", token_hash(link)), limit=1)).items:
            if self._is_good(found.spec):
                return await self._store.get(User, found.name)
        raise Malformed(_SPENT)

    async def _set(self, user: str, password: Secret, *, link: str | None, log: Sequence[Record]) -> None:
        found = await self._store.get(User, user)
        check_password(password, found.spec.subject)
        hashed = await self._hasher.hash(password)
        await self._sessions.end_all(user)
        changed = {"hash": hashed, "changed": self._clock.now(), "reset_hash": "", "reset_expires": None}
        await self._change(user, log, only_with=link, **changed)
        await self._sessions.end_all(user)

    async def _change(
        self, user: str, log: Sequence[Record], *, only_with: str | None = None, **fields: object
    ) -> None:
        async def write() -> None:
            found = await self._find(user)
            if only_with is not None and not (found is not None and self._opens(found.spec, only_with)):
                raise Malformed(_SPENT)
            if found is None:
                spec = PasswordSpec(**fields)  # type: ignore[arg-type]  # fields of the spec
                await self._create(Password(metadata=Metadata(name=user), spec=spec), log)
                return
            changed = msgspec.structs.replace(found.spec, **fields)
            await self._store.update(msgspec.structs.replace(found, spec=changed), log=log)

        await retry_on_conflict(write)

    async def _create(self, password: Password, log: Sequence[Record]) -> None:
        try:
            await self._store.create(password, log=log)
        except AlreadyExists as taken:
            raise Conflict(taken.kind, taken.name) from None

    async def _renew(self, found: Password, password: Secret) -> None:
        hashed = await self._hasher.hash(password)
        try:
            spec = msgspec.structs.replace(found.spec, hash=hashed)
            await self._store.update(msgspec.structs.replace(found, spec=spec))
        except (Conflict, NotFound):
            return  # somebody set another one, which is as new as can be

    async def _find(self, user: str) -> Password | None:
        return await find(self._store, Password, user)

    def _is_good(self, spec: PasswordSpec) -> bool:
        return spec.reset_expires is not None and self._clock.now() < spec.reset_expires

    def _opens(self, spec: PasswordSpec, link: str) -> bool:
        return spec.reset_hash == token_hash(link) and self._is_good(spec)


def check_password(password: Secret, subject: str) -> None:
    """Refuse a password that is easily guessed, or longer than we hash."""
    text = password.reveal()
    if len(text) < LEAST_CHARACTERS:
        raise Invalid("password", "is too short", remedy=f"choose one of at least {LEAST_CHARACTERS} characters")
    if len(hashed_bytes(password)) > MOST_BYTES:
        raise Invalid("password", "is too long", remedy=f"choose one of at most {MOST_BYTES} bytes")
    if text.strip().lower() == subject.lower():
        raise Invalid("password", "is the e-mail address", remedy="choose one that nobody can guess")
    if len(set(text)) == 1:
        raise Invalid("password", "is one character over and over", remedy="choose one that nobody can guess")
