"""Passwords of local accounts: argon2id hashes, and links that set a password once.

A password belongs to a user of the whole system. Setting it ends all sessions of the user: sessions end, the password
is written, and sessions that began in between end. After a crash before the write the link is still valid. A browser
login that is older than the password is invalid in any case. A link is valid once, for a day, and replaces an earlier
one.

A new password is long enough and not common (`common_passwords`).

Hashing runs in a thread, a few at a time: a hash takes 64 MiB and some tenths of a second. A user without a password is
checked against a decoy hash that never matches, so that response times do not reveal who has one.
"""

import base64
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import argon2
import msgspec
from argon2.exceptions import InvalidHashError, VerificationError

from remuda.identity.kinds.oauth import Password, PasswordSpec
from remuda.identity.kinds.users import User
from remuda.identity.login.common_passwords import LoadWords, is_common, load_words, personal_words
from remuda.identity.lookups import organization_names
from remuda.identity.tokens.secrets import new_secret, token_hash
from remuda.kernel.clock import Clock
from remuda.kernel.errors import Conflict, Invalid, Malformed, NotFound
from remuda.kernel.fair_slots import FairSlots
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret
from remuda.resources.crud import create_once, find, find_by_index, retry_on_conflict
from remuda.service import RunBlocking
from remuda.store.contract import Store
from remuda.store.logs import Record
from remuda.store.objects import Metadata

MAX_BYTES = 1024
"""Maximum length of a password, as `hashed_bytes` encodes it."""

_SALT_BYTES, _HASH_BYTES = 16, 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Argon2Parameters:
    """Argon2id parameters (RFC 9106, second recommended option, with a parallelism of 1).

    A hash names its parameters, so they can be changed: an outdated hash is replaced at the next login.
    """

    memory_kib: int = 65_536
    time_cost: int = 3
    parallelism: int = 1
    concurrency: int = 2
    """Number of hashes computed at the same time."""


ARGON2 = Argon2Parameters()


