"""Stored signing keys, sessions and revocations."""

from datetime import datetime

from remuda.identity.kinds.common import remuda_kind, shared_kind
from remuda.identity.kinds.factors import AuthenticationMethod, LoginProof, proof_of
from remuda.kernel.secrets import Secret
from remuda.store.kinds import Index
from remuda.store.objects import Resource, StoredStruct


class PrivateKey(StoredStruct, frozen=True):
    """Signing key pair. Its role follows from the creation times of all keys."""

    pem: Secret
    created: datetime | None = None


class SigningKeySpec(StoredStruct, frozen=True):
    """All key pairs, the newest first. An older one is kept while a token signed with it can be valid."""

    private_keys: tuple[PrivateKey, ...] = ()


class SigningKey(Resource, frozen=True):
    """Signing keys of this system; there is one such object."""

    spec: SigningKeySpec = SigningKeySpec()


class SessionSpec(StoredStruct, frozen=True):
    """Login of a user through a client, with its valid refresh token."""

    user: str = ""
    client: str = ""
    provider: str = ""
    """Id of the provider at which the user logged in; empty for a local password."""
    organization: str = ""
    """Organization whose own provider that is: the session is valid in it only."""
    scope: str = ""
    authenticated: datetime | None = None
    """Time of the last authentication of the user; refreshing does not change it."""
    expires: datetime | None = None
    """Time after which it cannot be refreshed."""
    refresh_hash: str = ""
    """SHA-256 of the valid refresh token, in hex."""
    family_hash: str = ""
    """SHA-256 of the part that all its refresh tokens have in common. Another token of the family was stolen or reused,
    and ends the session, so no list of earlier ones is needed."""
    code: str = ""
    login: str = ""
    """Browser login of its code: a logout there ends it."""
    refreshed: datetime | None = None
    """Time at which its refresh token was last used."""
    ended: datetime | None = None
    """Time of its end: by a logout, or because a secret was used twice."""
    methods: tuple[AuthenticationMethod, ...] = ()
    """Methods by which we authenticated the user; none of a provider's."""

    @property
    def proof(self) -> LoginProof:
        return proof_of(self.methods, self.provider)


class Session(Resource, frozen=True):
    """Login, named by the `sid` of its tokens. A label names the user."""

    spec: SessionSpec = SessionSpec()


class RevocationSpec(StoredStruct, frozen=True):
    """Revoked token id (`jti`) or session id (`sid`)."""

    revoked: str = ""
    expires: datetime | None = None
    """Time after which no token with this id is valid anyway."""


class Revocation(Resource, frozen=True):
    """Revoked token or session. Services in other processes watch these."""

    spec: RevocationSpec = RevocationSpec()


SIGNING_KEY = shared_kind(SigningKey, "signingkeys", uncounted="one in the whole system")

SESSION = remuda_kind(
    Session,
    "sessions",
    uncounted="removed when it has expired",
    indexes=(Index(name="refresh", values=lambda each: [each.spec.family_hash] if each.spec.family_hash else []),),
    columns={"User": ".spec.user", "Client": ".spec.client"},
)
"""Sessions, found by the label of their user and by their refresh tokens."""

REVOCATION = remuda_kind(
    Revocation,
    "revocations",
    uncounted="removed when it has expired",
    indexes=(Index(name="revoked", values=lambda revocation: [revocation.spec.revoked]),),
)
"""Revocations, named after what they revoke."""
