"""Stored second factors of users: authenticator apps, passkeys and recovery codes.

A user has one such object, so that everything that must happen once is a compare-and-swap of it: a code of an app is
used, a challenge is signed, a recovery code is spent.

`meets_policy` is the rule by which an organization is open to a login: permissions are computed with it.
"""

from datetime import datetime
from typing import Literal

from remuda.identity.kinds.common import remuda_kind
from remuda.kernel.secrets import Secret
from remuda.store.objects import Resource, StoredStruct

SecondFactorPolicy = Literal["optional", "password", "always"]
"""Logins of which an organization requires a second factor: none, those with a password, or all."""

LoginProof = Literal["password", "provider", "factor"]
"""Proof of a login: a password alone, the word of an external provider, or a second factor as well."""

AuthenticationMethod = Literal["pwd", "otp", "pop", "mfa"]
"""Authentication method of RFC 8176: a password, a one-time code, possession of a key, and several together."""


def meets_policy(policy: SecondFactorPolicy, proof: LoginProof) -> bool:
    """Return whether a login with this proof gives permissions in an organization with this policy."""
    if policy == "optional" or proof == "factor":
        return True
    return policy == "password" and proof == "provider"


def proof_of(methods: tuple[AuthenticationMethod, ...], provider: str) -> LoginProof:
    """Return the proof of a login by these methods, at this provider if it is not empty."""
    if "mfa" in methods:
        return "factor"
    return "provider" if provider else "password"


class EnrolledAuthenticator(StoredStruct, frozen=True, kw_only=True):
    """Part that apps and passkeys have in common."""

    id: str
    name: str
    added: datetime
    used: datetime | None = None


class AuthenticatorApp(EnrolledAuthenticator, frozen=True, kw_only=True):
    """App that computes time-based one-time codes (RFC 6238)."""

    secret: Secret
    last_step: int
    """Time step of the last accepted code. A code of this or an earlier step is not accepted again."""


class Passkey(EnrolledAuthenticator, frozen=True, kw_only=True):
    """WebAuthn credential."""

    credential: str
    """Attested credential data, which has the credential id and the public key, in base64url."""
    sign_count: int
    """Signature counter of the last use. One that does not increase reveals a copy of the key."""
    transports: tuple[str, ...] = ()


class UsedChallenge(StoredStruct, frozen=True):
    """Challenge for which a response was accepted: no other one is."""

    challenge_hash: str
    """SHA-256, in hex."""
    expires: datetime


FactorEventType = Literal[
    "app-added", "passkey-added", "removed", "recovery-codes-replaced", "recovery-code-used", "reset", "copied-passkey"
]


class FactorEvent(StoredStruct, frozen=True):
    """Change of the second factors, which the account page shows."""

    type: FactorEventType
    time: datetime
    name: str = ""


class SecondFactorsSpec(StoredStruct, frozen=True):
    """Authenticators and recovery codes of a user."""

    apps: tuple[AuthenticatorApp, ...] = ()
    passkeys: tuple[Passkey, ...] = ()
    recovery_hashes: tuple[str, ...] = ()
    """SHA-256 of the unused recovery codes, in hex."""
    used_challenges: tuple[UsedChallenge, ...] = ()
    wrong_codes: int = 0
    """Wrong codes of apps since the last correct one, in browsers that the user did not log in with before."""
    next_attempt: datetime | None = None
    """Time before which no code is checked in such a browser."""
    reset: datetime | None = None
    """Time at which a platform administrator removed them all. Logins from before are no longer valid."""
    removed: datetime | None = None
    """Time at which the user last removed an authenticator. Logins that began before are not completed."""
    events: tuple[FactorEvent, ...] = ()
    """Latest changes, the newest first."""

    @property
    def authenticators(self) -> tuple[EnrolledAuthenticator, ...]:
        return *self.apps, *self.passkeys

    @property
    def has_authenticator(self) -> bool:
        """Whether a login needs a second factor."""
        return bool(self.apps or self.passkeys)


class SecondFactors(Resource, frozen=True):
    """Second factors of a user, named after the user."""

    spec: SecondFactorsSpec = SecondFactorsSpec()


SECOND_FACTORS = remuda_kind(SecondFactors, "secondfactors", uncounted="one for each user")
"""Second factors, owned by their user."""
