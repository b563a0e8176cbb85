"""Signing keys: EC P-521, all in one sealed `SigningKey` object.

A new key is published for a while (`ANNOUNCED`) before it signs, so that clients of the JWKS have it by then; only the
very first signs at once. The signing key follows from the creation times, so a rotation is one write, and two
concurrent rotations result in one new key. An older key verifies until no token that it signed can be valid.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from joserfc.jwk import ECKey
from msgspec.structs import replace

from remuda.identity.kinds.tokens import PrivateKey, SigningKey, SigningKeySpec
from remuda.identity.settings import IdentitySettings
from remuda.kernel.clock import Clock
from remuda.kernel.randomness import Randomness
from remuda.kernel.secrets import Secret
from remuda.resources.crud import ensure, find
from remuda.store.contract import Store
from remuda.store.objects import Metadata

NAME = "signing-keys"
ANNOUNCED = timedelta(minutes=15)
"""Time for which a key is published before it signs. Caches of the JWKS should be refreshed as often."""

_SPARE_BYTES = 8


@dataclass(frozen=True, slots=True)
class LoadedKey:
    """Loaded key pair."""

    kid: str
    """RFC 7638 thumbprint."""
    key: ECKey = field(repr=False)
    created: datetime

    def public(self) -> dict[str, Any]:
        return {**self.key.as_dict(private=False), "use": "sig", "alg": "ES512", "kid": self.kid}


class SigningKeys:
    """Signing keys, loaded again when the stored object changes."""

    def __init__(self, *, store: Store, clock: Clock, randomness: Randomness, settings: IdentitySettings) -> None:
        self._store, self._clock, self._randomness, self._settings = store, clock, randomness, settings
        self._version: int | None = None
        self._loaded: tuple[LoadedKey, ...] = ()

    @property
    def version(self) -> int:
        """Number that changes with the keys."""
        return self._store.change_counter((SigningKey,))

    async def all(self) -> Sequence[LoadedKey]:
        """Return all keys, the newest first. The first caller creates the first key."""
        version = self.version
        if version != self._version:
            stored = await self._find_or_make()
            self._loaded = tuple(map(_load, stored.spec.private_keys))
            self._version = version
        return self._loaded

    async def current(self) -> LoadedKey:
        keys, now = await self.all(), self._clock.now()
        return next((each for each in keys if each.created + ANNOUNCED <= now), keys[-1])

    async def find(self, kid: str) -> LoadedKey | None:
        """Return the key with this id, if a token signed with it can still be valid."""
        now = self._clock.now()
        for key, ends in _with_ends(await self.all(), max_lifetime(self._settings)):
            if key.kid == kid:
                return key if ends is None or now < ends else None
        return None

    async def rotate(self) -> float:
        """Create a key if needed, remove expired ones, and return the seconds until the next call."""
        stored, now = await self._find_or_make(), self._clock.now()
        keys = [_load(each) for each in stored.spec.private_keys]
        due = keys[0].created + self._settings.signing_key_lifetime
        ends = [end for _, end in _with_ends(keys, max_lifetime(self._settings))]
        remaining = [each for each, end in zip(stored.spec.private_keys, ends, strict=True) if end is None or now < end]
        if due <= now:
            remaining = [_new_key(self._randomness, now), *remaining]
            due = now + self._settings.signing_key_lifetime
        if tuple(remaining) != stored.spec.private_keys:
            await self._store.update(replace(stored, spec=SigningKeySpec(private_keys=tuple(remaining))))
        return (min([due, *(end for end in ends if end is not None and end > now)]) - now).total_seconds()

    async def _find_or_make(self) -> SigningKey:
        found = await find(self._store, SigningKey, NAME)
        if found is not None:
            return found
        first = SigningKeySpec(private_keys=(_new_key(self._randomness, self._clock.now()),))
        return await ensure(self._store, SigningKey(metadata=Metadata(name=NAME), spec=first))


def max_lifetime(settings: IdentitySettings) -> timedelta:
    return max(settings.access_token_lifetime, settings.service_account_token_lifetime, settings.passport_lifetime)


def _with_ends(keys: Sequence[LoadedKey], lifetime: timedelta) -> list[tuple[LoadedKey, datetime | None]]:
    """Return each key with the time from which no token signed with it is valid; None for the newest."""
    newer = [None, *keys]
    return [
        (key, None if after is None else after.created + ANNOUNCED + lifetime)
        for key, after in zip(keys, newer, strict=False)
    ]


def _new_key(randomness: Randomness, now: datetime) -> PrivateKey:
    curve = ec.SECP521R1()
    length = (curve.key_size + 7) // 8 + _SPARE_BYTES  # the spare bytes make every scalar as likely as any other
    scalar = int.from_bytes(randomness.token_bytes(length)) % (curve.group_order - 1) + 1
    key = ec.derive_private_key(scalar, curve)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return PrivateKey(pem=Secret(pem), created=now)


def _load(stored: PrivateKey) -> LoadedKey:
    assert stored.created is not None, "every stored key has a creation time"
    key = ECKey.import_key(stored.pem.reveal())
    return LoadedKey(kid=key.thumbprint(), key=key, created=stored.created)