class Hasher:
    """Argon2id hasher."""

    def __init__(
        self, *, run_blocking: RunBlocking, randomness: Randomness, parameters: Argon2Parameters = ARGON2
    ) -> None:
        self._run_blocking, self._randomness = run_blocking, randomness
        self._argon2 = argon2.PasswordHasher(
            time_cost=parameters.time_cost,
            memory_cost=parameters.memory_kib,
            parallelism=parameters.parallelism,
            hash_len=_HASH_BYTES,
            salt_len=_SALT_BYTES,
        )
        self._slots = FairSlots(parameters.concurrency, share=max(1, parameters.concurrency // 2))
        salt, digest = (_to_base64(randomness.token_bytes(count)) for count in (_SALT_BYTES, _HASH_BYTES))
        cost = f"m={parameters.memory_kib},t={parameters.time_cost},p={parameters.parallelism}"
        self._decoy = f"$argon2id$v=19${cost}${salt}${digest}"

    async def hash(self, password: Secret) -> Secret:
        plain, salt = hashed_bytes(password), self._randomness.token_bytes(_SALT_BYTES)
        async with self._slots.acquire(""):
            return await self._run_blocking(lambda: Secret(self._argon2.hash(plain, salt=salt)))

    async def matches(self, stored: Secret | None, password: Secret, *, client: str = "") -> bool:
        """Tell whether the hash is that of the password. Without a hash the result is False and takes as long.

        Clients that wait take turns, and each has at most half of the hashes at a time.
        """
        plain = hashed_bytes(password)
        is_real = stored is not None and not is_too_long(password)
        target = stored.reveal() if stored is not None and is_real else self._decoy
        async with self._slots.acquire(client):
            return await self._run_blocking(lambda: self._verify(target, plain[:MAX_BYTES])) and is_real

    def is_outdated(self, stored: Secret) -> bool:
        """Tell whether a hash was made with other parameters."""
        return self._argon2.check_needs_rehash(stored.reveal())

    def _verify(self, stored: str, plain: bytes) -> bool:
        try:
            return self._argon2.verify(stored, plain)
        except (VerificationError, InvalidHashError):
            return False


def hashed_bytes(password: Secret) -> bytes:
    """Return the bytes of a password, in Unicode normal form KC, or of the beginning of one that is too long.

    Normalization takes time quadratic in the number of combining marks in a row.
    """
    return unicodedata.normalize("NFKC", password.reveal()[:MAX_BYTES]).encode("utf-8", "surrogatepass")


def is_too_long(password: Secret) -> bool:
    """Return whether a password has more characters, or in normal form more bytes, than are hashed."""
    return len(password.reveal()) > MAX_BYTES or len(hashed_bytes(password)) > MAX_BYTES


def _to_base64(raw: bytes) -> str:
    return base64.b64encode(raw).rstrip(b"=").decode()


MIN_CHARACTERS = 12
"""Minimum length of a password."""
LINK_LIFETIME = timedelta(hours=24)

_REPLACED = "This password was replaced meanwhile: log in with the present one."
_COMMON = "is common (at most two words, names or runs of characters, with a few digits and signs)"
_UNCOMMON = "choose three or more words that do not belong together, or let a password manager make one"
_INVALID_LINK = "This link is no longer valid: it was used, replaced, or is older than a day. Ask for a new one."


class EndsSessions(Protocol):
    """Part of `Sessions` that is used here."""

    async def end_all(self, user: str) -> object:
        """End every session of a user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordLink:
    """Secret of a new link, returned once."""

    secret: Secret
    expires: datetime


Check = Callable[[PasswordSpec], None]
"""Raises an error unless the present password may be replaced."""


def _always(_present: PasswordSpec) -> None:
    """Allow the replacement of any password."""


class Passwords:
    """Passwords of local accounts."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        randomness: Randomness,
        run_blocking: RunBlocking,
        sessions: EndsSessions,
        parameters: Argon2Parameters = ARGON2,
        load_common: LoadWords = load_words,
    ) -> None:
        self._store, self._clock, self._randomness, self._sessions = store, clock, randomness, sessions
        self._run_blocking, self._load_common = run_blocking, load_common
        self._hasher = Hasher(run_blocking=run_blocking, randomness=randomness, parameters=parameters)

    async def verify(self, user: str, password: Secret, *, client: str = "") -> bool:
        """Tell whether this is the user's password. The check takes as long if there is none.

        `client` is the network of the caller's address; a site with many networks is one client.
        """
        found = await find(self._store, Password, user)
        stored = None if found is None else found.spec.hash
        is_valid = await self._hasher.matches(stored, password, client=client)
        if is_valid and found is not None and stored is not None and self._hasher.is_outdated(stored):
            await self._rehash(found, password)
        return is_valid

    async def has_password(self, user: str) -> bool:
        """Tell whether a user can log in with a password."""
        found = await find(self._store, Password, user)
        return found is not None and found.spec.hash is not None

    async def temporary_since(self, user: str) -> datetime | None:
        """Return when the user's password was set if it is temporary: then it only lets the user replace it."""
        found = await find(self._store, Password, user)
        return found.spec.changed if found is not None and found.spec.is_temporary else None

    async def set_password(
        self, user: str, password: Secret, log: Sequence[Record] = (), *, is_temporary: bool = False
    ) -> None:
        """Set a user's password, and end all sessions of the user."""
        await self._set(user, password, _always, log=log, is_temporary=is_temporary)

    async def set_by_link(self, link: str, password: Secret, log: Sequence[Record] = ()) -> None:
        """Set the password of a link's user. The same write invalidates the link."""
        user = await self.user_of_link(link)

        def check(found: PasswordSpec) -> None:
            if not self._matches_link(found, link):
                raise Malformed(_INVALID_LINK)

        await self._set(user.name, password, check, log=log)

    async def replace_temporary(
        self, user: str, set_at: datetime, password: Secret, log: Sequence[Record] = ()
    ) -> None:
        """Replace the temporary password that was set at this time by one of the user's choice."""

        def check(found: PasswordSpec) -> None:
            if not found.is_temporary or found.changed != set_at:
                raise Malformed(_REPLACED)

        await self._set(user, password, check, log=log)

    async def create_link(self, user: str, *, organization: str = "", log: Sequence[Record] = ()) -> PasswordLink:
        """Return a link that sets the user's password, made for an organization, if any. It replaces an earlier one."""
        secret, expires = new_secret(self._randomness), self._clock.now() + LINK_LIFETIME
        hashed = token_hash(secret.reveal())
        await self._change(user, log, reset_hash=hashed, reset_expires=expires, reset_organization=organization)
        return PasswordLink(secret=secret, expires=expires)

    async def user_of_link(self, link: str) -> User:
        """Return the user of a link, or raise Malformed if the link is not valid."""
        found = await find_by_index(self._store, Password, "link", token_hash(link))
        if found is None or not self._has_valid_link(found.spec):
            raise Malformed(_INVALID_LINK)
        return await self._store.get(User, found.name)

    async def inviting_organization(self, link: str) -> str:
        """Return the organization that a link was made for, if it sets the user's first password, or empty."""
        found = await find_by_index(self._store, Password, "link", token_hash(link))
        return found.spec.reset_organization if found is not None and found.spec.hash is None else ""

    async def check(
        self, password: Secret, subject: str, organizations: Sequence[str] = (), *, field: str = "password"
    ) -> None:
        """Raise Invalid unless a user with this address, in organizations with these names, may have the password."""
        check_length(password)
        personal = personal_words(subject, organizations)
        if await self._run_blocking(lambda: is_common(password.reveal(), self._load_common(), personal)):
            raise Invalid(field, _COMMON, remedy=_UNCOMMON)

    async def _set(
        self, user: str, password: Secret, check: Check, *, log: Sequence[Record], is_temporary: bool = False
    ) -> None:
        found = await self._store.get(User, user)
        await self.check(password, found.spec.subject, await organization_names(self._store, found))
        if await self.temporary_since(user) is not None and not is_temporary and await self.verify(user, password):
            raise Invalid("password", "is the temporary one", remedy="choose another one")
        hashed = await self._hasher.hash(password)
        await self._sessions.end_all(user)
        unlinked = {"reset_hash": "", "reset_expires": None, "reset_organization": ""}
        changed = {"hash": hashed, "changed": self._clock.now(), **unlinked}
        await self._change(user, log, check, **changed, is_temporary=is_temporary)
        await self._sessions.end_all(user)

    async def _change(self, user: str, log: Sequence[Record], check: Check = _always, **fields: object) -> None:
        async def write() -> None:
            found = await find(self._store, Password, user)
            check(PasswordSpec() if found is None else found.spec)
            if found is None:
                spec = PasswordSpec(**fields)  # type: ignore[arg-type]  # fields of the spec
                await create_once(self._store, Password(metadata=Metadata(name=user), spec=spec), log)
                return
            changed = msgspec.structs.replace(found.spec, **fields)
            await self._store.update(msgspec.structs.replace(found, spec=changed), log=log)

        await retry_on_conflict(write)

    async def _rehash(self, found: Password, password: Secret) -> None:
        hashed = await self._hasher.hash(password)
        try:
            spec = msgspec.structs.replace(found.spec, hash=hashed)
            await self._store.update(msgspec.structs.replace(found, spec=spec))
        except (Conflict, NotFound):
            return  # the password was set meanwhile

    def _has_valid_link(self, spec: PasswordSpec) -> bool:
        return spec.reset_expires is not None and self._clock.now() < spec.reset_expires

    def _matches_link(self, spec: PasswordSpec, link: str) -> bool:
        return spec.reset_hash == token_hash(link) and self._has_valid_link(spec)


def link_url(issuer: str, secret: Secret) -> Secret:
    """Return the URL of a password link."""
    return Secret(f"{issuer}/oauth2/v2/password?link={secret.reveal()}")


def check_length(password: Secret) -> None:
    """Raise Invalid if a password is too short or too long."""
    if len(password.reveal()) < MIN_CHARACTERS:
        raise Invalid("password", "is too short", remedy=f"choose one of at least {MIN_CHARACTERS} characters")
    if is_too_long(password):
        raise Invalid("password", "is too long", remedy=f"choose one of at most {MAX_BYTES} bytes")
