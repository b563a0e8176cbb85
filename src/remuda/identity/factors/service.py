"""Authenticators and recovery codes of users: enrolment, verification, removal and reset.

Each write is a compare-and-swap of the user's one object, and the result of an attempt is returned after its write. So
of two logins with the same code or challenge one succeeds, and of a thousand parallel guesses no more are checked than
one after the other. Guessing a code slows down further guesses in browsers that are not known; passkeys, recovery codes
and known browsers are not delayed by it, so that no attacker can lock a user out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from remuda.http.ratelimit import RateLimit, RateLimiter
from remuda.identity.factors.passkeys import NewCredential, RelyingParty
from remuda.identity.factors.recovery import new_recovery_codes, recovery_hash, recovery_hashes
from remuda.identity.factors.totp import matching_step
from remuda.identity.kinds.factors import (
    AuthenticatorApp,
    FactorEvent,
    FactorEventType,
    Passkey,
    SecondFactors,
    SecondFactorsSpec,
    UsedChallenge,
)
from remuda.identity.kinds.users import USER, User
from remuda.identity.tokens.secrets import token_hash
from remuda.kernel.clock import Clock
from remuda.kernel.encoding import to_base64url
from remuda.kernel.errors import Invalid, Malformed, TooMany
from remuda.kernel.ids import random_id
from remuda.kernel.locks import KeyedLock
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret
from remuda.resources.crud import create_once, find, retry_on_conflict
from remuda.store.contract import Store
from remuda.store.logs import Record
from remuda.store.objects import Metadata

MAX_AUTHENTICATORS = 10
"""Apps and passkeys of a user."""
MAX_NAME = 64
CHALLENGE_LIFETIME = timedelta(minutes=10)
"""Time in which a challenge is valid; it is sealed to the browser for as long."""

FREE_ATTEMPTS = 3
"""Wrong codes that cause no delay."""
_FIRST_DELAY_S, _MAX_DELAY_S = 15, 900
_MAX_EVENTS = 10
_KNOWN_BROWSER = RateLimit(quota=10, window_s=600, name="second factor")

T = TypeVar("T")
Change = Callable[[SecondFactorsSpec], tuple[SecondFactorsSpec, T]]
"""Returns the new spec and the result of an attempt. It is repeated after a conflict."""


def delay_after(wrong_codes: int) -> timedelta:
    """Return the delay after this many wrong codes in a row: none at first, then twice the last, up to 15 minutes."""
    doublings = wrong_codes - FREE_ATTEMPTS - 1
    if doublings < 0:
        return timedelta()
    return timedelta(seconds=min(_FIRST_DELAY_S * 2 ** min(doublings, 16), _MAX_DELAY_S))


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """Authenticator to be added."""

    id: str
    name: str
    """Name that the user chose; if it is empty, one is given."""
    only_first: bool
    """The user must not have another authenticator yet."""
    log: Sequence[Record]


class Authenticators:
    """Second factors of users."""

    def __init__(self, *, store: Store, clock: Clock, randomness: Randomness, relying_party: RelyingParty) -> None:
        self._store, self._clock, self._randomness = store, clock, randomness
        self.relying_party: Final = relying_party
        self._known_browsers = RateLimiter(_KNOWN_BROWSER, clock)
        self._locks = KeyedLock()

    async def of_user(self, user: str) -> SecondFactorsSpec:
        found = await find(self._store, SecondFactors, user)
        return SecondFactorsSpec() if found is None else found.spec

    def new_id(self) -> str:
        return random_id(self._randomness)

    def new_challenge(self) -> str:
        """Return a new WebAuthn challenge, in base64url."""
        return to_base64url(self._randomness.token_bytes(32))

    async def verify_code(self, user: User, code: str, *, known_browser: str = "") -> bool:
        """Use a code of an app, and return whether it is valid; raise TooMany if the user has to wait.

        `known_browser` is the id of a browser in which the user completed a login before, or empty.
        """
        if known_browser:
            # Together, since a thief of the password may have many from before the user had a second factor.
            self._known_browsers.take(user.name)
        now = self._clock.now()

        def attempt(spec: SecondFactorsSpec) -> tuple[SecondFactorsSpec, bool]:
            if not known_browser and spec.next_attempt is not None and now < spec.next_attempt:
                raise TooMany(int((spec.next_attempt - now).total_seconds()) + 1)
            for each in spec.apps:
                step = matching_step(each.secret, code, now, after=each.last_step)
                if step is not None:
                    used = replace(each, last_step=step, used=now)
                    apps = tuple(used if app.id == each.id else app for app in spec.apps)
                    return replace(spec, apps=apps, wrong_codes=0, next_attempt=None), True
            return (spec if known_browser else _delayed(spec, now)), False

        return await self._write(user, attempt)

    async def verify_recovery_code(self, user: User, code: str) -> bool:
        """Spend a recovery code, and return whether it was valid."""
        spent, now = recovery_hash(code), self._clock.now()

        def attempt(spec: SecondFactorsSpec) -> tuple[SecondFactorsSpec, bool]:
            remaining = tuple(each for each in spec.recovery_hashes if each != spent)
            if len(remaining) == len(spec.recovery_hashes):
                return spec, False
            return _with_event(replace(spec, recovery_hashes=remaining), "recovery-code-used", now), True

        return await self._write(user, attempt)

    async def verify_passkey(self, user: User, response: str, challenge: str) -> bool:
        """Use a passkey for a challenge, once, and return whether the response is valid.

        A signature counter that did not increase reveals a copy of the key: the response is rejected, and the user is
        told.
        """
        now = self._clock.now()

        def attempt(spec: SecondFactorsSpec) -> tuple[SecondFactorsSpec, bool]:
            use = self.relying_party.use(response, challenge, spec.passkeys)
            hashed = token_hash(challenge)
            if use is None or any(each.challenge_hash == hashed for each in spec.used_challenges):
                return spec, False
            passkey = next(each for each in spec.passkeys if each.id == use.passkey)
            if use.sign_count <= passkey.sign_count and (use.sign_count or passkey.sign_count):
                return _with_event(spec, "copied-passkey", now, passkey.name), False
            used = replace(passkey, sign_count=use.sign_count, used=now)
            unexpired = tuple(each for each in spec.used_challenges if now < each.expires)
            return replace(
                spec,
                passkeys=tuple(used if each.id == used.id else each for each in spec.passkeys),
                used_challenges=(*unexpired, UsedChallenge(challenge_hash=hashed, expires=now + CHALLENGE_LIFETIME)),
            ), True

        return await self._write(user, attempt)

    async def add_app(self, user: User, addition: Addition, secret: Secret, code: str) -> tuple[Secret, ...] | None:
        """Add an app that shows this code for its secret, or return None if it shows another one.

        Return new recovery codes if it is the first authenticator.
        """
        now, codes = self._clock.now(), new_recovery_codes(self._randomness)
        step = matching_step(secret, code, now, after=-1)
        if step is None:
            return None

        def add(spec: SecondFactorsSpec) -> tuple[SecondFactorsSpec, tuple[Secret, ...]]:
            name = _checked_name(spec, addition, "Authenticator app")
            app = AuthenticatorApp(id=addition.id, name=name, secret=secret, last_step=step, added=now)
            added = replace(spec, apps=(*spec.apps, app))
            return _with_codes(spec, _with_event(added, "app-added", now, name), codes)

        return await self._write(user, add, addition.log)

    async def add_passkey(self, user: User, addition: Addition, credential: NewCredential) -> tuple[Secret, ...]:
        """Add a passkey, and return new recovery codes if it is the first authenticator.

        Its challenge need not be remembered: the same credential is not added twice.
        """
        now, codes, data = self._clock.now(), new_recovery_codes(self._randomness), to_base64url(credential.data)

        def add(spec: SecondFactorsSpec) -> tuple[SecondFactorsSpec, tuple[Secret, ...]]:
            name = _checked_name(spec, addition, "Passkey")
            if any(each.credential == data for each in spec.passkeys):
                raise Invalid("passkey", "is already one of yours", remedy="use another authenticator")
            passkey = Passkey(
                id=addition.id,
                name=name,
                credential=data,
                sign_count=credential.sign_count,
                transports=credential.transports,
                added=now,
            )
            added = replace(spec, passkeys=(*spec.passkeys, passkey))
            return _with_codes(spec, _with_event(added, "passkey-added", now, name), codes)

        return await self._write(user, add, addition.log)

    async def remove(self, user: User, id: str, log: Sequence[Record]) -> bool:  # noqa: A002  its name
        """Remove an authenticator, and the recovery codes with the last one; return whether it was there."""
        now = self._clock.now()

        def remove(spec: SecondFactorsSpec) -> tuple[SecondFactorsSpec, bool]:
            removed = [each.name for each in spec.authenticators if each.id == id]
            if not removed:
                return spec, False
            kept = replace(
                spec,
                removed=now,
                apps=tuple(each for each in spec.apps if each.id != id),
                passkeys=tuple(each for each in spec.passkeys if each.id != id),
            )
            if not kept.has_authenticator:
                kept = replace(kept, recovery_hashes=(), wrong_codes=0, next_attempt=None)
            return _with_event(kept, "removed", now, removed[0]), True

        return await self._write(user, remove, log)

    async def replace_recovery_codes(self, user: User, log: Sequence[Record]) -> tuple[Secret, ...]:
        """Return new recovery codes, which replace all earlier ones; none without an authenticator."""
        codes, now = new_recovery_codes(self._randomness), self._clock.now()

        def change(spec: SecondFactorsSpec) -> tuple[SecondFactorsSpec, tuple[Secret, ...]]:
            if not spec.has_authenticator:
                return spec, ()
            replaced = replace(spec, recovery_hashes=recovery_hashes(codes))
            return _with_event(replaced, "recovery-codes-replaced", now), codes

        return await self._write(user, change, log)

    async def reset(self, user: User, log: Sequence[Record]) -> None:
        """Remove all authenticators and recovery codes of a user."""
        now = self._clock.now()

        def clear(spec: SecondFactorsSpec) -> tuple[SecondFactorsSpec, bool]:
            cleared = SecondFactorsSpec(used_challenges=spec.used_challenges, reset=now, events=spec.events)
            return _with_event(cleared, "reset", now), True

        await self._write(user, clear, log)

    async def _write(self, user: User, change: Change[T], log: Sequence[Record] = ()) -> T:
        """Write what an attempt changes, with the log, then return its result."""

        async def write() -> T:
            found = await find(self._store, SecondFactors, user.name)
            spec = SecondFactorsSpec() if found is None else found.spec
            changed, result = change(spec)
            if changed == spec:
                return result
            if found is None:
                metadata = Metadata(name=user.name, owner_references=(USER.owner(user),))
                await create_once(self._store, SecondFactors(metadata=metadata, spec=changed), log)
            else:
                await self._store.update(msgspec.structs.replace(found, spec=changed), log=log)
            return result

        async with self._locks.acquire(user.name):
            return await retry_on_conflict(write)


def _delayed(spec: SecondFactorsSpec, now: datetime) -> SecondFactorsSpec:
    if not spec.apps:
        return spec
    wrong = spec.wrong_codes + 1
    delay = delay_after(wrong)
    return replace(spec, wrong_codes=wrong, next_attempt=now + delay if delay else None)


def _with_codes(
    before: SecondFactorsSpec, after: SecondFactorsSpec, codes: tuple[Secret, ...]
) -> tuple[SecondFactorsSpec, tuple[Secret, ...]]:
    """Return the spec with the recovery codes of a first authenticator."""
    if before.has_authenticator:
        return after, ()
    return replace(after, recovery_hashes=recovery_hashes(codes)), codes


def _checked_name(spec: SecondFactorsSpec, addition: Addition, default: str) -> str:
    """Return the name of a new authenticator, or raise Invalid if it is taken or there are too many."""
    if addition.only_first and spec.has_authenticator:
        raise Malformed("You have a second factor by now: log in again, and use it.")
    taken = {each.name.casefold() for each in spec.authenticators}
    if len(taken) >= MAX_AUTHENTICATORS:
        remedy = f"remove one first, since {MAX_AUTHENTICATORS} are allowed"
        raise Invalid("authenticator", "is one too many", remedy=remedy)
    name = " ".join(addition.name.split())
    if not name:
        numbered = [default, *(f"{default} {number}" for number in range(2, MAX_AUTHENTICATORS + 1))]
        return next(each for each in numbered if each.casefold() not in taken)
    if len(name) > MAX_NAME:
        raise Invalid("name", "is too long", remedy=f"choose one of at most {MAX_NAME} characters")
    if name.casefold() in taken:
        raise Invalid("name", "is that of another authenticator of yours", remedy="choose another one")
    return name


def _with_event(spec: SecondFactorsSpec, event: FactorEventType, now: datetime, name: str = "") -> SecondFactorsSpec:
    return replace(spec, events=(FactorEvent(type=event, time=now, name=name), *spec.events)[:_MAX_EVENTS])
